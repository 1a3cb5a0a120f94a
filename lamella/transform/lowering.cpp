// Recording into a graph with expansion of composites and sharing of equal nodes.
#include "lamella/transform/lowering.h"

#include "lamella/ir/call_site.h"
#include "lamella/ir/region.h"
#include "lamella/ops/functions.h"
#include "lamella/transform/composite.h"

namespace lamella {

namespace {

Hash128 digest_of(const Operator& op, std::span<Value* const> operands,
                  const Attributes* attributes) {
  Hasher hasher;
  hasher.add(op.id());
  for (const Value* operand : operands) hasher.add(reinterpret_cast<uintptr_t>(operand));
  if (attributes != nullptr) hasher.add(attributes->digest());
  return hasher.digest();
}

bool is_same_node(const Node& node, const Operator& op, std::span<Value* const> operands,
                  const Attributes* attributes) {
  if (&node.op() != &op || node.operands().size() != operands.size()) return false;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (node.operand(i) != operands[i]) return false;
  }
  if ((node.attributes() == nullptr) != (attributes == nullptr)) return false;
  return attributes == nullptr || *node.attributes() == *attributes;
}

// The attributes with regions only: a gradient rule holds what its backward pass needs, and a
// compiled graph must not keep that alive.
Ref<const Attributes> without_rules(const Attributes& attributes) {
  std::vector<AttributeValue> values = attributes.values();
  for (AttributeValue& value : values) {
    auto* object = std::get_if<Ref<AttributeObject>>(&value);
    if (object != nullptr && dynamic_cast<const Region*>(object->get()) == nullptr) object->reset();
  }
  return make_attributes(std::move(values));
}

}  // namespace

Value* LoweringRecorder::intern_number(Value* value) {
  Hasher hasher;
  hasher.add(static_cast<uint64_t>(value->type().dtype));
  const bool size = value->state() == Value::State::Size && !value->size_expression().known();
  hasher.add(size);
  hasher.add(size ? static_cast<uint64_t>(value->size_expression().bits()) : value->scalar_bits());
  return numbers_.try_emplace(hasher.digest(), Ref<Value>(value)).first->second.get();
}

Results LoweringRecorder::record(const Operator& abstract_op, std::span<Value* const> given,
                                 Ref<const Attributes> attributes, const SourceLocation& location) {
  const OpDef& op = opdef(abstract_op);
  std::vector<Value*> operands(given.begin(), given.end());
  for (Value*& operand : operands) {
    const Value::State state = operand->state();
    if (state == Value::State::Scalar || state == Value::State::Size)
      operand = intern_number(operand);
  }
  if (op.lowering().kind == LoweringKind::Composite) {
    return expand(op, operands, attributes, location);
  }
  if (op.lowering().kind == LoweringKind::Control) attributes = without_rules(*attributes);
  const Hash128 digest = digest_of(op, operands, attributes.get());
  const auto [first, last] = existing_.equal_range(digest);
  for (auto entry = first; entry != last; ++entry) {
    if (is_same_node(*entry->second, op, operands, attributes.get())) {
      ++shared_nodes_;
      return Results(entry->second->results());
    }
  }
  Ref<Node> node = make_inferred_node(op, operands, attributes, location);
  if (node->results().size() == 1) {
    if (Ref<Value> simpler = simplify(op, operands, attributes.get(), node->result()->type())) {
      const Ref<Value> one[] = {std::move(simpler)};
      return Results(one);
    }
  }
  existing_.emplace(digest, node.get());
  graph_.nodes.push_back(node);
  return Results(node->results());
}

Results LoweringRecorder::expand(const OpDef& op, std::span<Value* const> operands,
                                 const Ref<const Attributes>& attributes,
                                 const SourceLocation& location) {
  RecorderScope scope(*this);
  const CallSiteScope site(
      location);  // what the composite records comes from the line that called it
  const Ref<Node> declared = make_inferred_node(op, operands, attributes, location);
  std::vector<Tensor> tensors;
  for (Value* operand : operands) tensors.emplace_back(Ref<Value>(operand));
  std::vector<Tensor> results = expand_composite(*declared, std::move(tensors));
  std::vector<Ref<Value>> values;
  for (size_t i = 0; i < results.size(); ++i) {
    const TensorType& promised = declared->result(i)->type();
    LAMELLA_CHECK(results[i].shape() == promised.shape);
    if (promised.shape.size() >= 3 && results[i].type().layout != promised.layout) {
      results[i] =
          ops::with_layout(Operand(results[i]).at(location), static_cast<int64_t>(promised.layout));
    }
    values.push_back(results[i].value());
  }
  return Results(values);
}

Graph lower(const Graph& graph) {
  Graph lowered{.inputs = graph.inputs, .nodes = {}, .outputs = {}};
  LoweringRecorder recorder(lowered);
  RecorderScope scope(recorder);
  std::unordered_map<const Value*, Ref<Value>> made;
  const auto mapped = [&](const Ref<Value>& value) {
    const auto found = made.find(value.get());
    return found == made.end() ? value : found->second;
  };
  const ProvenanceScope outer;
  int32_t number = 0;
  for (const Ref<Node>& node : graph.nodes) {
    Provenance provenance = node->provenance();
    provenance.operation = number++;
    set_current_provenance(provenance);
    std::vector<Ref<Value>> held;
    std::vector<Value*> operands;
    for (const Ref<Value>& operand : node->operands()) {
      held.push_back(mapped(operand));
      operands.push_back(held.back().get());
    }
    const Results results =
        recorder.record(node->op(), operands, node->attributes_ref(), node->location());
    for (size_t i = 0; i < results.size(); ++i) made[node->result(i)] = results[i];
  }
  for (const Ref<Value>& output : graph.outputs) lowered.outputs.push_back(mapped(output));
  remove_dead_nodes(lowered);
  return lowered;
}

}  // namespace lamella
