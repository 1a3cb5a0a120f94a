// What the losses call.
#include "lamella/nn/loss.h"

#include <limits>

#include "lamella/ops/functions.h"
#include "lamella/ops/tensor_operators.h"

namespace lamella::nn {

namespace {

Operand given_or(const Tensor& tensor, double fallback) {
  return tensor.defined() ? Operand(tensor) : Operand(fallback);
}

}  // namespace

Reduction reduction_from_name(std::string_view name, std::string_view loss) {
  if (name == "none") return Reduction::None;
  if (name == "mean") return Reduction::Mean;
  if (name == "sum") return Reduction::Sum;
  fail(ErrorKind::Value, "[{}] reduction must be none, mean or sum, got '{}'", loss, name);
}

std::string text(Reduction reduction) {
  constexpr std::string_view kNames[] = {"none", "mean", "sum"};
  return std::string(kNames[static_cast<size_t>(reduction)]);
}

Tensor LossBase::get_loss(const Tensor& losses, const Operand& weights) const {
  const bool weighted = weights.is_tensor() || weights.number() != 1;
  Tensor each = weighted ? losses * weights : losses;
  if (reduction_ == Reduction::None) return each;
  return reduction_ == Reduction::Mean ? ops::mean(each) : ops::sum(each);
}

Tensor SoftmaxCrossEntropyWithLogits::construct(const Tensor& logits, const Tensor& labels) {
  if (labels_ == Labels::Classes) {
    // No label stands for "ignore" here: every one must name a class.
    constexpr int64_t kNone = std::numeric_limits<int64_t>::min();
    return ops::cross_entropy(logits, labels, {}, 1, kNone, 0.0, text(reduction()));
  }
  return ops::cross_entropy_with_probabilities(logits, labels, {}, 1, 0.0, text(reduction()));
}

Tensor CrossEntropyLoss::construct(const Tensor& logits, const Tensor& labels) {
  const Operand weight = options_.weight.defined() ? Operand(options_.weight) : Operand();
  const int64_t axis = logits.rank() == 1 ? 0 : 1;
  // Floats of another rank are no probabilities: class numbers of a wrong dtype.
  if (is_float(labels.dtype()) && labels.rank() == logits.rank()) {
    return ops::cross_entropy_with_probabilities(logits, labels, weight, axis,
                                                 options_.label_smoothing, text(reduction()));
  }
  return ops::cross_entropy(logits, labels, weight, axis, options_.ignore_index,
                            options_.label_smoothing, text(reduction()));
}

Tensor MSELoss::construct(const Tensor& logits, const Tensor& labels) {
  return ops::mse_loss(logits, labels, text(reduction()));
}

Tensor L1Loss::construct(const Tensor& logits, const Tensor& labels) {
  return ops::l1_loss(logits, labels, text(reduction()));
}

Tensor SmoothL1Loss::construct(const Tensor& logits, const Tensor& labels) {
  return ops::smooth_l1_loss(logits, labels, beta_, text(reduction()));
}

Tensor BCEWithLogitsLoss::construct(const Tensor& input, const Tensor& target) {
  return ops::binary_cross_entropy_with_logits(input, target, given_or(options_.weight, 1),
                                               given_or(options_.pos_weight, 1), text(reduction()));
}

Tensor NLLLoss::construct(const Tensor& logits, const Tensor& labels) {
  const Operand weight = options_.weight.defined() ? Operand(options_.weight) : Operand();
  return ops::nll_loss(logits, labels, weight, 1, options_.ignore_index, text(reduction()));
}

Tensor BCELoss::construct(const Tensor& logits, const Tensor& labels) {
  return ops::binary_cross_entropy(logits, labels, given_or(weight_, 1), text(reduction()));
}

Tensor HuberLoss::construct(const Tensor& logits, const Tensor& labels) {
  return ops::huber_loss(logits, labels, delta_, text(reduction()));
}

Tensor RMSELoss::construct(const Tensor& logits, const Tensor& labels) {
  return ops::sqrt(ops::mse_loss(logits, labels));
}

}  // namespace lamella::nn
