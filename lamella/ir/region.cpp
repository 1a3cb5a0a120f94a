// Copying nodes into regions, recording them, and finding equal ones.
#include "lamella/ir/region.h"

#include <algorithm>

#include <fmt/format.h>

#include "lamella/ir/text.h"
#include "lamella/ir/window.h"

namespace lamella {

namespace {

// Makes the nodes of a graph again over new placeholders.
class Copier {
 public:
  Graph graph;

  void add_input(const Value& original, TensorType type) {
    Ref<Value> input = original.is_number() ? Value::number_input(type.dtype) : Value::input(type);
    made_[&original] = input;
    graph.inputs.push_back(std::move(input));
  }

  void add_node(const Node& node, Ref<const Attributes> attributes) {
    std::vector<Ref<Value>> held;
    std::vector<Value*> operands;
    for (const Ref<Value>& operand : node.operands()) {
      held.push_back(mapped(operand));
      operands.push_back(held.back().get());
    }
    const ProvenanceScope scope(node.provenance());
    Ref<Node> made =
        make_inferred_node(node.op(), operands, std::move(attributes), node.location());
    // A result that is given as an input stays one.
    for (size_t i = 0; i < node.results().size(); ++i)
      made_.insert(node.result(i), made->results()[i]);
    graph.nodes.push_back(std::move(made));
  }

  void set(const Value& original, Ref<Value> copy) { made_[&original] = std::move(copy); }
  void add_output(const Ref<Value>& value) { graph.outputs.push_back(mapped(value)); }

 private:
  Ref<Value> mapped(const Ref<Value>& value) {
    if (const Ref<Value>* found = made_.find(value.get())) return *found;
    LAMELLA_CHECK(value->is_number() && value->state() != Value::State::NumberInput);
    return value;
  }

  PointerMap<Value, Ref<Value>> made_;
};

// What a graph computes in words, and without its sizes.
struct RegionKey {
  std::vector<uint64_t> words, structure;
  std::vector<int64_t> sizes;
  bool concrete = true;  // whether no size is a symbol

  void add(uint64_t word) {
    words.push_back(word);
    structure.push_back(word);
  }
  void add_size(Dim size) {
    words.push_back(static_cast<uint64_t>(size.bits()));
    // Sizes 0 and 1 change which rules apply.
    structure.push_back(size.is(0) || size.is(1) ? static_cast<uint64_t>(size.bits())
                                                 : uint64_t{1} << 62);
    concrete = concrete && size.known();
    if (concrete) sizes.push_back(size.value());
  }
  void add_type(const TensorType& type) {
    add(static_cast<uint64_t>(type.dtype) << 16 | static_cast<uint64_t>(type.layout) << 8 |
        type.shape.size());
    for (Dim size : type.shape) add_size(size);
  }
};

RegionKey key_of(const Graph& graph) {
  RegionKey key;
  PointerMap<Value, uint64_t> numbers;
  const auto number = [&](const Value* value) {
    return numbers.insert(value, numbers.size()).first;
  };
  const auto add_operand = [&](const Value* value) {
    if (value->state() == Value::State::Scalar) {
      key.add(uint64_t{1} << 40 | static_cast<uint64_t>(value->type().dtype));
      key.add(value->scalar_bits());
    } else if (value->state() == Value::State::Size) {
      key.add(uint64_t{1} << 41 | static_cast<uint64_t>(value->type().dtype));
      key.add_size(value->size_expression());
    } else {
      key.add(number(value));
    }
  };
  for (const Ref<Value>& input : graph.inputs) {
    key.add(uint64_t{input->is_number()} << 42 | number(input.get()));
    key.add_type(input->type());
  }
  for (const Ref<Node>& node : graph.nodes) {
    key.add(uint64_t{node->op().id()} << 32 | node->operands().size() << 8 |
            node->results().size());
    for (const Ref<Value>& operand : node->operands()) add_operand(operand.get());
    for (const Ref<Value>& result : node->results()) number(result.get());
    if (node->attributes() == nullptr) continue;
    key.words.push_back(node->attributes()->digest().low);
    key.words.push_back(node->attributes()->digest().high);
    key.structure.push_back(node->attributes()->digest_without_sizes().low);
    key.structure.push_back(node->attributes()->digest_without_sizes().high);
    if (key.concrete) append_sizes(node->attributes(), key.sizes);
  }
  for (const Ref<Value>& output : graph.outputs) add_operand(output.get());
  return key;
}

Hash128 digest(const std::vector<uint64_t>& words) {
  Hasher hasher;
  for (uint64_t word : words) hasher.add(word);
  return hasher.digest();
}

thread_local std::vector<Tensor> turns_of_thread;

}  // namespace

bool mean_the_same(const Ref<const Attributes>& a, const Ref<const Attributes>& b) {
  const auto same_value = [](const AttributeValue& x, const AttributeValue& y) {
    const auto* object = std::get_if<Ref<AttributeObject>>(&x);
    const auto* other = std::get_if<Ref<AttributeObject>>(&y);
    if (object == nullptr || other == nullptr || !*object || !*other) return x == y;
    return (*object)->means_the_same(**other);
  };
  if (a.get() == b.get()) return true;
  return a && b && a->digest() == b->digest() &&
         std::ranges::equal(a->values(), b->values(), same_value);
}

// The identity says all but what gradient rules do.
bool Region::means_the_same(const AttributeObject& other) const {
  const auto* region = dynamic_cast<const Region*>(&other);
  return region != nullptr && identity_ == region->identity_ &&
         std::ranges::equal(graph_.nodes, region->graph_.nodes, [](const auto& a, const auto& b) {
           return mean_the_same(a->attributes_ref(), b->attributes_ref());
         });
}

Region::Region(Graph graph) : graph_(std::move(graph)) {
  RegionKey key = key_of(graph_);
  if (key.concrete) sizes_ = std::move(key.sizes);
  identity_ = digest(key.words);
  structure_ = digest(key.structure);
}

Ref<Region> Region::make(std::span<const Ref<Value>> inputs, std::span<const Ref<Node>> nodes,
                         std::span<const Ref<Value>> outputs) {
  // What is given is not computed, even if a node could.
  PointerMap<Value, bool> given(inputs.size());
  for (const Ref<Value>& input : inputs) given.insert(input.get());
  Copier copier;
  for (const Ref<Value>& input : inputs) copier.add_input(*input, input->type());
  for (const Ref<Node>& node : needed_nodes(nodes, outputs, given)) {
    copier.add_node(*node, node->attributes_ref());
  }
  for (const Ref<Value>& output : outputs) copier.add_output(output);
  return Ref<Region>(new Region(std::move(copier.graph)));
}

Graph Region::copy() const {
  Copier copier;
  for (const Ref<Value>& input : graph_.inputs) copier.add_input(*input, input->type());
  for (const Ref<Node>& node : graph_.nodes) copier.add_node(*node, node->attributes_ref());
  for (const Ref<Value>& output : graph_.outputs) copier.add_output(output);
  return std::move(copier.graph);
}

Ref<AttributeObject> Region::with_sizes(std::span<const Dim> sizes) const {
  SizeReader reader(sizes);
  Copier copier;
  const auto set_size = [&](const Value& value) {
    if (value.state() == Value::State::Size && value.size_expression().known()) {
      copier.set(value, Value::size(value.type().dtype, reader.next()));
    }
  };
  for (const Ref<Value>& input : graph_.inputs) {
    TensorType type = input->type();
    type.shape = reader.next(type.shape);
    copier.add_input(*input, type);
  }
  for (const Ref<Node>& node : graph_.nodes) {
    for (const Ref<Value>& operand : node->operands()) set_size(*operand);
    copier.add_node(*node, lamella::with_sizes(node->attributes_ref(), reader));
  }
  for (const Ref<Value>& output : graph_.outputs) {
    set_size(*output);
    copier.add_output(output);
  }
  return Ref<AttributeObject>(new Region(std::move(copier.graph)));
}

std::string Region::description() const {
  return "region " + print(graph_);
}

RegionTrace::RegionTrace(std::string_view op, Invariants invariants)
    : op_(op),
      invariants_(invariants),
      outer_(&current_recorder()),
      gradient_order_(outer_->gradient_order()),
      window_order_(Window::of_thread().gradient_order()),
      gradient_depth_(Window::of_thread().gradient_depth()) {}

int RegionTrace::gradient_order() const {
  return gradient_order_ + Window::of_thread().gradient_order() - window_order_;
}

bool RegionTrace::knows(const Value& value) const {
  return known_.contains(&value) || outer_ == nullptr || outer_->knows(value);
}

void RegionTrace::close() {
  invariants_ = Invariants::Inside;
  outer_ = nullptr;
}

void RegionTrace::forget_captured() {
  for (Ref<Value>& value : captured_) value.reset();
  for (HeldValue& value : captured_held_) value.reset();
  find_known();
}

void RegionTrace::cut_back(const Mark& mark) {
  inputs_.resize(mark.inputs);
  captured_.resize(mark.captured);
  captured_inputs_.resize(mark.captured);
  captured_held_.resize(mark.captured);
  nodes_.resize(mark.nodes);
  find_known();
}

void RegionTrace::find_known() {
  PointerMap<Value, Ref<Value>> known(known_.size());
  for (const auto* list : {&inputs_, &captured_inputs_}) {
    for (const Ref<Value>& value : *list) known[value.get()] = value;
  }
  for (size_t i = 0; i < captured_.size(); ++i) {
    if (captured_[i]) known[captured_[i].get()] = captured_inputs_[i];
  }
  for (const Ref<Node>& node : nodes_) {
    for (const Ref<Value>& result : node->results()) known[result.get()] = result;
  }
  known_ = std::move(known);
}

Tensor RegionTrace::input(const TensorType& type) {
  inputs_.push_back(Value::input(type));
  known_[inputs_.back().get()] = inputs_.back();
  return Tensor(inputs_.back());
}

Tensor RegionTrace::number_input(DType dtype) {
  inputs_.push_back(Value::number_input(dtype));
  known_[inputs_.back().get()] = inputs_.back();
  return Tensor(inputs_.back());
}

Ref<Value> RegionTrace::inside(const Ref<Value>& value) {
  const bool constant = value->state() == Value::State::Size ||
                        (value->state() == Value::State::Scalar && value->written());
  if (constant) return value;
  if (const Ref<Value>* found = known_.find(value.get())) return *found;
  if (value->state() == Value::State::Failed) {
    fail(ErrorKind::Value, "[{}] a tensor that the body reads was never computed: its run failed",
         op_);
  }
  if (outer_ != nullptr && !outer_->knows(*value)) {
    fail(
        ErrorKind::Value,
        "[{}] the body reads a value of another loop's or branch's body, which does not exist here",
        op_);
  }
  captured_.push_back(value);
  captured_held_.push_back(value->is_number() ? HeldValue() : HeldValue(value));
  captured_inputs_.push_back(value->is_number() ? Value::number_input(value->type().dtype)
                                                : Value::input(value->type()));
  known_[value.get()] = captured_inputs_.back();
  known_[captured_inputs_.back().get()] = captured_inputs_.back();
  return captured_inputs_.back();
}

// Whether nothing of the trace is read. Inside a gradient that is taken in the body, everything is
// on the trace's own tape.
bool RegionTrace::is_invariant(std::span<Value* const> operands) const {
  return invariants_ == Invariants::Hoisted &&
         Window::of_thread().gradient_depth() == gradient_depth_ &&
         std::all_of(operands.begin(), operands.end(), [&](const Value* operand) {
           const Ref<Value>* stands_for_it = known_.find(operand);
           // What reads integers may find one out of range: only if a turn is made at all.
           const bool is_index = !operand->is_number() && !is_float(operand->type().dtype);
           return (stands_for_it == nullptr || stands_for_it->get() != operand) && !is_index;
         });
}

Results RegionTrace::record(const Operator& op, std::span<Value* const> operands,
                            Ref<const Attributes> attributes, const SourceLocation& location) {
  if (is_invariant(operands)) {
    RecorderScope scope(*outer_);
    return outer_->record(op, operands, std::move(attributes), location);
  }
  std::vector<Ref<Value>> held;
  std::vector<Value*> inner;
  for (Value* operand : operands) {
    held.push_back(inside(Ref<Value>(operand)));
    inner.push_back(held.back().get());
  }
  Ref<Node> node = make_inferred_node(op, inner, std::move(attributes), location);
  for (const Ref<Value>& result : node->results()) known_[result.get()] = result;
  nodes_.push_back(node);
  return Results(node->results());
}

const std::vector<Tensor>& current_turns() {
  return turns_of_thread;
}

Tensor current_turn() {
  return turns_of_thread.empty() ? Tensor() : turns_of_thread.back();
}

TurnScope::TurnScope(Tensor turn) {
  turns_of_thread.push_back(std::move(turn));
}
TurnScope::~TurnScope() {
  turns_of_thread.pop_back();
}

}  // namespace lamella
