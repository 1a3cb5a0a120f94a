#include "lamella/transform/replay.h"

#include "lamella/ir/recorder.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/tensor_operators.h"
#include "lamella/transform/walk_back.h"

namespace lamella {

void Replay::set(std::span<const Ref<Value>> values, const Tensors& tensors) {
  for (size_t i = 0; i < values.size(); ++i) set(values[i], tensors[i]);
}

void Replay::run(std::span<const Ref<Node>> nodes) {
  const ProvenanceScope outer;
  for (const Ref<Node>& node : nodes) {
    Tensors operands;
    std::vector<Value*> pointers;
    for (const Ref<Value>& operand : node->operands()) {
      operands.push_back(of(operand));
      pointers.push_back(operands.back().value().get());
    }
    set_current_provenance(node->provenance());
    const Results results =
        current_recorder().record(node->op(), pointers, node->attributes_ref(), node->location());
    for (size_t i = 0; i < results.size(); ++i) {
      if (made_.find(node->result(i)) == nullptr) set(node->results()[i], Tensor(results[i]));
    }
  }
}

Tensor Replay::of(const Ref<Value>& value) const {
  if (const Tensor* found = made_.find(value.get())) return *found;
  if (value->is_traced() && !current_recorder().knows(*value)) {
    fail(ErrorKind::Internal, "a loop's backward pass reads a value that was not kept for it");
  }
  return Tensor(value);
}

Tensors pull_back(const Tensors& results, const Tensors& cotangents, const Tensors& wrt,
                  size_t first) {
  Cotangents known;
  for (size_t i = 0; i < results.size(); ++i) {
    if (cotangents[i].defined()) accumulate(known, results[i].value().get(), cotangents[i]);
  }
  std::vector<Value*> targets;
  for (const Tensor& tensor : wrt) targets.push_back(tensor.value().get());
  walk_back(known, targets, first);
  Tensors found;
  for (Value* target : targets) {
    const Tensor* cotangent = known.find(target);
    found.push_back(cotangent != nullptr ? *cotangent : Tensor());
  }
  return found;
}

Tensor or_zeros(const Tensor& gradient, const Tensor& like) {
  if (!gradient.defined()) return ops::zeros_of(like.type());
  return in_layout(gradient, like.type().layout);
}

Tensor in_layout(const Tensor& tensor, Layout layout) {
  if (tensor.type().layout == layout || tensor.rank() < 3) return tensor;
  return ops::with_layout(tensor, static_cast<int64_t>(layout));
}

Tensors as_carried(Tensors next, const Tensors& carried) {
  for (size_t i = 0; i < std::min(next.size(), carried.size()); ++i) {
    if (next[i].shape() == carried[i].shape()) {
      next[i] = in_layout(next[i], carried[i].type().layout);
    }
  }
  return next;
}

std::vector<Ref<Value>> values_of(const Tensors& tensors) {
  std::vector<Ref<Value>> values;
  for (const Tensor& tensor : tensors) values.push_back(tensor.value());
  return values;
}

Tensors tensors_of(std::span<const Ref<Value>> values) {
  return {values.begin(), values.end()};
}

}  // namespace lamella
