// What every gradient rule shares: absent cotangents and the sums that undo broadcasting.
#include "lamella/ops/functions.h"
#include "lamella/ops/opdef.h"
#include "lamella/ops/tensor_operators.h"

namespace lamella {

namespace {

// Sums over the axes along which an operand of `shape` was repeated to give `cotangent`.
Tensor sum_to_shape(const Tensor& cotangent, const Shape& shape) {
  if (cotangent.shape() == shape) return cotangent;
  const uint32_t extra = cotangent.shape().size() - shape.size();
  Axes axes;
  for (uint32_t i = 0; i < cotangent.shape().size(); ++i) {
    const bool added = i < extra;
    if (added || (shape[i - extra].is(1) && !cotangent.shape()[i].is(1))) axes.push_back(i);
  }
  const Tensor sum = axes.empty() ? cotangent : ops::sum(cotangent, axes, true);
  return sum.shape() == shape ? sum : ops::reshape(sum, shape);
}

}  // namespace

VjpCall::VjpCall(const Node& node, std::vector<Tensor> cotangents, std::vector<bool> needed)
    : node_(node),
      cotangents_(std::move(cotangents)),
      needed_(std::move(needed)),
      gradients_(node.operands().size()) {}

Tensor VjpCall::cotangent(size_t index) const {
  if (cotangents_[index].defined()) return cotangents_[index];
  return ops::zeros_of(node_.result(index)->type());
}

void VjpCall::give(size_t operand, const Tensor& cotangent) {
  if (!needed_[operand]) return;
  const Tensor fitted = sum_to_shape(cotangent, node_.operand(operand)->type().shape);
  gradients_[operand] = gradients_[operand].defined() ? gradients_[operand] + fitted : fitted;
}

}  // namespace lamella
