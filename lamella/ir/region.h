// Regions: graphs inside a node, such as the body of a loop, and how they are recorded.
#pragma once

#include <string>
#include <vector>

#include "lamella/base/pointer_map.h"
#include "lamella/ir/graph.h"
#include "lamella/ir/recorder.h"
#include "lamella/ir/tensor.h"

namespace lamella {

// An immutable graph as an attribute.
class LAMELLA_API Region final : public AttributeObject {
 public:
  // The region that computes `outputs` from `inputs` (placeholders or results of other nodes, which
  // become placeholders) by those of `nodes` that they need. Numbers are constants of it; every
  // other operand must be an input or be computed before.
  static Ref<Region> make(std::span<const Ref<Value>> inputs, std::span<const Ref<Node>> nodes,
                          std::span<const Ref<Value>> outputs);

  const Graph& graph() const { return graph_; }
  // A copy that a compilation may change.
  Graph copy() const;

  Hash128 identity() const override { return identity_; }
  Hash128 identity_without_sizes() const override { return structure_; }
  bool means_the_same(const AttributeObject& other) const override;
  std::span<const int64_t> sizes() const override { return sizes_; }
  Ref<AttributeObject> with_sizes(std::span<const Dim> sizes) const override;
  std::string description() const override;

 private:
  explicit Region(Graph graph);

  Graph graph_;
  std::vector<int64_t> sizes_;  // nothing where they are symbols
  Hash128 identity_, structure_;
};

// Whether operations with these attributes are the same, whatever objects say it.
LAMELLA_API bool mean_the_same(const Ref<const Attributes>& a, const Ref<const Attributes>& b);

inline const Region& region_of(const Attributes& attributes, size_t index) {
  return static_cast<const Region&>(*attributes.get<Ref<AttributeObject>>(index));
}

// What becomes of operations that are the same in every turn.
enum class Invariants : uint8_t {
  Inside,  // recorded like the others
  Hoisted  // recorded once, outside
};

// Records a function's operations instead of letting them join the window. Tensors of outside that
// the function uses become further inputs.
class LAMELLA_API RegionTrace final : public Recorder {
 public:
  // `op` is named in errors.
  explicit RegionTrace(std::string_view op, Invariants invariants = Invariants::Inside);
  RegionTrace(const RegionTrace&) = delete;

  // Placeholders, in the order in which they are asked for.
  Tensor input(const TensorType& type);
  Tensor number_input(DType dtype);

  Results record(const Operator& op, std::span<Value* const> operands,
                 Ref<const Attributes> attributes, const SourceLocation& location) override;
  std::span<const Ref<Node>> tape() const override { return nodes_; }
  // As outside, and once more for each gradient that is being taken in the body.
  int gradient_order() const override;
  bool knows(const Value& value) const override;

  const std::vector<Ref<Value>>& inputs() const { return inputs_; }
  // Values of outside that are read, and the placeholders that stand for them.
  const std::vector<Ref<Value>>& captured() const { return captured_; }
  const std::vector<Ref<Value>>& captured_inputs() const { return captured_inputs_; }
  // The placeholder of a value of outside; itself for one of the trace.
  Ref<Value> inside(const Ref<Value>& value) override;
  // From now on everything is recorded inside.
  void close();
  // How much was recorded; `cut_back` takes away what came after.
  struct Mark {
    size_t inputs, captured, nodes;
  };
  Mark mark() const { return {inputs_.size(), captured_.size(), nodes_.size()}; }
  void cut_back(const Mark& mark);
  // Lets go of the values of outside read so far, which the node that was made of the trace holds.
  // Their entries in captured() are null from now on.
  void forget_captured();

 private:
  bool is_invariant(std::span<Value* const> operands) const;
  void find_known();

  std::string op_;
  Invariants invariants_;
  Recorder* outer_;                    // null once closed
  int gradient_order_, window_order_;  // when the trace began
  int gradient_depth_;
  std::vector<Ref<Value>> inputs_;
  std::vector<Ref<Value>> captured_, captured_inputs_;
  std::vector<HeldValue> captured_held_;  // null for numbers, which need no run
  std::vector<Ref<Node>> nodes_;
  PointerMap<Value, Ref<Value>> known_;  // what stands for a value: itself or a placeholder
};

// The numbers of the turns that the traced loops around are in, the outermost first: int64 of rank
// 0. Draws in a body take them into their offset, so that every turn draws anew.
LAMELLA_API const std::vector<Tensor>& current_turns();
// That of the innermost loop; undefined outside of loops.
LAMELLA_API Tensor current_turn();

class LAMELLA_API TurnScope {
 public:
  explicit TurnScope(Tensor turn);
  ~TurnScope();
  TurnScope(const TurnScope&) = delete;
};

}  // namespace lamella
