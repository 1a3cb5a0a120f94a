// Rebuilding nodes with regions without unread results.
#include "lamella/transform/prune.h"

#include <unordered_map>

#include "lamella/base/pointer_map.h"
#include "lamella/ir/region.h"
#include "lamella/ops/opdef.h"

namespace lamella {

namespace {

// How many of the first results must stay; nothing if the operator is not to be pruned.
std::optional<size_t> fixed_results(const Node& node) {
  const Lowering& lowering = opdef(node).lowering();
  if (lowering.kind != LoweringKind::Control) return std::nullopt;
  if (lowering.control == Control::Branch) return 0;
  if (lowering.control == Control::Scan) return static_cast<size_t>(node.attribute<int64_t>(1));
  return std::nullopt;
}

Ref<AttributeObject> with_outputs(const Region& region, const std::vector<size_t>& kept) {
  const Graph& graph = region.graph();
  std::vector<Ref<Value>> outputs;
  for (const size_t i : kept) outputs.push_back(graph.outputs[i]);
  return Region::make(graph.inputs, graph.nodes, outputs);
}

}  // namespace

void prune_regions(Graph& graph) {
  PointerMap<Value, bool> read;
  for (const Ref<Node>& node : graph.nodes) {
    for (const Ref<Value>& operand : node->operands()) read.insert(operand.get());
  }
  for (const Ref<Value>& output : graph.outputs) read.insert(output.get());
  std::unordered_map<const Value*, Ref<Value>> replaced;
  const auto now = [&](const Ref<Value>& value) {
    const auto found = replaced.find(value.get());
    return found == replaced.end() ? value : found->second;
  };
  std::vector<Ref<Node>> retired;  // keeps the keys of `replaced` alive
  for (Ref<Node>& node : graph.nodes) {
    std::vector<size_t> kept;
    const auto fixed = fixed_results(*node);
    for (size_t i = 0; i < node->results().size(); ++i) {
      if (!fixed || i < *fixed || read.contains(node->result(i))) kept.push_back(i);
    }
    const bool prunes = kept.size() < node->results().size();
    const bool moves =
        std::any_of(node->operands().begin(), node->operands().end(),
                    [&](const Ref<Value>& operand) { return replaced.contains(operand.get()); });
    if (!prunes && !moves) continue;
    Ref<const Attributes> attributes = node->attributes_ref();
    if (prunes) {
      std::vector<AttributeValue> values = attributes->values();
      for (AttributeValue& value : values) {
        const auto* object = std::get_if<Ref<AttributeObject>>(&value);
        const auto* region = object ? dynamic_cast<const Region*>(object->get()) : nullptr;
        if (region != nullptr) value = with_outputs(*region, kept);
      }
      attributes = make_attributes(std::move(values));
    }
    std::vector<Ref<Value>> held;
    std::vector<Value*> operands;
    for (const Ref<Value>& operand : node->operands()) {
      held.push_back(now(operand));
      operands.push_back(held.back().get());
    }
    std::vector<TensorType> types;
    for (const size_t i : kept) types.push_back(node->result(i)->type());
    const ProvenanceScope scope(node->provenance());
    Ref<Node> made = Node::make(node->op(), operands, attributes, types, node->location());
    for (size_t i = 0; i < kept.size(); ++i) {
      replaced[node->result(kept[i])] = made->results()[i];
    }
    retired.push_back(std::exchange(node, std::move(made)));
  }
  for (Ref<Value>& output : graph.outputs) output = now(output);
}

}  // namespace lamella
