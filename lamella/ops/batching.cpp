// The batch rules that many operators share.
#include "lamella/ops/batching.h"

#include "lamella/ops/functions.h"
#include "lamella/ops/opdef.h"

namespace lamella {

namespace {

// A batched operand with axes of size 1 behind the batch, so that one example has `rank` axes.
Tensor with_rank(const Tensor& operand, int rank) {
  const int missing = rank + 1 - operand.rank();
  if (missing <= 0) return operand;
  Shape shape{operand.shape()[0]};
  for (int i = 0; i < missing; ++i) shape.push_back(1);
  for (int i = 1; i < operand.rank(); ++i) {
    shape.push_back(operand.shape()[static_cast<size_t>(i)]);
  }
  return ops::reshape(operand, shape);
}

int largest_rank(const BatchCall& call) {
  int rank = 0;
  for (size_t i = 0; i < call.operand_count(); ++i) rank = std::max(rank, call.rank(i));
  return rank;
}

// N of the batch's samples and of one example's as one axis.
Tensor with_joined_samples(const Tensor& stacked) {
  Shape shape = stacked.shape();
  shape[1] = shape[0] * shape[1];
  shape.erase(0);
  return ops::reshape(stacked, shape);
}

}  // namespace

BatchCall::BatchCall(const Node& node, std::vector<Tensor> operands, std::vector<bool> batched,
                     int64_t size, BatchFallback& fallback)
    : node_(node),
      operands_(std::move(operands)),
      batched_(std::move(batched)),
      size_(size),
      fallback_(fallback) {}

bool BatchCall::any_batched_from(size_t first) const {
  for (size_t i = first; i < batched_.size(); ++i) {
    if (batched_[i]) return true;
  }
  return false;
}

Tensor BatchCall::stacked(size_t index) const {
  if (is_batched(index)) return operands_[index];
  return ops::broadcast_to(operands_[index], in_batch(operands_[index].shape()));
}

Tensor BatchCall::aligned(size_t index, int rank) const {
  return is_batched(index) ? with_rank(operands_[index], rank) : operands_[index];
}

std::vector<AttributeValue> BatchCall::attributes() const {
  return node_.attributes() == nullptr ? std::vector<AttributeValue>()
                                       : node_.attributes()->values();
}

std::vector<Tensor> BatchCall::all_stacked() const {
  std::vector<Tensor> all;
  for (size_t i = 0; i < operand_count(); ++i) all.push_back(stacked(i));
  return all;
}

Shape BatchCall::in_batch(const Shape& shape) const {
  if (shape.size() == static_cast<size_t>(kMaxRank)) {
    fail(ErrorKind::Unsupported,
         "[vmap] {} has {} axes for one example, the most that are supported: there is no room for "
         "the batch",
         node_.op().name(), kMaxRank);
  }
  Shape result = shape;
  result.insert(0, size_);
  return result;
}

std::vector<Tensor> BatchCall::record(const std::vector<Tensor>& operands) const {
  return record(operands, attributes());
}

std::vector<Tensor> BatchCall::record(const std::vector<Tensor>& operands,
                                      std::vector<AttributeValue> attributes) const {
  std::vector<Value*> values;
  for (const Tensor& operand : operands) values.push_back(operand.value().get());
  const Ref<const Attributes> own = node_.attributes_ref();
  const bool same = own == nullptr || own->values() == attributes;
  const Results results = current_recorder().record(
      node_.op(), values, same ? own : make_attributes(std::move(attributes)), node_.location());
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < results.size(); ++i) tensors.emplace_back(results[i]);
  return tensors;
}

namespace batch {

std::vector<Tensor> align_and_record(const BatchCall& call) {
  const int rank = largest_rank(call);
  std::vector<Tensor> operands;
  for (size_t i = 0; i < call.operand_count(); ++i) operands.push_back(call.aligned(i, rank));
  return call.record(operands);
}

std::vector<Tensor> align_to(const BatchCall& call, size_t leading) {
  const int rank = largest_rank(call);
  std::vector<Tensor> operands;
  for (size_t i = 0; i < call.operand_count(); ++i) {
    operands.push_back(i == leading ? with_rank(call.stacked(i), rank) : call.aligned(i, rank));
  }
  return call.record(operands);
}

std::vector<Tensor> move_axes_and_record(const BatchCall& call,
                                         std::initializer_list<size_t> numbers) {
  std::vector<Tensor> operands = call.all_stacked();
  std::vector<AttributeValue> attributes = call.attributes();
  const int rank = call.rank(0);
  // A number is taken as a line of one element, so that no axis given does not come to mean all.
  if (rank == 0) {
    for (Tensor& operand : operands) operand = ops::reshape(operand, Shape{call.size(), 1});
  }
  const auto new_axis = [&](int64_t axis) { return rank == 0 ? 1 : moved(axis); };
  for (size_t number : numbers) {
    if (auto* axis = std::get_if<int64_t>(&attributes[number])) {
      *axis = new_axis(*axis);
      continue;
    }
    Axes axes;
    for (int64_t axis : std::get<Axes>(attributes[number])) axes.push_back(new_axis(axis));
    if (axes.empty()) {
      for (int axis = 1; axis <= std::max(rank, 1); ++axis) axes.push_back(axis);
    }
    attributes[number] = axes;
  }
  std::vector<Tensor> results = call.record(operands, std::move(attributes));
  if (rank == 0) {
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i].shape() != call.result_shape(i)) {
        results[i] = ops::reshape(results[i], call.result_shape(i));
      }
    }
  }
  return results;
}

std::vector<Tensor> reshape_to_result(const BatchCall& call) {
  return {ops::reshape(call.operand(0), call.result_shape())};
}

std::vector<Tensor> join_samples(const BatchCall& call, size_t joined, int shape) {
  if (call.any_batched_from(joined)) {
    const bool is_composite = opdef(call.node()).lowering().kind == LoweringKind::Composite;
    return is_composite ? call.through_composite() : call.one_by_one();
  }
  std::vector<Tensor> operands;
  for (size_t i = 0; i < call.operand_count(); ++i) {
    operands.push_back(i < joined ? with_joined_samples(call.stacked(i)) : call.operand(i));
  }
  std::vector<AttributeValue> attributes = call.attributes();
  if (shape != kNoShape) {
    Shape& sizes = std::get<Shape>(attributes[static_cast<size_t>(shape)]);
    sizes[0] = sizes[0] * call.size();
  }
  std::vector<Tensor> results = call.record(operands, std::move(attributes));
  for (size_t i = 0; i < results.size(); ++i) {
    results[i] = ops::reshape(results[i], call.result_shape(i));
  }
  return results;
}

}  // namespace batch

}  // namespace lamella
