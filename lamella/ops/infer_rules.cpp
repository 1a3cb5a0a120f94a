// Type rules that many operators share.
#include "lamella/ops/infer_rules.h"

#include "lamella/ops/reduction.h"

namespace lamella::infer {

namespace {

TensorType broadcast(InferCall& call) {
  TensorType result = *call.operands.back();
  // The common case: equal shapes need no broadcasting.
  for (const TensorType* operand : call.operands) {
    if (operand->shape != result.shape) {
      result.shape = broadcast_shapes(operand->shape, result.shape, call.op.name());
    }
  }
  result.layout = Layout::RowMajor;
  // That of the first operand with all of the elements; if none has, of the first of full rank.
  const TensorType* leading = nullptr;
  for (const TensorType* operand : call.operands) {
    if (operand->shape.size() != result.shape.size()) continue;
    const bool whole = operand->shape == result.shape;
    if (whole || leading == nullptr) leading = operand;
    if (whole) break;
  }
  if (leading != nullptr) result.layout = leading->layout;
  return result;
}

}  // namespace

void same(InferCall& call) {
  const TensorType& x = call.operand(0);
  for (size_t i = 1; i < call.operands.size(); ++i) {
    const TensorType& other = call.operand(i);
    const bool fits = other.shape.size() <= x.shape.size() &&
                      broadcast_shapes(x.shape, other.shape, call.op.name()) == x.shape;
    if (!fits) {
      fail(ErrorKind::Value,
           "[{}] operand {} ({}) does not broadcast to the first one's shape ({})", call.op.name(),
           i, text(other), text(x));
    }
  }
  call.results.push_back(x);
}

void elementwise(InferCall& call) {
  call.results.push_back(broadcast(call));
}

void predicate(InferCall& call) {
  TensorType result = broadcast(call);
  result.dtype = DType::Bool;
  call.results.push_back(result);
}

void reduce_keeping_axes(InferCall& call) {
  TensorType result = call.operand(0);
  const Axes& axes = call.attribute<Axes>(0);
  const std::string_view name = call.op.name();
  int64_t last = -1;
  for (int64_t axis : axes) {
    if (axis <= last || axis >= rank(result.shape)) {
      fail(ErrorKind::Value, "[{}] axes must be ascending and within 0 to {}, got {}", name,
           rank(result.shape) - 1, text(AttributeValue(axes)));
    }
    last = axis;
    result.shape[static_cast<size_t>(axis)] = 1;
  }
  const ReductionSteps steps = reduction_steps(call.operand(0), axes);
  if (!steps.inner.empty() && !steps.outer.empty()) {
    fail(ErrorKind::Value, "[{}] axes {} of {} mix inner and outer ones, which are separate steps",
         name, text(AttributeValue(axes)), text(call.operand(0)));
  }
  call.results.push_back(result);
}

}  // namespace lamella::infer
