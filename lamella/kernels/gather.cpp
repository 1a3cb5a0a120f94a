// Reading at positions that are data.
#include <cstring>

#include "lamella/base/error.h"
#include "lamella/base/parallel.h"
#include "lamella/kernels/element.h"
#include "lamella/kernels/indexing.h"
#include "lamella/kernels/indexing_checks.h"
#include "lamella/kernels/strided_loop.h"
#include "lamella/kernels/view.h"

namespace lamella::kernels {

namespace {

// One index is read at each point of `outer` (operands: out, x, indices) and serves all points of
// `inner` (operands: out, x).
struct GatherLoops {
  StridedLoop<3> outer;
  StridedLoop<2> inner;
  int64_t axis_stride;  // of x along the gathered axis
};

template <typename T>
void run(const GatherLoops& loops, const CheckedIndices& indices, T* out, const T* x) {
  StridedLoop<2> rows = loops.inner;
  int64_t row = 1, out_step = 1, x_step = 1;
  if (rows.rank() > 0) {
    row = rows.sizes.back();
    out_step = rows.strides.back()[0];
    x_step = rows.strides.back()[1];
    rows.erase(rows.sizes.size() - 1);
  }
  const int64_t row_count = rows.count();
  const auto copy_row = [&](T* to, const T* from) {
    if (row == 1) {
      *to = *from;
    } else if (out_step == 1 && x_step == 1) {
      std::memcpy(to, from, static_cast<size_t>(row) * sizeof(T));
    } else {
      for (int64_t i = 0; i < row; ++i) to[i * out_step] = from[i * x_step];
    }
  };
  const int64_t grain = std::max<int64_t>(1, 8192 / (row * row_count));
  parallel_for(loops.outer.count(), grain, [&](int64_t begin, int64_t end) {
    loops.outer.walk(begin, end, [&](const auto& at) {
      T* to = out + at[0];
      const T* from = x + at[1] + indices.at(at[2]) * loops.axis_stride;
      if (row_count == 1) return copy_row(to, from);
      rows.walk(0, row_count, [&](const auto& in) { copy_row(to + in[0], from + in[1]); });
    });
  });
}

void run(const GatherLoops& loops, const CheckedIndices& indices, const TensorView& x,
         const TensorView& out) {
  if (out.count() == 0) return;
  with_element(x.dtype, [&]<typename T>(T*) { run<T>(loops, indices, out.as<T>(), x.as<T>()); });
}

}  // namespace

void gather(const TensorView& x, const TensorView& indices, const TensorView& out,
            const IndexingOptions& options) {
  check_axis(x, options);
  require_same_dtype(options.operation, "x", x, "out", out);
  require_sizes(options.operation, "out", out,
                gathered_sizes(x.sizes, options.axis, indices.sizes, options));
  const size_t axis = static_cast<size_t>(options.axis);
  const CheckedIndices checked(indices, x.sizes[axis], options);

  const size_t indices_end = axis + indices.sizes.size();
  const AxisRange x_before(x, 0, axis), x_after(x, axis + 1, x.sizes.size());
  const AxisRange out_outer(out, 0, indices_end), out_inner(out, indices_end, out.sizes.size());
  const Axes x_outer = joined(x_before.strides, Axes(indices.sizes.size(), 0));
  const Axes indices_outer = joined(Axes(static_cast<uint32_t>(axis), 0), indices.strides);
  const GatherLoops loops{
      .outer = {out_outer.sizes, {&out_outer.strides, &x_outer, &indices_outer}},
      .inner = {out_inner.sizes, {&out_inner.strides, &x_after.strides}},
      .axis_stride = x.strides[axis]};
  run(loops, checked, x, out);
}

void gather_elements(const TensorView& x, const TensorView& indices, const TensorView& out,
                     const IndexingOptions& options) {
  check_axis(x, options);
  require_same_dtype(options.operation, "x", x, "out", out);
  require_sizes(options.operation, "out", out, indices.sizes);
  const size_t axis = static_cast<size_t>(options.axis);
  bool fits = indices.rank() == x.rank();
  for (size_t i = 0; i < x.sizes.size() && fits; ++i) {
    fits = i == axis || indices.sizes[i] <= x.sizes[i];
  }
  if (!fits) {
    fail(ErrorKind::Value,
         "[{}] indices must have x's rank and be no larger on every axis but {} (x: {}, indices: "
         "{})",
         options.operation, options.axis, text(x), text(indices));
  }
  const CheckedIndices checked(indices, x.sizes[axis], options);
  Axes x_strides = x.strides;
  x_strides[axis] = 0;
  const GatherLoops loops{.outer = {out.sizes, {&out.strides, &x_strides, &indices.strides}},
                          .inner = {},
                          .axis_stride = x.strides[axis]};
  run(loops, checked, x, out);
}

}  // namespace lamella::kernels
