// Adam and its relatives.
#include "lamella/optim/adam.h"

#include <cmath>

#include "lamella/ops/functions.h"
#include "lamella/ops/tensor_operators.h"

namespace lamella::optim {

namespace {

void check(std::string_view name, double beta1, double beta2, double eps) {
  for (double beta : {beta1, beta2}) {
    if (!(beta > 0 && beta < 1)) {
      fail(ErrorKind::Value, "[{}] beta1 and beta2 must lie between 0 and 1, got {} and {}", name,
           beta1, beta2);
    }
  }
  if (!(eps > 0)) fail(ErrorKind::Value, "[{}] eps must be above 0, got {}", name, eps);
}

}  // namespace

Adam::Adam(const OptimizerParameters& parameters, const AdamOptions& options)
    : Optimizer(parameters, {.name = "Adam",
                             .learning_rate = options.learning_rate,
                             .weight_decay = options.weight_decay,
                             .loss_scale = options.loss_scale}),
      options_(options) {
  check("Adam", options.beta1, options.beta2, options.eps);
  first_ = add_state("moment1");
  second_ = add_state("moment2");
  if (options.amsgrad) largest_ = add_state("vhat");
}

Tensor Adam::update(const Update& update) {
  const auto t = static_cast<double>(update.step + 1);
  const double correction =
      std::sqrt(1 - std::pow(options_.beta2, t)) / (1 - std::pow(options_.beta1, t));
  const Ref<nn::Parameter>&first = first_[update.index], &second = second_[update.index];
  const Tensor rate = number(update.rate * correction, update.parameter.dtype());
  const bool nesterov = options_.nesterov == Nesterov::On;
  std::vector<Tensor> next;
  if (options_.amsgrad) {
    const Ref<nn::Parameter>& largest = largest_[update.index];
    next = ops::amsgrad_step(update.parameter, first->tensor(), second->tensor(), largest->tensor(),
                             update.gradient, rate, options_.beta1, options_.beta2, options_.eps,
                             nesterov);
    write(largest, next[3]);
  } else {
    next = ops::adam_step(update.parameter, first->tensor(), second->tensor(), update.gradient,
                          rate, options_.beta1, options_.beta2, options_.eps, nesterov);
  }
  write(first, next[1]);
  write(second, next[2]);
  return next[0];
}

AdamWeightDecay::AdamWeightDecay(const OptimizerParameters& parameters,
                                 const AdamWeightDecayOptions& options)
    : Optimizer(parameters, {.name = "AdamWeightDecay",
                             .learning_rate = options.learning_rate,
                             .weight_decay = options.weight_decay,
                             .decay = WeightDecay::Decoupled}),
      options_(options) {
  check("AdamWeightDecay", options.beta1, options.beta2, options.eps);
  first_ = add_state("adam_m");
  second_ = add_state("adam_v");
}

Tensor AdamWeightDecay::update(const Update& update) {
  const Ref<nn::Parameter>&first = first_[update.index], &second = second_[update.index];
  const DType dtype = update.parameter.dtype();
  const Operand decay = update.decays ? Operand(number(update.weight_decay, dtype)) : Operand();
  const std::vector<Tensor> next = ops::adam_weight_decay_step(
      update.parameter, first->tensor(), second->tensor(), update.gradient,
      number(update.rate, dtype), decay, options_.beta1, options_.beta2, options_.eps);
  write(first, next[1]);
  write(second, next[2]);
  return next[0];
}

namespace {

Tensor moved(const Tensor& moment, double beta, const Tensor& towards) {
  return moment * beta + towards * (1 - beta);
}

// Parameters alone as one group, whose decay spares none of them.
OptimizerParameters as_groups(OptimizerParameters parameters) {
  parameters.grouped = true;
  return parameters;
}

}  // namespace

AdamW::AdamW(OptimizerParameters parameters, const AdamWOptions& options)
    : Optimizer(as_groups(std::move(parameters)),
                {.name = "AdamW",
                 .learning_rate = options.learning_rate,
                 .weight_decay = options.weight_decay,
                 .decay = options.decay == DecayForm::Decoupled ? WeightDecay::Decoupled
                                                                : WeightDecay::InGradient}),
      options_(options) {
  check("AdamW", options.beta1, options.beta2, options.eps);
  first_ = add_state("exp_avg");
  second_ = add_state("exp_avg_sq");
  if (options.amsgrad) largest_ = add_state("max_exp_avg_sq");
}

Tensor AdamW::update(const Update& update) {
  const auto t = static_cast<double>(update.step + 1);
  const Tensor& g = update.gradient;
  const Tensor m = moved(first_[update.index]->tensor(), options_.beta1, g);
  const Tensor v = moved(second_[update.index]->tensor(), options_.beta2, ops::square(g));
  write(first_[update.index], m);
  write(second_[update.index], v);
  Tensor spread = v;
  if (options_.amsgrad) {
    spread = ops::maximum(largest_[update.index]->tensor(), v);
    write(largest_[update.index], spread);
  }
  const double first_correction = 1 - std::pow(options_.beta1, t);
  const double second_correction = std::sqrt(1 - std::pow(options_.beta2, t));
  Tensor kept = update.parameter;
  if (update.decays && options_.decay == DecayForm::Decoupled) {
    kept = kept * (1 - update.rate * update.weight_decay);
  }
  return kept - m * (update.rate / first_correction) /
                    (ops::sqrt(spread) / second_correction + options_.eps);
}

}  // namespace lamella::optim
