// Stochastic gradient descent.
#include "lamella/optim/sgd.h"

#include "lamella/ops/tensor_operators.h"

namespace lamella::optim {

SGD::SGD(const OptimizerParameters& parameters, const SgdOptions& options)
    : Optimizer(parameters, {.name = "SGD",
                             .learning_rate = options.learning_rate,
                             .weight_decay = options.weight_decay,
                             .loss_scale = options.loss_scale}),
      options_(options) {
  if (options.momentum < 0 || options.dampening < 0) {
    fail(ErrorKind::Value, "[SGD] momentum and dampening must not be negative, got {} and {}",
         options.momentum, options.dampening);
  }
  if (options.nesterov == Nesterov::On && (options.momentum <= 0 || options.dampening != 0)) {
    fail(ErrorKind::Value, "[SGD] nesterov needs a momentum above 0 and dampening 0, got {} and {}",
         options.momentum, options.dampening);
  }
  if (options.momentum > 0) accumulated_ = add_state("accum");
}

Tensor SGD::update(const Update& update) {
  if (options_.momentum == 0) return update.parameter - update.gradient * update.rate;
  // At the first step v is 0, so that the sum is g.
  const double share = update.step == 0 ? 1 : 1 - options_.dampening;
  const Ref<nn::Parameter>& state = accumulated_[update.index];
  const Tensor v = state->tensor() * options_.momentum + update.gradient * share;
  write(state, v);
  if (options_.nesterov == Nesterov::Off) return update.parameter - v * update.rate;
  return update.parameter - (update.gradient + v * options_.momentum) * update.rate;
}

Momentum::Momentum(const OptimizerParameters& parameters, const LearningRate& learning_rate,
                   double momentum, const MomentumOptions& options)
    : Optimizer(parameters, {.name = "Momentum",
                             .learning_rate = learning_rate,
                             .weight_decay = options.weight_decay,
                             .loss_scale = options.loss_scale}),
      momentum_(momentum),
      nesterov_(options.nesterov) {
  if (momentum < 0) {
    fail(ErrorKind::Value, "[Momentum] momentum must not be negative, got {}", momentum);
  }
  moments_ = add_state("moments");
}

Tensor Momentum::update(const Update& update) {
  const Ref<nn::Parameter>& state = moments_[update.index];
  const Tensor v = state->tensor() * momentum_ + update.gradient;
  write(state, v);
  if (nesterov_ == Nesterov::Off) return update.parameter - v * update.rate;
  return update.parameter - (update.gradient * update.rate + v * (momentum_ * update.rate));
}

}  // namespace lamella::optim
