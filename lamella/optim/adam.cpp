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

Tensor moved(const Tensor& moment, double beta, const Tensor& towards) {
  return moment * beta + towards * (1 - beta);
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
  const Tensor& g = update.gradient;
  const Tensor m = moved(first_[update.index]->tensor(), options_.beta1, g);
  const Tensor v = moved(second_[update.index]->tensor(), options_.beta2, ops::square(g));
  write(first_[update.index], m);
  write(second_[update.index], v);
  Tensor divisor = v;
  if (options_.amsgrad) {
    divisor = ops::maximum(largest_[update.index]->tensor(), v);
    write(largest_[update.index], divisor);
  }
  const Tensor direction = options_.nesterov == Nesterov::On ? moved(m, options_.beta1, g) : m;
  return update.parameter -
         direction * (update.rate * correction) / (ops::sqrt(divisor) + options_.eps);
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
  const Tensor& g = update.gradient;
  const Tensor m = moved(first_[update.index]->tensor(), options_.beta1, g);
  const Tensor v = moved(second_[update.index]->tensor(), options_.beta2, ops::square(g));
  write(first_[update.index], m);
  write(second_[update.index], v);
  Tensor direction = m / (ops::sqrt(v) + options_.eps);
  if (update.decays) direction = direction + update.parameter * update.weight_decay;
  return update.parameter - direction * update.rate;
}

}  // namespace lamella::optim
