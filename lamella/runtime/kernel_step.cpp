// From a fused group to a tile program: axes are ordered as memory is, merged where every operand
// allows it, and the group's nodes become instructions.
#include "lamella/runtime/kernel_step.h"

#include <algorithm>

#include "lamella/tile/builder.h"

namespace lamella {

namespace {

using DomainStrides = InlineVector<Dim, kMaxRank>;

ElementOffset offset_of(const ViewedValue& viewed) {
  const auto strides = base_strides(*viewed.base);
  ElementOffset offset;
  for (const ViewedValue::Offset& part : viewed.offsets) {
    const Dim stride = strides[static_cast<size_t>(part.axis)];
    offset.constant = offset.constant + part.start * stride;
    if (part.number == nullptr) continue;
    offset.terms.push_back({part.number, stride * part.multiplier, part.low, part.high, part.view});
  }
  return offset;
}

bool is_index(const Value& value) {
  const Node* node = value.producer();
  return node != nullptr && opdef(*node).lowering().kind == LoweringKind::Index;
}

// Something that is walked over the domain: memory, or the numbers of elements.
struct Walk {
  Value* base;
  DomainStrides strides;
  ElementOffset offset;
};

// The program's axes: each a run of domain axes merged into one, outermost first.
struct ProgramAxes {
  std::vector<std::vector<int>> outer;  // kept axes, then (columns) reduced ones
  std::vector<int> vector;
  int reduced_rank = 0;
};

class TileStepBuilder {
 public:
  TileStepBuilder(const Fusion& fusion, size_t step)
      : fusion_(fusion), index_(static_cast<int>(step)), group_(fusion.steps[step].group) {}

  Step build() {
    collect_walks();
    choose_axes();
    tile::Builder builder(name(), static_cast<int>(axes_.outer.size()), group_.reduction,
                          axes_.reduced_rank);
    builder_ = &builder;
    for (const std::vector<int>& axis : axes_.outer) step_.extents.push_back(extent(axis));
    step_.extents.push_back(extent(axes_.vector));
    for (Node* node : group_.nodes) emit(*node);
    step_.program = std::move(builder).finish();
    step_.nodes.assign(group_.nodes.begin(), group_.nodes.end());
    return std::move(step_);
  }

 private:
  std::string name() const {
    std::string name;
    for (const Node* node : group_.nodes) {
      if (!name.empty()) name += "_";
      name += node->op().name();
      if (name.size() > 60) return name + "_etc";
    }
    return name;
  }

  bool inside(const ViewedValue& viewed) const {
    return !viewed.is_number() && !is_index(*viewed.base) && viewed.base->producer() != nullptr &&
           fusion_.step_of(viewed.base) == index_;
  }

  // How operand `i` of a node in this step is seen, broadcast where the operator broadcasts.
  ViewedValue viewed_operand(const Node& node, size_t i) const {
    Value* operand = node.operand(i);
    const bool reduces = opdef(node).lowering().kind == LoweringKind::Reduction;
    return reduces ? resolve_views(operand) : resolve_views(operand, node.result()->type().shape);
  }

  // The domain axes of the shape a node reads its operands in.
  InlineVector<int8_t, kMaxRank> reader_axes(const Node& node) const {
    if (opdef(node).lowering().kind != LoweringKind::Reduction) {
      return fusion_.placed(node.result()).domain_axis;
    }
    const auto axes = match_shapes(node.operand(0)->type().shape, group_.domain);
    LAMELLA_CHECK(axes.has_value());
    return *axes;
  }

  Walk walk_of(const ViewedValue& viewed, const InlineVector<int8_t, kMaxRank>& axes) const {
    return {viewed.base, domain_strides(viewed, axes, rank(group_.domain)), offset_of(viewed)};
  }

  Walk store_walk(Value* value) const {
    ViewedValue whole{.base = value};
    for (uint32_t i = 0; i < value->type().shape.size(); ++i) {
      whole.axis.push_back(static_cast<int8_t>(i));
      whole.step.push_back(1);
    }
    return walk_of(whole, fusion_.placed(value).domain_axis);
  }

  bool is_stored(const Value* value) const {
    return std::find(fusion_.stored.begin(), fusion_.stored.end(), value) != fusion_.stored.end();
  }

  // Everything that constrains which axes can merge.
  void collect_walks() {
    for (const Node* node : group_.nodes) {
      for (size_t i = 0; i < node->operands().size(); ++i) {
        const ViewedValue viewed = viewed_operand(*node, i);
        if (viewed.is_number() || inside(viewed)) continue;
        walks_.push_back(walk_of(viewed, reader_axes(*node)));
      }
      if (is_stored(node->result())) walks_.push_back(store_walk(node->result()));
    }
  }

  bool merges(int outer, int inner) const {
    const Dim size = group_.domain[static_cast<size_t>(inner)];
    return std::all_of(walks_.begin(), walks_.end(), [&](const Walk& walk) {
      return walk.strides[static_cast<size_t>(outer)] ==
             walk.strides[static_cast<size_t>(inner)] * size;
    });
  }

  void choose_axes() {
    std::vector<int> kept, reduced;
    for (int64_t axis : physical_order(group_.layout, rank(group_.domain))) {
      if (group_.domain[static_cast<size_t>(axis)].is(1)) continue;
      const bool reduces =
          std::find(group_.reduced.begin(), group_.reduced.end(), axis) != group_.reduced.end();
      (reduces ? reduced : kept).push_back(static_cast<int>(axis));
    }
    switch (group_.reduction) {
      case tile::Reduction::None: {
        axes_.outer = merged(kept);
        if (!axes_.outer.empty()) take_vector_axis();
        break;
      }
      case tile::Reduction::Rows:
        axes_.vector = reduced;  // they collapse: fusion made sure
        axes_.outer = merged(kept);
        break;
      case tile::Reduction::Columns: {
        axes_.outer = merged(kept);
        take_vector_axis();
        const auto runs = merged(reduced);
        axes_.reduced_rank = static_cast<int>(runs.size());
        axes_.outer.insert(axes_.outer.end(), runs.begin(), runs.end());
        break;
      }
    }
  }

  void take_vector_axis() {
    axes_.vector = axes_.outer.back();
    axes_.outer.pop_back();
  }

  std::vector<std::vector<int>> merged(const std::vector<int>& axes) const {
    std::vector<std::vector<int>> runs;
    for (int axis : axes) {
      if (!runs.empty() && merges(runs.back().back(), axis)) {
        runs.back().push_back(axis);
      } else {
        runs.push_back({axis});
      }
    }
    return runs;
  }

  Dim extent(const std::vector<int>& run) const {
    Dim extent = 1;
    for (int axis : run) extent = extent * group_.domain[static_cast<size_t>(axis)];
    return extent;
  }

  // Strides along the program's axes; a merged run steps like its innermost axis.
  std::vector<Dim> program_strides(const Walk& walk) const {
    std::vector<Dim> strides;
    for (const std::vector<int>& run : axes_.outer) {
      strides.push_back(walk.strides[static_cast<size_t>(run.back())]);
    }
    strides.push_back(
        axes_.vector.empty() ? Dim(0) : walk.strides[static_cast<size_t>(axes_.vector.back())]);
    return strides;
  }

  static tile::VectorStride vector_stride(const std::vector<Dim>& strides) {
    if (strides.back().is(0)) return tile::VectorStride::Zero;
    return strides.back().is(1) ? tile::VectorStride::Unit : tile::VectorStride::Any;
  }

  tile::ValueId load(const ViewedValue& viewed, const Node& reader) {
    const Walk walk = walk_of(viewed, reader_axes(reader));
    if (is_index(*viewed.base)) return element_number(walk);
    std::vector<Dim> strides = program_strides(walk);
    for (const auto& [buffer, value] : loads_) {
      const StepBuffer& known = step_.buffers[static_cast<size_t>(buffer)];
      if (known.base == memory_owner(walk.base) && known.strides == strides &&
          known.offset == walk.offset && known.dtype == walk.base->type().dtype) {
        return value;
      }
    }
    const DType dtype = walk.base->type().dtype;
    const int32_t buffer = builder_->input(dtype, vector_stride(strides));
    step_.buffers.push_back({.base = memory_owner(walk.base),
                             .access = tile::Access::Read,
                             .offset = walk.offset,
                             .strides = std::move(strides),
                             .dtype = dtype});
    const tile::ValueId value = builder_->load(buffer);
    loads_.emplace_back(buffer, value);
    return value;
  }

  // The row-major number of the element: positions times strides.
  tile::ValueId element_number(const Walk& walk) {
    const std::vector<Dim> strides = program_strides(walk);
    std::optional<tile::ValueId> sum;
    const auto add = [&](tile::ValueId term) {
      sum = sum ? builder_->apply(tile::Opcode::Add, *sum, term) : term;
    };
    for (size_t axis = 0; axis < strides.size(); ++axis) {
      if (strides[axis].is(0)) continue;
      tile::ValueId position = builder_->iota(static_cast<int>(axis));
      if (!strides[axis].is(1)) {
        position = builder_->apply(tile::Opcode::Mul, position, size_scalar(strides[axis]));
      }
      add(position);
    }
    if (!walk.offset.constant.is(0)) add(size_scalar(walk.offset.constant));
    for (const ElementOffset::Term& term : walk.offset.terms) {
      add(builder_->apply(tile::Opcode::Mul, number(term.number), size_scalar(term.factor)));
    }
    return sum ? *sum : builder_->integer_constant(DType::Int64, 0);
  }

  tile::ValueId size_scalar(Dim size) {
    sizes_.push_back(Value::size(DType::Int64, size));
    return scalar(sizes_.back().get());
  }

  tile::ValueId scalar(Value* value) {
    for (const auto& [known, id] : scalars_) {
      const bool same_size = known->state() == Value::State::Size &&
                             value->state() == Value::State::Size &&
                             known->size_expression() == value->size_expression() &&
                             known->type().dtype == value->type().dtype;
      if (known == value || same_size) return id;
    }
    const tile::ValueId id = builder_->scalar(builder_->scalar_parameter(value->type().dtype));
    step_.scalars.push_back(value);
    step_.owned.push_back(Ref<Value>(value));
    scalars_.emplace_back(value, id);
    return id;
  }

  tile::ValueId number(Value* value) {
    if (value->state() != Value::State::Scalar) return scalar(value);
    // Written in a composite: part of the program.
    const DType dtype = value->type().dtype;
    if (is_float(dtype)) {
      return builder_->constant(dtype, double_from_scalar_bits(dtype, value->scalar_bits()));
    }
    return builder_->integer_constant(
        dtype, dtype == DType::Int64
                   ? static_cast<int64_t>(value->scalar_bits())
                   : static_cast<int64_t>(double_from_scalar_bits(dtype, value->scalar_bits())));
  }

  tile::ValueId operand(const Node& node, size_t i) {
    const ViewedValue viewed = viewed_operand(node, i);
    if (viewed.is_number()) return number(viewed.base);
    if (!inside(viewed)) return load(viewed, node);
    for (const auto& [value, id] : made_) {
      if (value == viewed.base) return id;
    }
    fail(ErrorKind::Internal, "a fused operand is used before it is made");
  }

  void emit(Node& node) {
    std::vector<tile::ValueId> operands;
    for (size_t i = 0; i < node.operands().size(); ++i) operands.push_back(operand(node, i));
    const Lowering& lowering = opdef(node).lowering();
    const tile::ValueId value = lowering.kind == LoweringKind::Reduction
                                    ? builder_->apply(lowering.reduction.opcode, operands[0])
                                    : lowering.tile(*builder_, operands, node);
    Value* result = node.result();
    made_.emplace_back(result, value);
    if (!is_stored(result)) return;
    const Walk walk = store_walk(result);
    std::vector<Dim> strides = program_strides(walk);
    const int32_t buffer = builder_->output(result->type().dtype, vector_stride(strides));
    step_.buffers.push_back({.base = result,
                             .access = tile::Access::Write,
                             .offset = walk.offset,
                             .strides = std::move(strides),
                             .dtype = result->type().dtype});
    builder_->store(buffer, value);
  }

  const Fusion& fusion_;
  const int index_;
  const FusionGroup& group_;
  tile::Builder* builder_ = nullptr;
  std::vector<Walk> walks_;
  ProgramAxes axes_;
  Step step_;
  std::vector<std::pair<int32_t, tile::ValueId>> loads_;
  std::vector<std::pair<Value*, tile::ValueId>> scalars_, made_;
  std::vector<Ref<Value>> sizes_;
};

}  // namespace

Step make_tile_step(const Fusion& fusion, size_t step) {
  return TileStepBuilder(fusion, step).build();
}

Step make_kernel_step(Node& node) {
  Step step;
  step.kernel = &node;
  step.nodes = {&node};
  step.operand_count = node.operands().size();
  const auto add = [&](Value* value, tile::Access access) {
    const ViewedValue viewed = resolve_views(value);
    StepBuffer buffer{.access = access, .dtype = value->type().dtype};
    for (Dim size : value->type().shape) buffer.sizes.push_back(size);
    if (viewed.is_number()) {
      buffer.base = viewed.base;
      buffer.strides.assign(buffer.sizes.size(), 0);
    } else {
      buffer.base = memory_owner(viewed.base);
      buffer.offset = offset_of(viewed);
      const auto strides = base_strides(*viewed.base);
      for (size_t i = 0; i < viewed.axis.size(); ++i) {
        const int axis = viewed.axis[i];
        buffer.strides.push_back(axis < 0 ? Dim(0)
                                          : strides[static_cast<size_t>(axis)] * viewed.step[i]);
      }
    }
    step.buffers.push_back(std::move(buffer));
  };
  for (const Ref<Value>& operand : node.operands()) add(operand.get(), tile::Access::Read);
  for (const Ref<Value>& result : node.results()) add(result.get(), tile::Access::Write);
  return step;
}

}  // namespace lamella
