// Gathering, keying and lowering a window.
#include "lamella/runtime/capture.h"

#include "lamella/base/pointer_map.h"
#include "lamella/transform/lowering.h"

namespace lamella {

namespace {

constexpr uint64_t kProduced = uint64_t{1} << 32;
constexpr uint64_t kFixed = uint64_t{1} << 33;
constexpr uint64_t kAnySize = uint64_t{1} << 62;

bool is_fixed(const Value& value) {
  return value.state() == Value::State::Size ||
         (value.state() == Value::State::Scalar && value.written());
}

void add_size(Capture& captured, Dim dim) {
  const auto size = static_cast<uint64_t>(dim.value());
  captured.words.push_back(size);
  captured.structure.push_back(size <= 1 ? size : kAnySize);
  captured.sizes.push_back(dim.value());
}

bool is_live(const Node& node, const std::vector<bool>& used) {
  if (node.is_kept()) return true;
  for (const Ref<Value>& result : node.results()) {
    if (result->handles() > 0 || used[result->mark]) return true;
  }
  return false;
}

bool is_output(const Node& node, const Value& result) {
  return node.is_kept() || result.handles() > 0;
}

void add_sizes(Capture& captured, const Shape& shape) {
  for (Dim dim : shape) add_size(captured, dim);
}

}  // namespace

Capture capture(std::span<const Ref<Node>> nodes) {
  Capture captured;
  uint32_t produced = 0;
  for (const Ref<Node>& node : nodes) {
    for (const Ref<Value>& result : node->results()) result->mark = produced++;
  }
  std::vector<bool> used(produced, false);
  for (size_t i = nodes.size(); i-- > 0;) {
    if (!is_live(*nodes[i], used)) continue;
    captured.nodes.push_back(nodes[i].get());
    for (const Ref<Value>& operand : nodes[i]->operands()) {
      if (operand->state() == Value::State::Pending) used[operand->mark] = true;
    }
  }
  std::reverse(captured.nodes.begin(), captured.nodes.end());
  produced = 0;
  for (Node* node : captured.nodes) {
    for (const Ref<Value>& result : node->results()) result->mark = produced++;
  }

  PointerMap<Value, uint32_t> leaf_number(captured.nodes.size());
  const auto leaf = [&](Value* value) {
    const auto [number, fresh] =
        leaf_number.insert(value, static_cast<uint32_t>(captured.leaves.size()));
    if (fresh) {
      captured.leaves.push_back(value);
      captured.leaf_kept.push_back(false);
      captured.leaf_references.push_back(0);
    }
    return number;
  };
  PointerMap<Value, uint32_t> fixed_number;
  const auto fixed = [&](Value* value) {
    const auto [number, fresh] =
        fixed_number.insert(value, static_cast<uint32_t>(captured.fixed_numbers.size()));
    if (fresh) captured.fixed_numbers.push_back(value);
    return number;
  };
  std::vector<uint64_t>& words = captured.words;
  words.reserve(captured.nodes.size() * 8);
  captured.structure.reserve(captured.nodes.size() * 8);
  const auto add = [&](uint64_t word) {
    words.push_back(word);
    captured.structure.push_back(word);
  };
  for (Node* node : captured.nodes) {
    add(uint64_t{node->op().id()} << 32 | node->operands().size() << 8 | node->results().size());
    for (const Ref<Value>& operand : node->operands()) {
      if (operand->state() == Value::State::Pending) {
        add(kProduced | operand->mark);
        continue;
      }
      if (is_fixed(*operand)) {
        add(kFixed | fixed(operand.get()));
        continue;
      }
      const uint32_t number = leaf(operand.get());
      if (node->is_kept()) captured.leaf_kept[number] = true;
      add(number);
    }
    if (const Attributes* attributes = node->attributes()) {
      words.push_back(attributes->digest().low);
      words.push_back(attributes->digest().high);
      captured.structure.push_back(attributes->digest_without_sizes().low);
      captured.structure.push_back(attributes->digest_without_sizes().high);
    }
    uint64_t outputs = 0;
    for (size_t i = 0; i < node->results().size(); ++i) {
      if (i > 0 && i % 64 == 0) {
        add(outputs);
        outputs = 0;
      }
      if (!is_output(*node, *node->result(i))) continue;
      outputs |= uint64_t{1} << (i % 64);
      captured.outputs.push_back(node->result(i));
    }
    add(outputs);
  }
  for (const Value* value : captured.leaves) {
    const TensorType& type = value->type();
    add(uint64_t{value->is_number()} << 32 | static_cast<uint64_t>(type.dtype) << 16 |
        static_cast<uint64_t>(type.layout) << 8 | type.shape.size());
    add_sizes(captured, type.shape);
  }
  for (const Value* value : captured.fixed_numbers) {
    const bool size = value->state() == Value::State::Size;
    add(kFixed | uint64_t{size} << 8 | static_cast<uint64_t>(value->type().dtype));
    if (size) {
      add_size(captured, value->size_expression());
    } else {
      add(value->scalar_bits());
    }
  }
  for (Node* node : captured.nodes) append_sizes(node->attributes(), captured.sizes);
  // Every node of the window holds its operands, live or dead.
  for (const Ref<Node>& node : nodes) {
    for (const Ref<Value>& operand : node->operands()) {
      const uint32_t* number = leaf_number.find(operand.get());
      if (number != nullptr) ++captured.leaf_references[*number];
    }
  }
  return captured;
}

LoweredCapture lower(const Capture& captured, std::span<const Dim> sizes) {
  LoweredCapture lowered;
  SizeReader reader(sizes);
  std::unordered_map<const Value*, Ref<Value>> mapped;
  for (const Value* value : captured.leaves) {
    TensorType type = value->type();
    type.shape = reader.next(type.shape);
    Ref<Value> input = value->is_number() ? Value::number_input(type.dtype) : Value::input(type);
    mapped[value] = input;
    lowered.graph.inputs.push_back(std::move(input));
  }
  for (const Value* value : captured.fixed_numbers) {
    const DType dtype = value->type().dtype;
    mapped[value] = value->state() == Value::State::Size
                        ? Value::size(dtype, reader.next())
                        : Value::scalar(dtype, value->scalar_bits());
  }
  LoweringRecorder recorder(lowered.graph);
  RecorderScope scope(recorder);
  const ProvenanceScope outer;
  int32_t number = 0;
  for (const Node* node : captured.nodes) {
    std::vector<Value*> operands;
    for (const Ref<Value>& operand : node->operands())
      operands.push_back(mapped.at(operand.get()).get());
    Provenance provenance = node->provenance();
    provenance.operation = number++;
    set_current_provenance(provenance);
    const Results results = recorder.record(
        node->op(), operands, with_sizes(node->attributes_ref(), reader), node->location());
    for (size_t i = 0; i < results.size(); ++i) {
      mapped[node->result(i)] = results[i];
      lowered.types.push_back(results[i]->type());
    }
  }
  for (const Value* output : captured.outputs) lowered.graph.outputs.push_back(mapped.at(output));
  lowered.shared_nodes = recorder.shared_nodes();
  remove_dead_nodes(lowered.graph);
  return lowered;
}

}  // namespace lamella
