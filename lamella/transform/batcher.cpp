// Recording operations again for a batch, and the two ways that hold for any operator.
#include "lamella/transform/batcher.h"

#include "lamella/ir/call_site.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/opdef.h"
#include "lamella/transform/composite.h"
#include "lamella/transform/control_flow.h"

namespace lamella {

namespace {

// The placeholder for one example of a batched operand.
Tensor placeholder(RegionTrace& trace, const Value& operand) {
  return operand.is_number() ? trace.number_input(operand.type().dtype)
                             : trace.input(row_major(operand.type()));
}

std::vector<Batched> all_batched(const std::vector<Tensor>& tensors) {
  std::vector<Batched> batched;
  for (const Tensor& tensor : tensors) batched.push_back({in_rows(tensor), true});
  return batched;
}

}  // namespace

Tensor in_rows(const Tensor& tensor) {
  if (tensor.type().layout == Layout::RowMajor) return tensor;
  return ops::with_layout(tensor, static_cast<int64_t>(Layout::RowMajor));
}

Tensor repeated(const Tensor& tensor, int64_t size) {
  Shape shape = tensor.shape();
  shape.insert(0, size);
  return ops::broadcast_to(tensor, shape);
}

TensorType row_major(const TensorType& type) {
  return {type.dtype, Layout::RowMajor, type.shape};
}

void Batcher::set_captured(const RegionTrace& trace) {
  for (size_t i = 0; i < trace.captured().size(); ++i) {
    set(trace.captured_inputs()[i], {Tensor(trace.captured()[i]), false});
  }
}

Batched Batcher::of(const Ref<Value>& value) const {
  if (const Batched* found = known_.find(value.get())) return *found;
  return {Tensor(value), false};
}

Tensor Batcher::stacked(const Ref<Value>& value) const {
  const Batched batched = of(value);
  return batched.is_batched ? batched.tensor : repeated(in_rows(batched.tensor), size_);
}

void Batcher::run(std::span<const Ref<Node>> nodes) {
  const WrittenNumbers written;
  for (const Ref<Node>& node : nodes) {
    std::vector<Batched> operands;
    bool any = false;
    for (const Ref<Value>& operand : node->operands()) {
      operands.push_back(of(operand));
      any = any || operands.back().is_batched;
    }
    const ProvenanceScope scope(node->provenance());
    std::vector<Batched> results;
    if (any) {
      results = batch(*node, operands);
    } else {
      std::vector<Value*> values;
      for (const Batched& operand : operands) values.push_back(operand.tensor.value().get());
      const Results same =
          current_recorder().record(node->op(), values, node->attributes_ref(), node->location());
      for (size_t i = 0; i < same.size(); ++i) results.push_back({Tensor(same[i]), false});
    }
    for (size_t i = 0; i < results.size(); ++i) {
      if (known_.find(node->result(i)) == nullptr) set(node->results()[i], std::move(results[i]));
    }
  }
}

std::vector<Batched> Batcher::batch(const Node& node, const std::vector<Batched>& operands) {
  const CallSiteScope site(node.location());
  const Batching& rule = opdef(node).fields().batch.value;
  std::vector<Batched> results;
  switch (rule.kind) {
    case BatchingKind::Scan:
      return batch_scan(node, operands);
    case BatchingKind::Branch:
      return batch_branch(node, operands);
    case BatchingKind::CustomGradient:
      return batch_custom_gradient(node, operands);
    case BatchingKind::Rule: {
      std::vector<Tensor> tensors;
      std::vector<bool> batched;
      for (const Batched& operand : operands) {
        tensors.push_back(operand.tensor);
        batched.push_back(operand.is_batched);
      }
      const BatchCall call(node, std::move(tensors), std::move(batched), size_, *this);
      results = all_batched(rule.function(call));
      LAMELLA_CHECK(results.size() == node.results().size());
      for (size_t i = 0; i < results.size(); ++i) {
        LAMELLA_CHECK(results[i].tensor.shape() == call.result_shape(i));
      }
    }
  }
  return results;
}

std::vector<Tensor> Batcher::through_composite(const BatchCall& call) {
  const Node& node = call.node();
  RegionTrace trace("vmap");
  Batcher inner(size_);
  std::vector<Tensor> results;
  {
    const RecorderScope scope(trace);
    std::vector<Tensor> operands;
    std::vector<Value*> values;
    for (size_t i = 0; i < call.operand_count(); ++i) {
      operands.push_back(call.operand(i));
      if (call.is_batched(i)) {
        operands[i] = placeholder(trace, *node.operand(i));
        inner.set(operands[i].value(), {call.operand(i), true});
      }
      values.push_back(operands[i].value().get());
    }
    const Ref<Node> example =
        make_inferred_node(node.op(), values, node.attributes_ref(), node.location());
    results = expand_composite(*example, std::move(operands));
    for (Tensor& result : results) result = Tensor(trace.inside(result.value()));
  }
  inner.set_captured(trace);
  inner.run(trace.tape());
  std::vector<Tensor> batched;
  for (const Tensor& result : results) batched.push_back(inner.stacked(result.value()));
  return batched;
}

std::vector<Tensor> Batcher::one_by_one(const BatchCall& call) {
  const Node& node = call.node();
  std::vector<Tensor> sequences;
  for (size_t i = 0; i < call.operand_count(); ++i) {
    if (call.is_batched(i)) sequences.push_back(call.operand(i));
  }
  const ScanBody one = [&](const std::vector<Tensor>&, const std::vector<Tensor>& slices) {
    size_t slice = 0;
    std::vector<Tensor> operands;
    for (size_t i = 0; i < call.operand_count(); ++i) {
      operands.push_back(call.is_batched(i) ? slices[slice++] : call.operand(i));
    }
    return ScanResult{.carried = {}, .stacked = call.record(operands)};
  };
  return scan(one, {}, sequences, {}, node.location()).stacked;
}

}  // namespace lamella
