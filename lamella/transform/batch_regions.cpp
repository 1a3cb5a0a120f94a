// Batches of nodes that hold graphs or a gradient rule: the loop, the branch or the rule stays one,
// over all examples.
#include "lamella/ops/custom_gradient.h"
#include "lamella/ops/functions.h"
#include "lamella/transform/batcher.h"
#include "lamella/transform/control_flow.h"

namespace lamella {

namespace {

using Flags = std::vector<bool>;

Flags flags_of(const std::vector<Batched>& operands) {
  Flags flags;
  for (const Batched& operand : operands) flags.push_back(operand.is_batched);
  return flags;
}

// Which of a graph's outputs depend on an input that is batched.
Flags depending_outputs(const Graph& graph, const Flags& inputs) {
  PointerMap<Value, bool> depends;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i]) depends.insert(graph.inputs[i].get());
  }
  for (const Ref<Node>& node : graph.nodes) {
    const auto operands = node->operands();
    const bool any = std::any_of(operands.begin(), operands.end(), [&](const Ref<Value>& operand) {
      return depends.contains(operand.get());
    });
    if (!any) continue;
    for (const Ref<Value>& result : node->results()) depends.insert(result.get());
  }
  Flags outputs;
  for (const Ref<Value>& output : graph.outputs) outputs.push_back(depends.contains(output.get()));
  return outputs;
}

// The number of the turn if the graph is recorded in a loop's body; a region's first input.
Batched turn_of(const Graph& graph) {
  const Tensor turn = current_turn();
  return {turn.defined() ? turn : Tensor(graph.inputs[0]), false};
}

// Records a region's graph for all examples; `inputs` are those behind the number of the turn.
// Outputs whose flag is set are given with the batch as axis 0.
std::vector<Tensor> run_region(const Graph& graph, const std::vector<Batched>& inputs,
                               const Flags& batched_outputs, int64_t size) {
  Batcher batcher(size);
  batcher.set(graph.inputs[0], turn_of(graph));
  for (size_t i = 0; i < inputs.size(); ++i) batcher.set(graph.inputs[i + 1], inputs[i]);
  batcher.run(graph.nodes);
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const Ref<Value>& output = graph.outputs[i];
    outputs.push_back(batched_outputs[i] ? batcher.stacked(output) : batcher.of(output).tensor);
  }
  return outputs;
}

Flags or_of(Flags a, const Flags& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] = a[i] || b[i];
  return a;
}

// A gradient rule for one example, for a batch of them.
class BatchedGradient final : public CustomGradientRule {
 public:
  BatchedGradient(const Node& node, Flags batched, int64_t size)
      : op_(node.op()),
        attributes_(node.attributes_ref()),
        batched_(std::move(batched)),
        size_(size) {
    for (const Ref<Value>& operand : node.operands())
      examples_.push_back(row_major(operand->type()));
  }

  void apply(VjpCall& call) const override {
    RegionTrace trace("vmap");
    Batcher batcher(size_);
    const auto example = [&](const TensorType& type, const Tensor& all) {
      const Tensor placeholder = trace.input(type);
      batcher.set(placeholder.value(), {all, true});
      return placeholder;
    };
    const size_t count = examples_.size(), first_result = count - call.node().results().size();
    std::vector<Tensor> gradients;
    {
      const RecorderScope scope(trace);
      std::vector<Tensor> operands, cotangents;
      std::vector<Value*> values;
      std::vector<bool> needed;
      for (size_t i = 0; i < count; ++i) {
        operands.push_back(batched_[i] ? example(examples_[i], call.operand(i)) : call.operand(i));
        values.push_back(operands.back().value().get());
        needed.push_back(call.needs(i));
      }
      for (size_t i = first_result; i < count; ++i) {
        const size_t result = i - first_result;
        cotangents.push_back(
            call.has_cotangent(result) ? example(examples_[i], call.cotangent(result)) : Tensor());
      }
      const Ref<Node> node = make_inferred_node(op_, values, attributes_, call.node().location());
      VjpCall inner(*node, std::move(cotangents), std::move(needed));
      opdef(op_).fields().vjp.value.function(inner);
      gradients = std::move(inner.gradients());
      for (Tensor& gradient : gradients) {
        if (gradient.defined()) gradient = Tensor(trace.inside(gradient.value()));
      }
    }
    batcher.set_captured(trace);
    batcher.run(trace.tape());
    for (size_t i = 0; i < count; ++i) {
      if (!gradients[i].defined()) continue;
      const Tensor all = batcher.stacked(gradients[i].value());
      call.give(i, batched_[i] ? all : ops::sum(all, {0}));
    }
  }

 private:
  const Operator& op_;
  Ref<const Attributes> attributes_;
  std::vector<TensorType> examples_;
  Flags batched_;
  int64_t size_;
};

}  // namespace

std::vector<Batched> Batcher::batch_scan(const Node& node, const std::vector<Batched>& operands) {
  const Graph& body = region_of(*node.attributes(), 0).graph();
  const auto carried = static_cast<size_t>(node.attribute<int64_t>(1));
  const auto sequences = static_cast<size_t>(node.attribute<int64_t>(2));
  const int64_t length = node.attribute<Shape>(3)[0].value();
  // What becomes batched in one turn is so from the first on.
  Flags inputs{false};
  for (const Batched& operand : operands) inputs.push_back(operand.is_batched);
  Flags outputs = depending_outputs(body, inputs);
  for (bool grows = true; grows;) {
    grows = false;
    for (size_t i = 0; i < carried; ++i) {
      grows = grows || (outputs[i] && !inputs[i + 1]);
      inputs[i + 1] = inputs[i + 1] || outputs[i];
    }
    if (grows) outputs = depending_outputs(body, inputs);
  }
  for (size_t i = 0; i < carried; ++i) outputs[i] = inputs[i + 1];

  std::vector<Tensor> initial, sliced;
  for (size_t i = 0; i < carried; ++i) {
    const Batched& begin = operands[i];
    const bool repeat = inputs[i + 1] && !begin.is_batched;
    initial.push_back(repeat ? repeated(in_rows(begin.tensor), size_) : begin.tensor);
  }
  for (size_t i = carried; i < carried + sequences; ++i) {
    // The turns come first: they are what is cut.
    const Batched& sequence = operands[i];
    sliced.push_back(sequence.is_batched ? ops::moveaxis(sequence.tensor, 1, 0) : sequence.tensor);
  }
  const ScanBody turn = [&](const std::vector<Tensor>& state, const std::vector<Tensor>& slices) {
    std::vector<Batched> given;
    for (size_t i = 0; i < carried; ++i) given.push_back({state[i], inputs[i + 1]});
    for (size_t i = 0; i < sequences; ++i) given.push_back({slices[i], inputs[carried + i + 1]});
    given.insert(given.end(), operands.begin() + static_cast<std::ptrdiff_t>(carried + sequences),
                 operands.end());
    const std::vector<Tensor> results = run_region(body, given, outputs, size_);
    const auto end = results.begin() + static_cast<std::ptrdiff_t>(carried);
    return ScanResult{.carried = {results.begin(), end}, .stacked = {end, results.end()}};
  };
  const ScanResult all =
      scan(turn, initial, sliced,
           {.length = length,
            .direction = node.attribute<bool>(4) ? Direction::Reverse : Direction::Forward,
            .residuals = residuals_of(node)},
           node.location());
  std::vector<Batched> results;
  for (size_t i = 0; i < carried; ++i) results.push_back({all.carried[i], outputs[i]});
  for (size_t i = carried; i < outputs.size(); ++i) {
    const Tensor& stacked = all.stacked[i - carried];
    results.push_back({outputs[i] ? ops::moveaxis(stacked, 1, 0) : stacked, outputs[i]});
  }
  return results;
}

std::vector<Batched> Batcher::batch_branch(const Node& node, const std::vector<Batched>& operands) {
  if (operands[0].is_batched) {
    // Examples go different ways: each takes its own.
    std::vector<Tensor> tensors;
    for (const Batched& operand : operands) tensors.push_back(operand.tensor);
    const BatchCall call(node, std::move(tensors), flags_of(operands), size_, *this);
    std::vector<Batched> results;
    for (const Tensor& tensor : one_by_one(call)) results.push_back({tensor, true});
    return results;
  }
  const Graph& then = region_of(*node.attributes(), 0).graph();
  const Graph& otherwise = region_of(*node.attributes(), 1).graph();
  Flags inputs = flags_of(operands);
  inputs[0] = false;  // the number of the turn stands in its place
  const Flags outputs =
      or_of(depending_outputs(then, inputs), depending_outputs(otherwise, inputs));
  const std::vector<Batched> captured(operands.begin() + 1, operands.end());
  const auto taken = [&](const Graph& graph) {
    return [&] { return run_region(graph, captured, outputs, size_); };
  };
  const std::vector<Tensor> tensors =
      cond(operands[0].tensor, taken(then), taken(otherwise), node.location());
  std::vector<Batched> results;
  for (size_t i = 0; i < tensors.size(); ++i) results.push_back({in_rows(tensors[i]), outputs[i]});
  return results;
}

std::vector<Batched> Batcher::batch_custom_gradient(const Node& node,
                                                    const std::vector<Batched>& operands) {
  const int64_t first_result = node.attribute<int64_t>(0);
  std::vector<Tensor> values;
  Flags batched = flags_of(operands);
  for (size_t i = 0; i < operands.size(); ++i) {
    const bool result = static_cast<int64_t>(i) >= first_result;
    const bool repeat = result && !operands[i].is_batched;
    values.push_back(repeat ? repeated(in_rows(operands[i].tensor), size_) : operands[i].tensor);
    batched[i] = batched[i] || result;
  }
  std::vector<Batched> results;
  for (const Tensor& tensor : ops::with_custom_gradient(
           values, first_result,
           Ref<AttributeObject>(new BatchedGradient(node, std::move(batched), size_)))) {
    results.push_back({tensor, true});
  }
  return results;
}

}  // namespace lamella
