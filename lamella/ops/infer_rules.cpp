// Type rules that many operators share.
#include "lamella/ops/infer_rules.h"

namespace lamella::infer {

namespace {

TensorType broadcast(InferCall& call) {
  TensorType result = *call.operands.back();
  // The common case: equal shapes need no broadcasting.
  for (const TensorType* operand : call.operands) {
    if (operand->shape != result.shape) {
      result.shape = broadcast_shapes(operand->shape, result.shape, call.op.name().data());
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
  call.results.push_back(call.operand(0));
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
  for (int64_t axis : call.attribute<Axes>(0)) result.shape[static_cast<size_t>(axis)] = 1;
  call.results.push_back(result);
}

}  // namespace lamella::infer
