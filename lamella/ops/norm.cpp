// Norms of vectors.
#include <cmath>

#include "lamella/ops/functions.h"
#include "lamella/ops/infer_rules.h"
#include "lamella/ops/tensor_operators.h"

namespace lamella {

namespace {

// A reduced tensor with its axes back.
Tensor spread(const Tensor& reduced, const VjpCall& call) {
  if (call.attribute<bool>(2)) return reduced;
  const Shape& shape = call.node().operand(0)->type().shape;
  Shape kept = shape;
  for (int64_t axis : normalize_axes(call.attribute<Axes>(1), rank(shape), "norm")) {
    kept[static_cast<size_t>(axis)] = 1;
  }
  return ops::reshape(reduced, kept);
}

}  // namespace

LAMELLA_OP(norm, (Operand x, double order = 2, Axes axis = {}, bool keepdims = false),
    .doc = "sum(|x|^order)^(1 / order) along axes (none given: all); the largest |x| for infinity, the smallest for "
           "-infinity, the number of elements that are not 0 for 0. Where the norm is 0 its gradient is 0.",
    .accepts = kFloats, .promotion = Promotion::Float,
    .infer = [](InferCall& call) {
      const TensorType& x = call.operand(0);
      const double order = call.attribute<double>(0);
      if (std::isnan(order)) fail(ErrorKind::Value, "[norm] order must be a number, got NaN");
      const Axes axes = normalize_axes(call.attribute<Axes>(1), rank(x.shape), "norm");
      TensorType result{x.dtype, Layout::RowMajor, {}};
      size_t next = 0;
      for (int axis = 0; axis < rank(x.shape); ++axis) {
        const bool reduced = next < axes.size() && axes[next] == axis;
        next += reduced;
        const Dim size = x.shape[static_cast<size_t>(axis)];
        if (reduced && size.is(0) && (std::isinf(order) || order < 0)) {
          fail(ErrorKind::Value, "[norm] axis {} has no elements, order {} needs one (x: {})", axis, order, text(x));
        }
        if (!reduced || call.attribute<bool>(2)) result.shape.push_back(reduced ? Dim(1) : size);
      }
      call.results.push_back(result);
    },
    .lower = composite([](const CompositeCall& call) {
      const Tensor x = call[0], size = ops::abs(x);
      const double order = call.attribute<double>(0);
      const Axes& axes = call.attribute<Axes>(1);
      const bool keep = call.attribute<bool>(2);
      if (std::isinf(order)) return std::vector{order > 0 ? ops::max(size, axes, keep) : ops::min(size, axes, keep)};
      if (order == 0) return std::vector{ops::sum(ops::cast(ops::not_equal(x, 0), x.dtype()), axes, keep)};
      if (order == 1) return std::vector{ops::sum(size, axes, keep)};
      if (order == 2) return std::vector{ops::sqrt(ops::sum(ops::square(x), axes, keep))};
      return std::vector{ops::pow(ops::sum(ops::pow(size, order), axes, keep), 1 / order)};
    }),
    .vjp = vjp([](VjpCall& call) {
      const Tensor x = call.operand(0);
      const double order = call.attribute<double>(0);
      const Tensor g = spread(call.cotangent(), call);
      if (order == 0) return;  // constant but for its jumps
      if (order == 1) return call.give(0, g * ops::sign(x));
      const Tensor norm = spread(call.result(), call);
      const Tensor divisor = ops::where(ops::equal(norm, 0), 1.0, norm);
      if (std::isinf(order)) {
        // Equal extrema share.
        const Tensor reached = ops::cast(ops::equal(ops::abs(x), norm), x.dtype());
        const Axes axes = normalize_axes(call.attribute<Axes>(1), x.rank(), "norm");
        return call.give(0, reached * ops::sign(x) * (g / ops::sum(reached, axes, true)));
      }
      if (order == 2) return call.give(0, x * (g / divisor));
      const Tensor size = ops::abs(x);
      const Tensor slope = ops::pow(ops::where(ops::equal(x, 0), 1.0, size) / divisor, order - 1) * ops::sign(x);
      call.give(0, g * slope);
    }),
    .batch = batch::along_axes<1>,
    .reference = numpy("norm(x, order, axis, keepdims)", 64), .cost = Cost{2},
    .samples = Samples{"randn(3, 5)", "randn(3, 5), order=1.0, axis=(1,)", "randn(3, 5), order=3.0, axis=(0,), keepdims=True",
                       "randn(2, 3, 4), order=float('inf'), axis=(0, 2)", "randn(3, 5), order=float('-inf'), axis=(1,)",
                       "integers(3, 5), order=0.0, axis=(1,)", "away_from_zero(3, 5), order=0.5"})

}  // namespace lamella
