// Conversions between strided tensors, row by row.
#include "lamella/kernels/convert.h"

#include "lamella/base/parallel.h"
#include "lamella/kernels/element.h"
#include "lamella/kernels/rows.h"
#include "lamella/kernels/strided_loop.h"

namespace lamella::kernels {

namespace {

void convert_row(const Float16* from, float* to, int64_t count) {
  widen_row(from, to, count);
}
void convert_row(const BFloat16* from, float* to, int64_t count) {
  widen_row(from, to, count);
}
void convert_row(const float* from, Float16* to, int64_t count) {
  narrow_row(from, to, count);
}
void convert_row(const float* from, BFloat16* to, int64_t count) {
  narrow_row(from, to, count);
}

template <typename From, typename To>
void convert_elements(const TensorView& from, const TensorView& to) {
  StridedLoop<2> loop(to.sizes, {&to.strides, &from.strides});
  if (loop.count() == 0) return;
  To* out = to.as<To>();
  const From* in = from.as<From>();
  if (loop.rank() == 0) {
    *out = To(*in);
    return;
  }
  const int64_t length = loop.sizes.back();
  const auto stride = loop.strides.back();
  const auto run_row = [&](To* row_out, const From* row_in, int64_t count) {
    if (stride[0] == 1 && stride[1] == 1) return convert_row(row_in, row_out, count);
    for (int64_t i = 0; i < count; ++i) row_out[i * stride[0]] = To(row_in[i * stride[1]]);
  };
  constexpr int64_t kGrain = 16 << 10;
  if (loop.rank() == 1) {
    return parallel_for(length, kGrain, [&](int64_t begin, int64_t end) {
      run_row(out + begin * stride[0], in + begin * stride[1], end - begin);
    });
  }
  loop.erase(loop.sizes.size() - 1);
  parallel_for(
      loop.count(), std::max<int64_t>(1, kGrain / length), [&](int64_t begin, int64_t end) {
        loop.walk(begin, end, [&](const auto& at) { run_row(out + at[0], in + at[1], length); });
      });
}

}  // namespace

void convert(const TensorView& from, const TensorView& to) {
  if (from.dtype == DType::BFloat16 && to.dtype == DType::Float32) {
    convert_elements<BFloat16, float>(from, to);
  } else if (from.dtype == DType::Float32 && to.dtype == DType::BFloat16) {
    convert_elements<float, BFloat16>(from, to);
  } else if (from.dtype == DType::Float16 && to.dtype == DType::Float32) {
    convert_elements<Float16, float>(from, to);
  } else {
    LAMELLA_CHECK(from.dtype == DType::Float32 && to.dtype == DType::Float16);
    convert_elements<float, Float16>(from, to);
  }
}

}  // namespace lamella::kernels
