// Greedy grouping in program order.
#include "lamella/transform/fusion.h"

#include <algorithm>
#include <queue>

#include "lamella/ops/reduction.h"

namespace lamella {

namespace {

using DomainAxes = InlineVector<int8_t, kMaxRank>;

// Groups larger than this cost more to compile than they save.
constexpr size_t kMostNodes = 160;
// How many of the latest groups are looked through for one that reads the same.
constexpr int kSiblings = 8;

// A set of group numbers.
class GroupSet {
 public:
  void add(int group) {
    const auto word = static_cast<size_t>(group) / 64;
    if (word >= words_.size()) words_.resize(word + 1);
    words_[word] |= uint64_t{1} << (group % 64);
  }
  void add(const GroupSet& other) {
    if (other.words_.size() > words_.size()) words_.resize(other.words_.size());
    for (size_t i = 0; i < other.words_.size(); ++i) words_[i] |= other.words_[i];
  }
  bool meets(const GroupSet& other) const {
    const size_t shared = std::min(words_.size(), other.words_.size());
    for (size_t i = 0; i < shared; ++i) {
      if (words_[i] & other.words_[i]) return true;
    }
    return false;
  }

 private:
  std::vector<uint64_t> words_;
};

struct WorkingGroup {
  FusionGroup group;
  Node* kernel = nullptr;
  GroupSet ids;                           // its own number and those of groups merged into it
  GroupSet ancestors;                     // groups it reads from, directly or not
  std::vector<ViewedValue> external;      // operands read from memory ...
  std::vector<DomainAxes> external_axes;  // ... and where their readers' axes lie
  bool merged_away = false;
  size_t first_node = 0;
};

bool is_index(const Value& value) {
  const Node* node = value.producer();
  return node != nullptr && opdef(*node).lowering().kind == LoweringKind::Index;
}

class Fuser {
 public:
  explicit Fuser(const Graph& graph) : graph_(graph) {}

  Fusion run() {
    number_values();
    find_column_terms();
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      Node* node = graph_.nodes[i].get();
      position_ = i;
      switch (opdef(*node).lowering().kind) {
        case LoweringKind::Tile:
          place_elementwise(node);
          break;
        case LoweringKind::Reduction:
          place_reduction(node);
          break;
        case LoweringKind::Kernel:
        case LoweringKind::Control:
          place_kernel(node);
          break;
        case LoweringKind::View:
        case LoweringKind::Index:
          break;
        case LoweringKind::Composite:
          fail(ErrorKind::Internal, "a composite reached fusion");
      }
    }
    return finish();
  }

 private:
  void number_values() {
    uint32_t next = 0;
    for (const Ref<Value>& input : graph_.inputs) input->mark = next++;
    for (const Ref<Node>& node : graph_.nodes) {
      for (const Ref<Value>& result : node->results()) result->mark = next++;
    }
    fusion_.placed_.resize(next);
    group_of_.assign(next, -1);
  }

  // Finds the elements that are made only to be summed over outer axes.
  void find_column_terms() {
    column_term_.assign(group_of_.size(), true);
    const auto exclude = [&](const Value* value) {
      if (!value->is_number()) column_term_[value->mark] = false;
    };
    for (const Ref<Value>& output : graph_.outputs) exclude(output.get());
    for (auto node = graph_.nodes.rbegin(); node != graph_.nodes.rend(); ++node) {
      for (const Ref<Value>& operand : (*node)->operands()) {
        if (operand->is_number() || !feeds_columns(**node, *operand)) exclude(operand.get());
      }
    }
  }
  bool feeds_columns(const Node& node, const Value& operand) const {
    switch (opdef(node).lowering().kind) {
      case LoweringKind::Tile:
        return column_term_[node.result()->mark] &&
               node.result()->type().shape == operand.type().shape;
      case LoweringKind::Reduction:
        return reduction_form(node) == tile::Reduction::Columns;
      default:
        return false;
    }
  }
  static tile::Reduction reduction_form(const Node& node) {
    const ReductionSteps steps = reduction_steps(node.operand(0)->type(), node.attribute<Axes>(0));
    return steps.inner.empty() ? tile::Reduction::Columns : tile::Reduction::Rows;
  }

  // The working group that makes a value; -1 for inputs, numbers and the results of views.
  int group_of(const Value* value) const {
    if (value->is_number() || value->producer() == nullptr) return -1;
    return find(group_of_[value->mark]);
  }
  int find(int group) const {
    while (group >= 0 && groups_[static_cast<size_t>(group)].merged_away) {
      group = merged_into_[static_cast<size_t>(group)];
    }
    return group;
  }
  WorkingGroup& at(int group) { return groups_[static_cast<size_t>(group)]; }

  int new_group() {
    const int number = static_cast<int>(groups_.size());
    groups_.emplace_back();
    merged_into_.push_back(-1);
    at(number).ids.add(number);
    at(number).first_node = position_;
    return number;
  }

  // The groups a node reads from memory or joins, through views.
  std::vector<int> producers(const Node& node) const {
    std::vector<int> found;
    for (const Ref<Value>& operand : node.operands()) {
      const ViewedValue viewed = resolve_views(operand.get());
      add_producer(found, memory_owner(viewed.base));
      for (const auto& offset : viewed.offsets) {
        if (offset.number != nullptr) add_producer(found, offset.number);
      }
    }
    return found;
  }
  void add_producer(std::vector<int>& found, Value* base) const {
    const int group = group_of(base);
    if (group >= 0 && std::find(found.begin(), found.end(), group) == found.end()) {
      found.push_back(group);
    }
  }

  // Makes `group` depend on what a new member reads, and everything behind it too.
  void add_ancestors(int group, const std::vector<int>& from) {
    GroupSet added;
    for (int producer : from) {
      if (producer == group) continue;
      added.add(at(producer).ids);
      added.add(at(producer).ancestors);
    }
    at(group).ancestors.add(added);
    const GroupSet& ids = at(group).ids;
    for (WorkingGroup& other : groups_) {
      if (!other.merged_away && other.ancestors.meets(ids))
        other.ancestors.add(at(group).ancestors);
    }
  }

  // Whether a node that reads from `from` may join `group`: nothing it reads may wait for the
  // group.
  bool acyclic(int group, const std::vector<int>& from) {
    return std::all_of(from.begin(), from.end(), [&](int producer) {
      return producer == group || !at(producer).ancestors.meets(at(group).ids);
    });
  }

  // ---- Placing ----

  // Where a shape's axes lie in a group's domain, as a full value or as one of a row or column.
  static std::optional<PlacedValue> place(const FusionGroup& group, const Shape& shape) {
    if (auto axes = match_shapes(shape, group.domain)) return PlacedValue{*axes, true};
    if (group.reduction == tile::Reduction::None) return std::nullopt;
    Shape kept = group.domain;
    for (int64_t axis : group.reduced) kept[static_cast<size_t>(axis)] = 1;
    if (auto axes = match_shapes(shape, kept)) return PlacedValue{*axes, false};
    return std::nullopt;
  }

  // Whether an operand made in the group is read point by point by a node placed at `axes`.
  bool aligned(const FusionGroup& group, const ViewedValue& viewed, const Shape& shape,
               const PlacedValue& reader) const {
    const PlacedValue& made = fusion_.placed(viewed.base);
    if (!viewed.offsets.empty()) return false;
    const Shape& base = viewed.base->type().shape;
    uint32_t hit = 0, needed = 0;
    for (Dim size : base) needed += !size.is(1);
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i].is(1)) continue;
      const int axis = viewed.axis[i];
      const int domain_axis = reader.domain_axis[i];
      if (axis < 0) {
        const bool along_row = !made.full && std::find(group.reduced.begin(), group.reduced.end(),
                                                       domain_axis) != group.reduced.end();
        if (!along_row) return false;
        continue;
      }
      const auto at = static_cast<size_t>(axis);
      if (viewed.step[i] != 1 || base[at] != shape[i] || made.domain_axis[at] != domain_axis)
        return false;
      ++hit;
    }
    return hit == needed;
  }

  // Rows have one vector axis: the reduced axes must collapse in everything that is read.
  static bool collapses(const FusionGroup& group, const ViewedValue& viewed,
                        const DomainAxes& axes) {
    if (group.reduction != tile::Reduction::Rows || viewed.is_number()) return true;
    const auto strides = domain_strides(viewed, axes, rank(group.domain));
    const Axes order = physical_order(group.layout, rank(group.domain));
    std::optional<size_t> outer;
    for (int64_t axis : order) {
      const auto at = static_cast<size_t>(axis);
      if (std::find(group.reduced.begin(), group.reduced.end(), axis) == group.reduced.end())
        continue;
      if (group.domain[at].is(1)) continue;
      if (outer && strides[*outer] != strides[at] * group.domain[at]) return false;
      outer = at;
    }
    return true;
  }

  // Whether `node` fits into `group` with everything it reads. Fills what it would read from
  // memory.
  std::optional<PlacedValue> fits(int number, const Node& node, std::vector<ViewedValue>& external,
                                  const std::vector<int>& allies) {
    const WorkingGroup& working = at(number);
    const FusionGroup& group = working.group;
    const Shape& shape = node.result()->type().shape;
    if (working.kernel != nullptr || group.nodes.size() >= kMostNodes) return std::nullopt;
    const std::optional<PlacedValue> placed = place(group, shape);
    if (!placed) return std::nullopt;
    if (placed->full && !same_order(shape, node.result()->type().layout, group.layout))
      return std::nullopt;
    external.clear();
    for (const Ref<Value>& operand : node.operands()) {
      ViewedValue viewed = resolve_views(operand.get(), shape);
      if (viewed.is_number()) continue;
      const int producer = group_of(viewed.base);
      const bool inside =
          producer >= 0 && !is_index(*viewed.base) &&
          (producer == number || std::find(allies.begin(), allies.end(), producer) != allies.end());
      if (inside) {
        if (!aligned(group, viewed, shape, *placed)) return std::nullopt;
        if (group.reduction == tile::Reduction::Columns &&
            placed->full != fusion_.placed(viewed.base).full) {
          return std::nullopt;
        }
        continue;
      }
      // Memory of the group itself, seen under another shape, is not there before the group has
      // run.
      const int owner = group_of(memory_owner(viewed.base));
      if (owner == number || std::find(allies.begin(), allies.end(), owner) != allies.end()) {
        return std::nullopt;
      }
      // Column values meet only numbers and column values.
      if (group.reduction == tile::Reduction::Columns && !placed->full) return std::nullopt;
      if (!collapses(group, viewed, placed->domain_axis)) return std::nullopt;
      external.push_back(std::move(viewed));
    }
    return placed;
  }

  // Whether two groups over one domain can be one, apart from cycles.
  static bool compatible(const FusionGroup& a, const FusionGroup& b) {
    if (a.domain != b.domain || !same_order(a.domain, a.layout, b.layout)) return false;
    if (a.nodes.size() + b.nodes.size() > kMostNodes) return false;
    if (a.reduction == b.reduction) return a.reduced == b.reduced;
    return a.reduction == tile::Reduction::None   ? b.reduction == tile::Reduction::Rows
           : b.reduction == tile::Reduction::None ? a.reduction == tile::Reduction::Rows
                                                  : false;
  }

  bool externals_collapse(const FusionGroup& rows, const WorkingGroup& working) {
    for (size_t i = 0; i < working.external.size(); ++i) {
      if (!collapses(rows, working.external[i], working.external_axes[i])) return false;
    }
    return true;
  }

  bool can_merge(int a, int b) {
    const WorkingGroup &left = at(a), &right = at(b);
    if (left.kernel != nullptr || right.kernel != nullptr || !compatible(left.group, right.group))
      return false;
    // What a column gives is complete only when its loop has ended: no element of the same loop
    // reads it.
    if (left.group.reduction == tile::Reduction::Columns &&
        (left.ancestors.meets(right.ids) || right.ancestors.meets(left.ids))) {
      return false;
    }
    const FusionGroup& rows =
        left.group.reduction != tile::Reduction::None ? left.group : right.group;
    if (!externals_collapse(rows, left) || !externals_collapse(rows, right)) return false;
    // What one reads of the other through memory need not lie where the domain's points do; and
    // with no path between the two, none can run through a third group.
    if (left.ancestors.meets(right.ids) || right.ancestors.meets(left.ids)) return false;
    return true;
  }

  void merge(int into, int from) {
    WorkingGroup &target = at(into), &source = at(from);
    if (target.group.reduction == tile::Reduction::None) {
      target.group.reduction = source.group.reduction;
      target.group.reduced = source.group.reduced;
    }
    std::vector<Node*> nodes;
    std::merge(target.group.nodes.begin(), target.group.nodes.end(), source.group.nodes.begin(),
               source.group.nodes.end(), std::back_inserter(nodes),
               [](const Node* a, const Node* b) { return a->result()->mark < b->result()->mark; });
    target.group.nodes = std::move(nodes);
    target.external.insert(target.external.end(), source.external.begin(), source.external.end());
    target.external_axes.insert(target.external_axes.end(), source.external_axes.begin(),
                                source.external_axes.end());
    target.ids.add(source.ids);
    target.ancestors.add(source.ancestors);
    target.first_node = std::min(target.first_node, source.first_node);
    source.merged_away = true;
    merged_into_[static_cast<size_t>(from)] = into;
    for (WorkingGroup& other : groups_) {
      if (!other.merged_away && other.ancestors.meets(target.ids) && &other != &target) {
        other.ancestors.add(target.ids);
        other.ancestors.add(target.ancestors);
      }
    }
  }

  void join(int number, Node* node, const PlacedValue& placed,
            const std::vector<ViewedValue>& external, const std::vector<int>& from) {
    WorkingGroup& working = at(number);
    working.group.nodes.push_back(node);
    for (const ViewedValue& viewed : external) {
      working.external.push_back(viewed);
      working.external_axes.push_back(placed.domain_axis);
    }
    group_of_[node->result()->mark] = number;
    fusion_.placed_[node->result()->mark] = placed;
    add_ancestors(number, from);
  }

  void place_elementwise(Node* node) {
    const std::vector<int> from = producers(*node);
    // The most recent producer first: it is the likeliest to share the domain.
    std::vector<int> candidates = from;
    std::sort(candidates.rbegin(), candidates.rend());
    std::erase_if(candidates, [&](int group) { return better_beside(*node, group); });
    // Producers that can become one group with a candidate are taken in if the node then fits.
    for (int candidate : candidates) {
      std::vector<int> allies;
      for (int other : candidates) {
        if (other != candidate && can_merge(candidate, other)) allies.push_back(other);
      }
      if (!allies.empty() && !brings_rows(candidate, allies) &&
          join_with(candidate, allies, node, from)) {
        return;
      }
    }
    for (int candidate : candidates) {
      if (join_with(candidate, {}, node, from)) return;
    }
    if (join_sibling(node, from)) return;
    std::vector<ViewedValue> external;
    const int number = new_group();
    FusionGroup& group = at(number).group;
    group.domain = node->result()->type().shape;
    group.layout = node->result()->type().layout;
    const auto placed = fits(number, *node, external, {});
    LAMELLA_CHECK(placed.has_value());
    join(number, node, *placed, external, from);
  }

  // Whether a term of a sum over columns does better outside the rows it reads: a column cannot be
  // summed in their group, and from one value a row the term is made again where it is summed,
  // which spares writing and reading it.
  bool better_beside(const Node& node, int group) {
    if (at(group).group.reduction != tile::Reduction::Rows || !column_term_[node.result()->mark])
      return false;
    return std::all_of(node.operands().begin(), node.operands().end(), [&](const auto& operand) {
      const Value* base = resolve_views(operand.get()).base;
      return group_of(base) != group || !fusion_.placed(base).full;
    });
  }

  // Puts the node into a group over the same elements that reads from one of the same groups.
  bool join_sibling(Node* node, const std::vector<int>& from) {
    const TensorType& type = node->result()->type();
    const int last = static_cast<int>(groups_.size()) - 1;
    for (int number = last; number >= 0 && number > last - kSiblings; --number) {
      const WorkingGroup& working = at(number);
      const bool same = !working.merged_away && working.kernel == nullptr &&
                        working.group.reduction == tile::Reduction::None &&
                        working.group.domain == type.shape &&
                        same_order(type.shape, working.group.layout, type.layout);
      const bool related = same && std::any_of(from.begin(), from.end(), [&](int producer) {
                             return working.ancestors.meets(at(producer).ids);
                           });
      if (related && join_with(number, {}, node, from)) return true;
    }
    return false;
  }

  // Puts a reduction into a group that reduces the same axes and reads the same memory.
  bool reduce_beside(Node* node, const ViewedValue& viewed, tile::Reduction form,
                     const std::vector<int>& from) {
    const TensorType& type = node->operand(0)->type();
    const int last = static_cast<int>(groups_.size()) - 1;
    for (int number = last; number >= 0 && number > last - kSiblings; --number) {
      WorkingGroup& working = at(number);
      const FusionGroup& group = working.group;
      if (working.merged_away || working.kernel != nullptr || group.reduction != form ||
          group.domain != type.shape || !same_order(type.shape, group.layout, type.layout) ||
          group.reduced != wide_axes(node->attribute<Axes>(0), type.shape) ||
          group.nodes.size() >= kMostNodes || !reads(working, viewed.base) ||
          !acyclic(number, from)) {
        continue;
      }
      const auto placed = place(group, node->result()->type().shape);
      DomainAxes axes;
      for (uint32_t i = 0; i < type.shape.size(); ++i) axes.push_back(static_cast<int8_t>(i));
      if (!placed || placed->full || !collapses(group, viewed, axes)) continue;
      working.external.push_back(viewed);
      working.external_axes.push_back(axes);
      join(number, node, *placed, {}, from);
      return true;
    }
    return false;
  }

  static bool reads(const WorkingGroup& working, const Value* base) {
    return std::any_of(working.external.begin(), working.external.end(),
                       [&](const ViewedValue& viewed) { return viewed.base == base; });
  }

  // The axes that are not of size 1.
  static Axes wide_axes(const Axes& axes, const Shape& shape) {
    Axes wide;
    for (int64_t axis : axes) {
      if (!shape[static_cast<size_t>(axis)].is(1)) wide.push_back(axis);
    }
    return wide;
  }

  // Whether an ally would turn an elementwise candidate into rows: it is the better candidate
  // itself.
  bool brings_rows(int candidate, const std::vector<int>& allies) {
    return at(candidate).group.reduction == tile::Reduction::None &&
           std::any_of(allies.begin(), allies.end(),
                       [&](int ally) { return at(ally).group.reduction != tile::Reduction::None; });
  }

  // Puts the node into `target` together with the groups of `allies`, if that is possible.
  bool join_with(int target, const std::vector<int>& allies, Node* node,
                 const std::vector<int>& from) {
    std::vector<ViewedValue> external;
    const auto placed = fits(target, *node, external, allies);
    if (!placed) return false;
    std::vector<int> outside;
    for (int producer : from) {
      if (std::find(allies.begin(), allies.end(), producer) == allies.end())
        outside.push_back(producer);
    }
    bool fine = acyclic(target, outside) && mergeable_in_turn(target, allies);
    for (int ally : allies) fine = fine && acyclic(ally, outside);
    if (!fine) return false;
    for (int ally : allies) merge(target, ally);
    join(target, node, *placed, external, outside);
    return true;
  }

  // can_merge was asked for each ally alone; several are merged only if no path runs between them.
  bool mergeable_in_turn(int target, const std::vector<int>& allies) {
    for (size_t i = 0; i < allies.size(); ++i) {
      for (size_t j = i + 1; j < allies.size(); ++j) {
        if (!can_merge(allies[i], allies[j])) return false;
      }
      if (!can_merge(target, allies[i])) return false;
    }
    return true;
  }

  void place_reduction(Node* node) {
    Value* operand = node->operand(0);
    const TensorType& type = operand->type();
    const ViewedValue viewed = resolve_views(operand);
    const std::vector<int> from = producers(*node);
    const Axes& axes = node->attribute<Axes>(0);
    const tile::Reduction form = reduction_form(*node);
    const int producer = group_of(viewed.base);
    if (producer >= 0 && !is_index(*viewed.base) && at(producer).kernel == nullptr &&
        try_reduce_in(producer, node, viewed, form, from)) {
      return;
    }
    if ((producer < 0 || is_index(*viewed.base) || at(producer).kernel != nullptr) &&
        reduce_beside(node, viewed, form, from)) {
      return;
    }
    const int number = new_group();
    FusionGroup& group = at(number).group;
    group.domain = type.shape;
    group.layout = type.layout;
    group.reduction = form;
    group.reduced = wide_axes(axes, type.shape);
    PlacedValue source{{}, true};
    for (uint32_t i = 0; i < type.shape.size(); ++i)
      source.domain_axis.push_back(static_cast<int8_t>(i));
    const auto placed = place(group, node->result()->type().shape);
    LAMELLA_CHECK(placed.has_value());
    if (!collapses(group, viewed, source.domain_axis)) {
      fail(ErrorKind::Internal, "a reduction's operand does not collapse; it must be copied first");
    }
    WorkingGroup& working = at(number);
    working.external.push_back(viewed);
    working.external_axes.push_back(source.domain_axis);
    join(number, node, *placed, {}, from);
  }

  bool try_reduce_in(int producer, Node* node, const ViewedValue& viewed, tile::Reduction form,
                     const std::vector<int>& from) {
    WorkingGroup& working = at(producer);
    const TensorType& type = node->operand(0)->type();
    if (working.group.nodes.size() >= kMostNodes) return false;
    if (!same_order(type.shape, type.layout, working.group.layout)) return false;
    const PlacedValue& made = fusion_.placed(viewed.base);
    if (!made.full) return false;
    const auto reader = place(working.group, type.shape);
    if (!reader || !reader->full || !aligned(working.group, viewed, type.shape, *reader))
      return false;
    FusionGroup reducing = working.group;
    Axes reduced;
    for (int64_t axis : node->attribute<Axes>(0)) {
      if (!type.shape[static_cast<size_t>(axis)].is(1)) {
        reduced.push_back(reader->domain_axis[static_cast<size_t>(axis)]);
      }
    }
    std::sort(reduced.begin(), reduced.end());
    if (reducing.reduction == tile::Reduction::None) {
      reducing.reduction = form;
      reducing.reduced = reduced;
      if (!externals_collapse(reducing, working)) return false;
    } else if (reducing.reduction != form || reducing.reduced != reduced) {
      return false;
    }
    std::vector<int> outside;
    for (int other : from) {
      if (other != producer) outside.push_back(other);
    }
    if (!acyclic(producer, outside)) return false;
    const auto placed = place(reducing, node->result()->type().shape);
    if (!placed || placed->full) return false;
    working.group.reduction = reducing.reduction;
    working.group.reduced = reducing.reduced;
    join(producer, node, *placed, {}, outside);
    return true;
  }

  void place_kernel(Node* node) {
    const int number = new_group();
    at(number).kernel = node;
    for (const Ref<Value>& result : node->results()) group_of_[result->mark] = number;
    add_ancestors(number, producers(*node));
  }

  // ---- Results ----

  Fusion finish() {
    const std::vector<int> order = schedule();
    fusion_.step_of_.assign(group_of_.size(), -1);
    std::vector<int> step_of_group(groups_.size(), -1);
    for (int group : order) {
      step_of_group[static_cast<size_t>(group)] = static_cast<int>(fusion_.steps.size());
      fusion_.steps.push_back({std::move(at(group).group), at(group).kernel});
    }
    for (size_t mark = 0; mark < group_of_.size(); ++mark) {
      const int group = find(group_of_[mark]);
      if (group >= 0) fusion_.step_of_[mark] = step_of_group[static_cast<size_t>(group)];
    }
    collect_stored();
    return std::move(fusion_);
  }

  // Steps after what they read; of those that are ready, the one whose program text comes first.
  std::vector<int> schedule() {
    std::vector<std::vector<int>> users(groups_.size());
    std::vector<int> waiting(groups_.size(), 0);
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (groups_[i].merged_away) continue;
      std::vector<int> sources;
      const auto add = [&](const Node& node) {
        for (int producer : producers(node)) {
          if (producer != static_cast<int>(i) &&
              std::find(sources.begin(), sources.end(), producer) == sources.end()) {
            sources.push_back(producer);
          }
        }
      };
      if (groups_[i].kernel != nullptr) add(*groups_[i].kernel);
      for (const Node* node : groups_[i].group.nodes) add(*node);
      waiting[i] = static_cast<int>(sources.size());
      for (int source : sources) users[static_cast<size_t>(source)].push_back(static_cast<int>(i));
    }
    using Entry = std::pair<size_t, int>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (!groups_[i].merged_away && waiting[i] == 0)
        ready.emplace(groups_[i].first_node, static_cast<int>(i));
    }
    std::vector<int> order;
    while (!ready.empty()) {
      const int group = ready.top().second;
      ready.pop();
      order.push_back(group);
      for (int user : users[static_cast<size_t>(group)]) {
        if (--waiting[static_cast<size_t>(user)] == 0) {
          ready.emplace(groups_[static_cast<size_t>(user)].first_node, user);
        }
      }
    }
    const auto alive = std::count_if(groups_.begin(), groups_.end(),
                                     [](const WorkingGroup& g) { return !g.merged_away; });
    LAMELLA_CHECK(static_cast<int64_t>(order.size()) == alive);
    return order;
  }

  void collect_stored() {
    std::vector<bool> stored(group_of_.size(), false);
    const auto store = [&](Value* value) {
      if (value->is_number() || fusion_.step_of_[value->mark] < 0 || stored[value->mark]) return;
      stored[value->mark] = true;
      fusion_.stored.push_back(value);
    };
    for (const Ref<Value>& output : graph_.outputs)
      store(memory_owner(resolve_views(output.get()).base));
    for (size_t i = 0; i < fusion_.steps.size(); ++i) {
      const ScheduledStep& step = fusion_.steps[i];
      const auto read = [&](const Node& node) {
        for (const Ref<Value>& operand : node.operands()) {
          const ViewedValue viewed = resolve_views(operand.get());
          if (viewed.is_number() || is_index(*viewed.base)) continue;
          Value* owner = memory_owner(viewed.base);
          if (owner->is_number()) continue;
          const bool same_step = fusion_.step_of_[owner->mark] == static_cast<int>(i);
          if (!same_step || owner != viewed.base) store(owner);
        }
      };
      if (step.kernel != nullptr) {
        read(*step.kernel);
        for (const Ref<Value>& result : step.kernel->results()) store(result.get());
      }
      for (const Node* node : step.group.nodes) read(*node);
    }
  }

  const Graph& graph_;
  Fusion fusion_;
  std::vector<WorkingGroup> groups_;
  std::vector<int> merged_into_;
  std::vector<int> group_of_;      // by Value::mark, before merging
  std::vector<bool> column_term_;  // by Value::mark
  size_t position_ = 0;
};

}  // namespace

InlineVector<Dim, kMaxRank> domain_strides(const ViewedValue& viewed,
                                           const InlineVector<int8_t, kMaxRank>& axes,
                                           int domain_rank) {
  const auto strides = base_strides(*viewed.base);
  InlineVector<Dim, kMaxRank> result(static_cast<uint32_t>(domain_rank), 0);
  for (size_t i = 0; i < viewed.axis.size(); ++i) {
    if (axes[i] < 0 || viewed.axis[i] < 0) continue;
    result[static_cast<size_t>(axes[i])] =
        strides[static_cast<size_t>(viewed.axis[i])] * viewed.step[i];
  }
  return result;
}

Fusion fuse(const Graph& graph) {
  return Fuser(graph).run();
}

}  // namespace lamella
