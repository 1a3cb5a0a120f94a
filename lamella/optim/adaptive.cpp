// RMSProp, Adagrad, AdaMax and Lamb.
#include "lamella/optim/adaptive.h"

#include <cmath>

#include "lamella/ops/functions.h"
#include "lamella/ops/tensor_operators.h"

namespace lamella::optim {

namespace {

void require(bool accepted, std::string_view optimizer, std::string_view rule) {
  if (!accepted) fail(ErrorKind::Value, "[{}] {}", optimizer, rule);
}

Tensor moved(const Tensor& moment, double beta, const Tensor& towards) {
  return moment * beta + towards * (1 - beta);
}

bool is_share(double number) {
  return number > 0 && number < 1;
}

}  // namespace

RMSProp::RMSProp(const OptimizerParameters& parameters, const RmsPropOptions& options)
    : Optimizer(parameters, {.name = "RMSProp",
                             .learning_rate = options.learning_rate,
                             .weight_decay = options.weight_decay,
                             .loss_scale = options.loss_scale}),
      options_(options) {
  require(options.decay >= 0 && options.momentum >= 0, "RMSProp",
          "decay and momentum must not be negative");
  require(options.epsilon > 0, "RMSProp", "epsilon must be above 0");
  squares_ = add_state("mean_square", 1);
  moments_ = add_state("moment");
  if (options.centering == Centering::On) means_ = add_state("mean_grad");
}

Tensor RMSProp::update(const Update& update) {
  const Tensor& g = update.gradient;
  const size_t i = update.index;
  const Tensor square = moved(squares_[i]->tensor(), options_.decay, ops::square(g));
  write(squares_[i], square);
  Tensor spread = square;
  if (options_.centering == Centering::On) {
    const Tensor mean = moved(means_[i]->tensor(), options_.decay, g);
    write(means_[i], mean);
    spread = square - ops::square(mean);
  }
  const Tensor v = moments_[i]->tensor() * options_.momentum +
                   g * update.rate / ops::sqrt(spread + options_.epsilon);
  write(moments_[i], v);
  return update.parameter - v;
}

Adagrad::Adagrad(const OptimizerParameters& parameters, const AdagradOptions& options)
    : Optimizer(parameters, {.name = "Adagrad",
                             .learning_rate = options.learning_rate,
                             .weight_decay = options.weight_decay,
                             .loss_scale = options.loss_scale}) {
  require(options.accum >= 0, "Adagrad", "accum must not be negative");
  sums_ = add_state("accum", options.accum);
}

Tensor Adagrad::update(const Update& update) {
  const Tensor sum = sums_[update.index]->tensor() + ops::square(update.gradient);
  write(sums_[update.index], sum);
  return update.parameter - update.gradient * update.rate / ops::sqrt(sum);
}

AdaMax::AdaMax(const OptimizerParameters& parameters, const AdaMaxOptions& options)
    : Optimizer(parameters, {.name = "AdaMax",
                             .learning_rate = options.learning_rate,
                             .weight_decay = options.weight_decay,
                             .loss_scale = options.loss_scale}),
      options_(options) {
  require(is_share(options.beta1) && is_share(options.beta2), "AdaMax",
          "beta1 and beta2 must lie between 0 and 1");
  require(options.eps > 0, "AdaMax", "eps must be above 0");
  moments_ = add_state("moment1");
  largest_ = add_state("moment2");
}

Tensor AdaMax::update(const Update& update) {
  const size_t i = update.index;
  const Tensor m = moved(moments_[i]->tensor(), options_.beta1, update.gradient);
  const Tensor u = ops::maximum(largest_[i]->tensor() * options_.beta2, ops::abs(update.gradient));
  write(moments_[i], m);
  write(largest_[i], u);
  const double correction = 1 - std::pow(options_.beta1, static_cast<double>(update.step + 1));
  return update.parameter - m * (update.rate / correction) / (u + options_.eps);
}

Lamb::Lamb(const OptimizerParameters& parameters, const LearningRate& learning_rate,
           const LambOptions& options)
    : Optimizer(parameters, {.name = "Lamb",
                             .learning_rate = learning_rate,
                             .weight_decay = options.weight_decay,
                             .decay = WeightDecay::Decoupled}),
      options_(options) {
  require(is_share(options.beta1) && is_share(options.beta2), "Lamb",
          "beta1 and beta2 must lie between 0 and 1");
  require(options.eps > 0, "Lamb", "eps must be above 0");
  first_ = add_state("lamb_m");
  second_ = add_state("lamb_v");
}

Tensor Lamb::update(const Update& update) {
  const size_t i = update.index;
  const auto t = static_cast<double>(update.step + 1);
  const Tensor m = moved(first_[i]->tensor(), options_.beta1, update.gradient);
  const Tensor v = moved(second_[i]->tensor(), options_.beta2, ops::square(update.gradient));
  write(first_[i], m);
  write(second_[i], v);
  Tensor direction = m / (1 - std::pow(options_.beta1, t)) /
                     (ops::sqrt(v / (1 - std::pow(options_.beta2, t))) + options_.eps);
  if (update.decays) direction = direction + update.parameter * update.weight_decay;
  const auto norm = [](const Tensor& x) { return ops::sqrt(ops::sum(ops::square(x))); };
  const Tensor length = norm(update.parameter), step = norm(direction);
  const Tensor both = ops::logical_and(ops::greater(length, 0), ops::greater(step, 0));
  const Tensor ratio = ops::where(both, length / step, 1.0);
  return update.parameter - direction * (ratio * update.rate);
}

}  // namespace lamella::optim
