// How an operator computes many examples at once: the rules by which vmap
// (lamella/transform/vmap.h) turns a node for one example into nodes for a batch of them.
//
// A batched operand has the batch as its axis 0, in front of the axes that one example has; the
// others are the same for all examples. A rule gives the node's results with the batch as axis 0.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "lamella/base/api.h"
#include "lamella/ir/tensor.h"

namespace lamella {

class BatchCall;

// The ways that hold for any operator; lamella/transform has them.
class LAMELLA_API BatchFallback {
 public:
  virtual ~BatchFallback() = default;
  // The operators that the composite is made of, each by its own rule.
  virtual std::vector<Tensor> through_composite(const BatchCall& call) = 0;
  // A scan over the batch with the node for one example as its body.
  virtual std::vector<Tensor> one_by_one(const BatchCall& call) = 0;
};

// A node for one example, whose results for all of them a rule gives.
class LAMELLA_API BatchCall {
 public:
  BatchCall(const Node& node, std::vector<Tensor> operands, std::vector<bool> batched, int64_t size,
            BatchFallback& fallback);

  // The node for one example: its types are without the batch.
  const Node& node() const { return node_; }
  template <typename T>
  const T& attribute(size_t index) const {
    return node_.attribute<T>(index);
  }
  // The number of examples.
  int64_t size() const { return size_; }
  size_t operand_count() const { return operands_.size(); }
  bool is_batched(size_t operand) const { return batched_[operand]; }
  // Whether one of the operands from number `first` on is batched.
  bool any_batched_from(size_t first) const;
  const Tensor& operand(size_t index) const { return operands_[index]; }
  // The operand with the batch as axis 0: repeated if it is the same for all examples.
  Tensor stacked(size_t index) const;
  std::vector<Tensor> all_stacked() const;
  // The operand as it broadcasts: with axes of size 1 behind the batch until one example has `rank`
  // axes. Itself if it is not batched.
  Tensor aligned(size_t index, int rank) const;
  // The number of axes of operand `index` for one example.
  int rank(size_t index) const { return lamella::rank(node_.operand(index)->type().shape); }
  // The shape with the batch in front.
  Shape in_batch(const Shape& shape) const;
  // Result `index` for all examples.
  Shape result_shape(size_t index = 0) const { return in_batch(node_.result(index)->type().shape); }

  std::vector<AttributeValue> attributes() const;
  // Records the node's operator, with its own attributes or others.
  std::vector<Tensor> record(const std::vector<Tensor>& operands) const;
  std::vector<Tensor> record(const std::vector<Tensor>& operands,
                             std::vector<AttributeValue> attributes) const;

  std::vector<Tensor> through_composite() const { return fallback_.through_composite(*this); }
  std::vector<Tensor> one_by_one() const { return fallback_.one_by_one(*this); }

 private:
  const Node& node_;
  std::vector<Tensor> operands_;
  std::vector<bool> batched_;
  int64_t size_;
  BatchFallback& fallback_;
};

using BatchFunction = std::vector<Tensor> (*)(const BatchCall&);

enum class BatchingKind : uint8_t { Rule, Scan, Branch, CustomGradient };

struct Batching {
  BatchingKind kind = BatchingKind::Rule;
  BatchFunction function = nullptr;
};

namespace batch {

// An axis of one example, as one of the batch; those counted from the end stay.
inline int64_t moved(int64_t axis) {
  return axis < 0 ? axis : axis + 1;
}

inline constexpr Batching rule(BatchFunction function) {
  return {.function = function};
}

// The operators that the composite is made of, each by its own rule. Keeps no kernel of its own for
// the gradient, so an operator whose gradient is one has a better rule where there is one.
inline constexpr Batching through_composite =
    rule([](const BatchCall& call) { return call.through_composite(); });
// Always right, and as slow as a loop: for what no other rule says.
inline constexpr Batching one_by_one =
    rule([](const BatchCall& call) { return call.one_by_one(); });

// Operands that broadcast: axes of size 1 behind the batch make up for those that an operand lacks.
LAMELLA_API std::vector<Tensor> align_and_record(const BatchCall& call);
inline constexpr Batching elementwise = rule(align_and_record);

// The same, where operand `leading` alone decides the result's shape.
LAMELLA_API std::vector<Tensor> align_to(const BatchCall& call, size_t leading);
template <size_t leading>
inline constexpr Batching elementwise_like =
    rule([](const BatchCall& call) { return align_to(call, leading); });

// The batch is one more leading axis, of which the operator needs not know.
inline constexpr Batching leading_axis =
    rule([](const BatchCall& call) { return call.record(call.all_stacked()); });

// The attributes with these numbers (int64_t or Axes; no axes: all) count axes, which the batch
// moves on by one.
LAMELLA_API std::vector<Tensor> move_axes_and_record(const BatchCall& call,
                                                     std::initializer_list<size_t> attributes);
template <size_t... attributes>
inline constexpr Batching along_axes =
    rule([](const BatchCall& call) { return move_axes_and_record(call, {attributes...}); });

// The operand's elements in row-major order under the result's shape.
LAMELLA_API std::vector<Tensor> reshape_to_result(const BatchCall& call);
inline constexpr Batching another_shape = rule(reshape_to_result);

inline constexpr int kNoShape = -1;
// The first `operands` operands have independent samples along axis 0 (N), and so has the result:
// the batch joins that axis. `shape` is the number of a Shape attribute that says the size of N
// too. If one of the others is batched: the composite, or where there is none one by one.
LAMELLA_API std::vector<Tensor> join_samples(const BatchCall& call, size_t operands, int shape);
template <size_t operands, int shape = kNoShape>
inline constexpr Batching joined_samples =
    rule([](const BatchCall& call) { return join_samples(call, operands, shape); });

// What holds graphs or a gradient rule of its own: lamella/transform goes into them.
inline constexpr Batching scan_body{.kind = BatchingKind::Scan};
inline constexpr Batching branches{.kind = BatchingKind::Branch};
inline constexpr Batching custom_gradient{.kind = BatchingKind::CustomGradient};

}  // namespace batch

}  // namespace lamella
