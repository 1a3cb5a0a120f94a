// Softmax and its relatives: row programs that read each row once.
#include "lamella/ops/functions.h"
#include "lamella/ops/infer_rules.h"
#include "lamella/ops/tensor_operators.h"

namespace lamella {

namespace {

void infer_along_axis(InferCall& call) {
  normalize_axis(call.attribute<int64_t>(0), rank(call.operand(0).shape), call.op.name());
  for (const TensorType* other : call.operands) {
    if (other->shape == call.operand(0).shape) continue;
    fail(ErrorKind::Value, "[{}] operands must be of one shape, got {} and {}", call.op.name(),
         text(call.operand(0)), text(*other));
  }
  call.results.push_back(call.operand(0));
}

Axes axis_of(const CompositeCall& call) {
  return {normalize_axis(call.attribute<int64_t>(0), call[0].rank(), "softmax")};
}

Tensor sum_along(const Tensor& x, const Axes& axes) {
  return ops::sum(x, axes, true);
}

// x less the largest element of its row, through which no gradient goes: it cancels.
Tensor shifted(const Tensor& x, const Axes& axes) {
  return x - ops::stop_gradient(ops::reduce_max(x, axes));
}

}  // namespace

LAMELLA_OP(softmax, (Operand x, int64_t axis = -1),
    .doc = "exp(x) divided by its sum along an axis.",
    .accepts = kFloats, .infer = infer_along_axis,
    .lower = composite([](const CompositeCall& call) {
      const Axes axes = axis_of(call);
      const Tensor powers = ops::exp(shifted(call[0], axes));
      // One division a row, by at least 1.
      return std::vector{powers * ops::reciprocal(sum_along(powers, axes))};
    }),
    .vjp = vjp([](VjpCall& call) {
      call.give(0, ops::softmax_backward(call.result(), call.cotangent(), call.attribute<int64_t>(0)));
    }),
    .batch = batch::along_axes<0>,
    .reference = numpy("softmax(x, axis)", 8), .cost = Cost{14},
    .samples = Samples{"randn(3, 5)", "randn(3, 5, 4), axis=1", "randn(2, 70)", "randn(3, 1)", "randn(0, 3)"})

LAMELLA_OP(softmax_backward, (Operand result, Operand cotangent, int64_t axis = -1),
    .doc = "The cotangent of softmax's operand, from its result and the result's cotangent.",
    .accepts = kFloats, .infer = infer_along_axis,
    .lower = composite([](const CompositeCall& call) {
      const Tensor weighted = call[0] * call[1];
      return std::vector{call[0] * (call[1] - sum_along(weighted, axis_of(call)))};
    }),
    .vjp = from_composite,
    .batch = batch::along_axes<0>,
    .reference = numpy("result * (cotangent - np.sum(result * cotangent, axis, keepdims=True))", 16),
    .cost = Cost{4}, .samples = Samples{"rand(3, 5), randn(3, 5)", "rand(3, 5, 4), randn(3, 5, 4), axis=1"})

LAMELLA_OP(log_softmax, (Operand x, int64_t axis = -1),
    .doc = "The logarithm of softmax, without overflow.",
    .accepts = kFloats, .infer = infer_along_axis,
    .lower = composite([](const CompositeCall& call) {
      const Axes axes = axis_of(call);
      const Tensor x = shifted(call[0], axes);
      return std::vector{x - ops::log(sum_along(ops::exp(x), axes))};
    }),
    .vjp = vjp([](VjpCall& call) {
      call.give(0, ops::log_softmax_backward(call.result(), call.cotangent(), call.attribute<int64_t>(0)));
    }),
    .batch = batch::along_axes<0>,
    .reference = numpy("log_softmax(x, axis)", 8), .cost = Cost{14},
    .samples = Samples{"randn(3, 5)", "randn(3, 5, 4), axis=1", "randn(2, 70)", "randn(0, 3)"})

LAMELLA_OP(log_softmax_backward, (Operand result, Operand cotangent, int64_t axis = -1),
    .doc = "The cotangent of log_softmax's operand, from its result and the result's cotangent.",
    .accepts = kFloats, .infer = infer_along_axis,
    .lower = composite([](const CompositeCall& call) {
      return std::vector{call[1] - ops::exp(call[0]) * sum_along(call[1], axis_of(call))};
    }),
    .vjp = from_composite,
    .batch = batch::along_axes<0>,
    .reference = numpy("cotangent - np.exp(result) * np.sum(cotangent, axis, keepdims=True)", 16),
    .cost = Cost{12}, .samples = Samples{"-rand(3, 5), randn(3, 5)", "-rand(3, 5, 4), randn(3, 5, 4), axis=1"})

LAMELLA_OP(logsumexp, (Operand x, Axes axis = {}, bool keepdims = false),
    .doc = "log(sum(exp(x))) along axes (none given: all), without overflow; minus infinity of nothing.",
    .accepts = kFloats,
    .infer = [](InferCall& call) {
      const TensorType& x = call.operand(0);
      TensorType result{x.dtype, Layout::RowMajor, {}};
      const Axes axes = normalize_axes(call.attribute<Axes>(0), rank(x.shape), "logsumexp");
      for (int axis = 0; axis < rank(x.shape); ++axis) {
        const bool reduced = std::find(axes.begin(), axes.end(), axis) != axes.end();
        if (!reduced) result.shape.push_back(x.shape[static_cast<size_t>(axis)]);
        if (reduced && call.attribute<bool>(1)) result.shape.push_back(1);
      }
      call.results.push_back(result);
    },
    .lower = composite([](const CompositeCall& call) {
      const Tensor x = call[0];
      const Axes axes = normalize_axes(call.attribute<Axes>(0), x.rank(), "logsumexp");
      Tensor largest = x;
      for (int64_t axis : axes) largest = ops::reduce_max(largest, Axes{axis});
      // Of infinities nothing is subtracted: they carry through by themselves.
      largest = ops::stop_gradient(ops::where(ops::isinf(largest), 0.0, largest));
      const Tensor total = ops::sum(ops::exp(x - largest), axes, true);
      const Tensor result = ops::log(total) + largest;
      return std::vector{ops::reshape(result, call.result_type().shape)};
    }),
    .vjp = from_composite,
    .batch = batch::along_axes<0>,
    .reference = numpy("logsumexp(x, axes(axis), keepdims)", 8), .cost = Cost{13},
    .samples = Samples{"randn(3, 5)", "randn(3, 5), axis=(1,)", "randn(3, 5, 4), axis=(0, 2), keepdims=True"})

}  // namespace lamella
