// The walk that records a function's operations again for a batch of examples, each by its
// operator's batch rule (lamella/ops/batching.h).
#pragma once

#include <span>
#include <vector>

#include "lamella/base/pointer_map.h"
#include "lamella/ir/graph.h"
#include "lamella/ir/region.h"
#include "lamella/ops/batching.h"

namespace lamella {

// What stands for a value of one example: for all of them, with the batch as axis 0, or a tensor
// that is the same for all.
struct Batched {
  Tensor tensor;
  bool is_batched = false;
};

class Batcher final : public BatchFallback {
 public:
  explicit Batcher(int64_t size) : size_(size) {}

  void set(const Ref<Value>& value, Batched batched) { known_[value.get()] = std::move(batched); }
  // The values of outside that a trace reads, which are the same for all examples.
  void set_captured(const RegionTrace& trace);
  // Of a value that is not known: itself.
  Batched of(const Ref<Value>& value) const;
  // With the batch as axis 0, repeated if need be.
  Tensor stacked(const Ref<Value>& value) const;

  // Records the nodes again in the current recorder; those without a batched operand as they are.
  void run(std::span<const Ref<Node>> nodes);

  std::vector<Tensor> through_composite(const BatchCall& call) override;
  std::vector<Tensor> one_by_one(const BatchCall& call) override;

 private:
  std::vector<Batched> batch(const Node& node, const std::vector<Batched>& operands);
  std::vector<Batched> batch_scan(const Node& node, const std::vector<Batched>& operands);
  std::vector<Batched> batch_branch(const Node& node, const std::vector<Batched>& operands);
  std::vector<Batched> batch_custom_gradient(const Node& node,
                                             const std::vector<Batched>& operands);

  int64_t size_;
  PointerMap<Value, Batched> known_;
};

// The tensor with its elements in row-major order.
Tensor in_rows(const Tensor& tensor);
// The tensor once for each of `size` examples, along a new axis 0.
Tensor repeated(const Tensor& tensor, int64_t size);
// The type with its elements in row-major order: of one example in a batch.
TensorType row_major(const TensorType& type);

}  // namespace lamella
