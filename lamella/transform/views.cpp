// Resolving chains of views.
#include "lamella/transform/views.h"

#include <unordered_map>

#include "lamella/ops/reduction.h"

namespace lamella {

namespace {

ViewedValue whole(Value* value) {
  ViewedValue viewed{.base = value};
  for (uint32_t i = 0; i < value->type().shape.size(); ++i) {
    viewed.axis.push_back(static_cast<int8_t>(i));
    viewed.step.push_back(1);
  }
  return viewed;
}

// Result axes in terms of operand axes; false for a reshape that merges or splits axes.
bool map_of(const Node& node, ViewMap& map) {
  map = opdef(node).lowering().view(node);
  if (!map.reshape) return true;
  const Shape& from = node.operand(0)->type().shape;
  const auto matched = match_shapes(node.result()->type().shape, from);
  if (!matched) return false;
  map = ViewMap{};
  map.source_axis = *matched;
  map.step.resize(matched->size(), 1);
  map.start.resize(from.size(), 0);
  map.dynamic_start.resize(from.size(), -1);
  return true;
}

}  // namespace

std::optional<InlineVector<int8_t, kMaxRank>> match_shapes(const Shape& to, const Shape& from) {
  InlineVector<int8_t, kMaxRank> axes;
  uint32_t next = 0;
  for (uint32_t i = 0; i < to.size(); ++i) {
    if (to[i].is(1)) {
      axes.push_back(-1);
      continue;
    }
    while (next < from.size() && from[next].is(1)) ++next;
    if (next == from.size() || from[next] != to[i]) return std::nullopt;
    axes.push_back(static_cast<int8_t>(next++));
  }
  while (next < from.size() && from[next].is(1)) ++next;
  if (next != from.size()) return std::nullopt;
  return axes;
}

bool same_order(const Shape& shape, Layout a, Layout b) {
  if (a == b || shape.size() < 3) return true;
  const auto wide = [&](Layout layout) {
    Axes order;
    for (int64_t axis : physical_order(layout, rank(shape))) {
      if (!shape[static_cast<size_t>(axis)].is(1)) order.push_back(axis);
    }
    return order;
  };
  return wide(a) == wide(b);
}

InlineVector<Dim, kMaxRank> base_strides(const Value& base) {
  return strides_of(base.type());
}

namespace {

// From where to where a view may begin on an operand's axis without reaching beyond it.
std::pair<Dim, Dim> dynamic_range(const Node& view, const ViewMap& map, size_t axis) {
  const Dim size = view.operand(0)->type().shape[axis];
  for (size_t i = 0; i < map.source_axis.size(); ++i) {
    if (map.source_axis[i] != static_cast<int>(axis)) continue;
    const Dim length = view.result()->type().shape[i];
    if (length.is(0)) return {0, size};
    const Dim reach = (length - 1) * map.step[i];
    return map.step[i] < 0 ? std::pair(Dim(0) - reach, size - 1)
                           : std::pair(Dim(0), size - 1 - reach);
  }
  return {0, size - 1};
}

}  // namespace

ViewedValue resolve_views(Value* value) {
  const Node* node = value->producer();
  if (node == nullptr || opdef(*node).lowering().kind != LoweringKind::View) return whole(value);
  ViewMap map;
  if (!map_of(*node, map)) return whole(value);
  ViewedValue inner = resolve_views(node->operand(0));
  ViewedValue viewed{.base = inner.base, .offsets = std::move(inner.offsets)};
  for (size_t i = 0; i < map.source_axis.size(); ++i) {
    const int source = map.source_axis[i];
    const int base_axis = source < 0 ? -1 : inner.axis[static_cast<size_t>(source)];
    viewed.axis.push_back(static_cast<int8_t>(base_axis));
    viewed.step.push_back(base_axis < 0 ? 1
                                        : map.step[i] * inner.step[static_cast<size_t>(source)]);
  }
  for (size_t i = 0; i < map.start.size(); ++i) {
    const int base_axis = inner.axis[i];
    const int dynamic = map.dynamic_start[i];
    if (base_axis < 0 || (map.start[i].is(0) && dynamic < 0)) continue;
    viewed.offsets.push_back(
        {.axis = static_cast<int8_t>(base_axis),
         .start = map.start[i] * inner.step[i],
         .number = dynamic < 0 ? nullptr : node->operand(static_cast<size_t>(dynamic)),
         .multiplier = inner.step[i],
         .low = dynamic_range(*node, map, i).first,
         .high = dynamic_range(*node, map, i).second,
         .view = node});
  }
  return viewed;
}

ViewedValue resolve_views(Value* value, const Shape& broadcast) {
  ViewedValue viewed = resolve_views(value);
  const Shape& shape = value->type().shape;
  if (shape == broadcast) return viewed;
  const uint32_t shift = broadcast.size() - shape.size();
  ViewedValue result{.base = viewed.base, .offsets = std::move(viewed.offsets)};
  for (uint32_t i = 0; i < broadcast.size(); ++i) {
    const bool repeats = i < shift || (shape[i - shift].is(1) && !broadcast[i].is(1));
    result.axis.push_back(repeats ? int8_t{-1} : viewed.axis[i - shift]);
    result.step.push_back(repeats ? 1 : viewed.step[i - shift]);
  }
  return result;
}

bool reads_all_in_order(const ViewedValue& viewed, const Shape& shape) {
  if (!viewed.offsets.empty()) return false;
  const Shape& base = viewed.base->type().shape;
  int next = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i].is(1)) continue;
    if (viewed.axis[i] < 0 || viewed.step[i] != 1) return false;
    while (next < viewed.axis[i] && base[static_cast<size_t>(next)].is(1)) ++next;
    if (next != viewed.axis[i] || base[static_cast<size_t>(next)] != shape[i]) return false;
    ++next;
  }
  while (next < rank(base) && base[static_cast<size_t>(next)].is(1)) ++next;
  return next == rank(base);
}

Value* memory_owner(Value* value) {
  for (;;) {
    const Node* node = value->producer();
    if (node == nullptr || opdef(*node).lowering().kind != LoweringKind::View) return value;
    value = resolve_views(node->operand(0)).base;
  }
}

namespace {

bool lies_row_major(const Value& value) {
  return same_order(value.type().shape, value.type().layout, Layout::RowMajor);
}

// Whether a value has memory of its own that a view can point into.
bool has_memory(const Value& value) {
  if (value.is_number()) return false;
  const Node* node = value.producer();
  return node == nullptr || opdef(*node).lowering().kind != LoweringKind::Index;
}

class Legalizer {
 public:
  explicit Legalizer(Graph& graph) : graph_(graph) {}

  void run() {
    std::vector<Ref<Node>> old = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (const Ref<Node>& node : old) legalize(node);
    for (Ref<Value>& output : graph_.outputs) output = as_output(replaced(output.get()));
  }

 private:
  Ref<Value> replaced(Value* value) const {
    const auto found = replacements_.find(value);
    return found == replacements_.end() ? Ref<Value>(value) : found->second;
  }

  Ref<Value> copy(const Ref<Value>& value, Layout layout) {
    static const Operator& op = find_operator("with_layout");
    TensorType type = value->type();
    type.layout = layout;
    Value* const operands[] = {value.get()};
    const TensorType results[] = {type};
    Ref<Node> node =
        Node::make(op, operands, make_attributes({static_cast<int64_t>(layout)}), results, {});
    graph_.nodes.push_back(node);
    return node->results()[0];
  }

  Ref<Value> as_output(Ref<Value> value) {
    const ViewedValue viewed = resolve_views(value.get());
    const bool direct = viewed.base == value.get();
    if (has_memory(*viewed.base) && (direct || (reads_all_in_order(viewed, value->type().shape) &&
                                                lies_row_major(*viewed.base)))) {
      return value;
    }
    const Node* producer = value->producer();
    const ProvenanceScope scope(producer == nullptr ? Provenance() : producer->provenance());
    return copy(value, value->type().layout);
  }

  Ref<Value> as_reshape_operand(Ref<Value> value) {
    const ViewedValue viewed = resolve_views(value.get());
    if (has_memory(*viewed.base) && lies_row_major(*viewed.base) &&
        reads_all_in_order(viewed, value->type().shape)) {
      return value;
    }
    return copy(value, Layout::RowMajor);
  }

  Ref<Value> as_kernel_operand(Ref<Value> value, const KernelRule& rule) {
    const ViewedValue viewed = resolve_views(value.get());
    if (viewed.is_number()) {
      if (value->type().shape.empty() || rule.strided_operands) return value;
      return copy(value, value->type().layout);
    }
    if (!has_memory(*viewed.base)) return copy(value, value->type().layout);
    if (rule.strided_operands) return value;
    const bool dense =
        viewed.base == value.get() ||
        (reads_all_in_order(viewed, value->type().shape) && lies_row_major(*viewed.base));
    return dense ? value : copy(value, value->type().layout);
  }

  // The rows of a reduction are one axis: what is read must be evenly spaced along all reduced
  // axes.
  Ref<Value> as_reduction_operand(Ref<Value> value, const Axes& axes) {
    const ViewedValue viewed = resolve_views(value.get());
    const TensorType& type = value->type();
    const Axes rows = reduction_steps(type, axes).inner;
    if (viewed.is_number() || rows.size() < 2) return value;
    const auto strides = base_strides(*viewed.base);
    std::optional<Dim> expected;
    const Axes order = physical_order(type.layout, rank(type.shape));
    for (size_t i = order.size(); i-- > 0;) {
      const auto axis = static_cast<size_t>(order[i]);
      if (std::find(rows.begin(), rows.end(), order[i]) == rows.end()) continue;
      const int base_axis = viewed.axis[axis];
      const Dim stride =
          base_axis < 0 ? Dim(0) : strides[static_cast<size_t>(base_axis)] * viewed.step[axis];
      if (expected && stride != *expected) return copy(value, type.layout);
      expected = stride * type.shape[axis];
    }
    return value;
  }

  void legalize(const Ref<Node>& node) {
    const ProvenanceScope scope(node->provenance());
    const Lowering& lowering = opdef(*node).lowering();
    std::vector<Ref<Value>> operands;
    bool changed = false;
    ViewMap map;
    const bool reshapes = lowering.kind == LoweringKind::View && !map_of(*node, map);
    for (const Ref<Value>& given : node->operands()) {
      Ref<Value> operand = replaced(given.get());
      if (reshapes) operand = as_reshape_operand(operand);
      if (lowering.kind == LoweringKind::Kernel || lowering.kind == LoweringKind::Control)
        operand = as_kernel_operand(operand, lowering.kernel);
      if (lowering.kind == LoweringKind::Reduction) {
        operand = as_reduction_operand(operand, node->attribute<Axes>(0));
      }
      changed = changed || operand != given;
      operands.push_back(std::move(operand));
    }
    if (!changed) {
      graph_.nodes.push_back(node);
      return;
    }
    std::vector<Value*> pointers;
    for (const Ref<Value>& operand : operands) pointers.push_back(operand.get());
    std::vector<TensorType> types;
    for (const Ref<Value>& result : node->results()) types.push_back(result->type());
    Ref<Node> made =
        Node::make(node->op(), pointers, node->attributes_ref(), types, node->location());
    for (size_t i = 0; i < types.size(); ++i) replacements_[node->result(i)] = made->results()[i];
    retired_.push_back(node);
    graph_.nodes.push_back(std::move(made));
  }

  Graph& graph_;
  std::unordered_map<Value*, Ref<Value>> replacements_;
  std::vector<Ref<Node>> retired_;  // keeps the keys of replacements_ alive
};

}  // namespace

void legalize_views(Graph& graph) {
  Legalizer(graph).run();
}

}  // namespace lamella
