// Conversions in rows; the row loops are free of branches, so that the compiler makes vectors of
// them.
#include "lamella/kernels/convert.h"

#include <bit>

#include "lamella/base/parallel.h"
#include "lamella/kernels/element.h"
#include "lamella/kernels/strided_loop.h"
#include "lamella/kernels/vectorized.h"

namespace lamella::kernels {

namespace {

LAMELLA_VECTORIZED void widen_bfloat16(const uint16_t* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    to[i] = std::bit_cast<float>(static_cast<uint32_t>(from[i]) << 16);
  }
}

LAMELLA_VECTORIZED void narrow_bfloat16(const float* from, uint16_t* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(from[i]);
    const uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
    const uint32_t nan = (bits >> 16) | 0x40u;
    to[i] = static_cast<uint16_t>((bits & 0x7FFFFFFFu) > 0x7F800000u ? nan : rounded);
  }
}

// The exponent is moved by a multiplication, which also normalises subnormal numbers exactly.
LAMELLA_VECTORIZED void widen_float16(const uint16_t* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = from[i];
    const uint32_t magnitude = (bits & 0x7FFFu) << 13;
    const uint32_t scaled = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
    const uint32_t special = magnitude | 0x7F800000u;
    const uint32_t result = (bits & 0x7C00u) == 0x7C00u ? special : scaled;
    to[i] = std::bit_cast<float>(result | (bits & 0x8000u) << 16);
  }
}

// float16_bits_from_float with its cases computed side by side.
LAMELLA_VECTORIZED void narrow_float16(const float* from, uint16_t* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(from[i]);
    const uint32_t sign = (bits >> 16) & 0x8000u;
    const uint32_t magnitude = bits & 0x7FFFFFFFu;
    const uint32_t nan = 0x7E00u | ((magnitude >> 13) & 0x3FFu);
    const uint32_t subnormal =
        std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3F000000u;
    const uint32_t normal = (magnitude + 0xFFFu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
    uint32_t result = magnitude < 0x38800000u ? subnormal : normal;
    result = magnitude >= 0x477FF000u ? 0x7C00u : result;
    result = magnitude > 0x7F800000u ? nan : result;
    to[i] = static_cast<uint16_t>(sign | result);
  }
}

template <typename From, typename To>
void convert_elements(const TensorView& from, const TensorView& to,
                      void (*row)(const From*, To*, int64_t), To (*element)(From)) {
  StridedLoop<2> loop(to.sizes, {&to.strides, &from.strides});
  if (loop.count() == 0) return;
  To* out = to.as<To>();
  const From* in = from.as<From>();
  if (loop.rank() == 0) {
    *out = element(*in);
    return;
  }
  const int64_t length = loop.sizes.back();
  const auto stride = loop.strides.back();
  const auto run_row = [&](To* row_out, const From* row_in, int64_t count) {
    if (stride[0] == 1 && stride[1] == 1) return row(row_in, row_out, count);
    for (int64_t i = 0; i < count; ++i) row_out[i * stride[0]] = element(row_in[i * stride[1]]);
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
    convert_elements<uint16_t, float>(from, to, widen_bfloat16, float_from_bfloat16_bits);
  } else if (from.dtype == DType::Float32 && to.dtype == DType::BFloat16) {
    convert_elements<float, uint16_t>(from, to, narrow_bfloat16, bfloat16_bits_from_float);
  } else if (from.dtype == DType::Float16 && to.dtype == DType::Float32) {
    convert_elements<uint16_t, float>(from, to, widen_float16, float_from_float16_bits);
  } else {
    LAMELLA_CHECK(from.dtype == DType::Float32 && to.dtype == DType::Float16);
    convert_elements<float, uint16_t>(from, to, narrow_float16, float16_bits_from_float);
  }
}

}  // namespace lamella::kernels
