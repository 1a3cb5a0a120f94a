// A function for one example, called for a batch of them at once.
//
// The function is called once, with placeholders for one example; its operations are then recorded
// for all of them, each by its operator's batch rule (lamella/ops/batching.h,
// docs/decisions/0010-vmap-records-for-a-batch.md). So a product for a batch is one product, not a
// loop of them. Gradients inside and outside, vmap in vmap, loops and branches all work.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "lamella/base/api.h"
#include "lamella/ir/tensor.h"
#include "lamella/transform/control_flow.h"

namespace lamella {

// The axis of the examples, counted from the end if negative; none: the same for all examples.
using BatchAxis = std::optional<int64_t>;
inline constexpr BatchAxis kNotBatched = std::nullopt;

struct ExampleResult {
  std::vector<Tensor> tensors;
  // Where each result's batch is to lie; one for all of them, or one for each.
  std::vector<BatchAxis> out_axes = {0};
};
using ExampleFunction = std::function<ExampleResult(const std::vector<Tensor>& examples)>;

// Calls `function` for each example along the axes of the arguments, and gives its results for all
// of them. `in_axes` has one axis for each argument, or one for all.
//
// The function may read any tensor of outside, which is the same for all examples. It draws random
// numbers anew for each example, as a scan over them would. It cannot read an example's elements,
// nor write a tensor of outside (Value).
//
// Throws Value where axes do not fit arguments or results in number or range, where no argument is
// batched or their sizes differ, and where a result that depends on the example has no out axis.
LAMELLA_API std::vector<Tensor> vmap(const ExampleFunction& function,
                                     const std::vector<Tensor>& arguments,
                                     const std::vector<BatchAxis>& in_axes = {0},
                                     SourceLocation where = here());

// The same for a function with one result, whose batch becomes axis 0.
LAMELLA_API Tensor vmap(const std::function<Tensor(const std::vector<Tensor>& examples)>& function,
                        const std::vector<Tensor>& arguments,
                        const std::vector<BatchAxis>& in_axes = {0}, SourceLocation where = here());

}  // namespace lamella
