// Reverse-mode differentiation. Gradients are new nodes made from the recorded ones, so they can be
// differentiated again, fused and planned like any other.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "lamella/base/api.h"
#include "lamella/ir/tensor.h"

namespace lamella {

struct ValueAndGradients {
  std::vector<Tensor> values;  // what the function returned
  std::vector<Tensor>
      gradients;  // one for each of `wrt`, of its shape; zeros if nothing depends on it
};

// Calls `function` and differentiates the sum of its first result's elements in each of `wrt`, at
// the values they have on entry. With `sensitivity`, that is the cotangent of the first result
// instead of ones. The other results are not differentiated (auxiliary). Throws Type if the first
// result or one of `wrt` is not of a float dtype; Unsupported if the result depends on one of them
// through an operator that has no gradient.
LAMELLA_API ValueAndGradients value_and_grad(const std::function<std::vector<Tensor>()>& function,
                                             std::span<const Tensor> wrt,
                                             const Tensor& sensitivity = {});

// A function's run, kept so that it can be differentiated later and more than once: for cotangents
// of its results, undefined ones standing for zeros, the gradients of the `wrt` it was made with.
// What those need of the run lives as long as this. Throws Value for cotangents of other types than
// the results, and what value_and_grad throws for operators without a gradient.
class LAMELLA_API Pullback {
 public:
  struct Kept;
  explicit Pullback(std::shared_ptr<const Kept> kept) : kept_(std::move(kept)) {}
  std::vector<Tensor> operator()(std::span<const Tensor> cotangents) const;

 private:
  std::shared_ptr<const Kept> kept_;
};

struct ValueAndPullback {
  std::vector<Tensor> values;  // what the function returned
  Pullback pullback;
};

// Calls `function` once. Throws Type if one of `wrt` is not of a float dtype.
LAMELLA_API ValueAndPullback vjp(const std::function<std::vector<Tensor>()>& function,
                                 std::span<const Tensor> wrt);

// The gradients alone.
LAMELLA_API std::vector<Tensor> grad(const std::function<Tensor()>& function,
                                     std::span<const Tensor> wrt);

// A function with a gradient of its own: the results of `forward` are returned, and their
// cotangents are turned into those of `operands` by `backward(operands, results, cotangents)`; an
// undefined tensor stands for zeros.
using CustomBackward = std::function<std::vector<Tensor>(const std::vector<Tensor>& operands,
                                                         const std::vector<Tensor>& results,
                                                         const std::vector<Tensor>& cotangents)>;
LAMELLA_API std::vector<Tensor> custom_gradient(
    const std::vector<Tensor>& operands,
    const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& forward,
    CustomBackward backward);

}  // namespace lamella
