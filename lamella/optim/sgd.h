// Stochastic gradient descent, plain and with momentum.
#pragma once

#include "lamella/optim/optimizer.h"

namespace lamella::optim {

// Whether the step looks ahead along the momentum (Sutskever et al., 2013).
enum class Nesterov : uint8_t { Off, On };

struct SgdOptions {
  LearningRate learning_rate = 0.1;
  double momentum = 0;
  double dampening = 0;
  LearningRate weight_decay = 0.0;
  Nesterov nesterov = Nesterov::Off;
  double loss_scale = 1;
};

// Without momentum p - rate g. With it v = momentum v + (1 - dampening) g, v = g at the first step,
// and p - rate v; with Nesterov p - rate (g + momentum v). State "accum".
class LAMELLA_API SGD : public Optimizer {
 public:
  // Throws Value for a negative momentum, and Nesterov without momentum or with dampening.
  explicit SGD(const OptimizerParameters& parameters, const SgdOptions& options = {});
  std::string class_name() const override { return "SGD"; }

 protected:
  Tensor update(const Update& update) override;

 private:
  SgdOptions options_;
  Parameters accumulated_;
};

struct MomentumOptions {
  LearningRate weight_decay = 0.0;
  double loss_scale = 1;
  Nesterov nesterov = Nesterov::Off;
};

// v = momentum v + g; p - rate v, with Nesterov p - (rate g + rate momentum v). State "moments".
class LAMELLA_API Momentum : public Optimizer {
 public:
  Momentum(const OptimizerParameters& parameters, const LearningRate& learning_rate,
           double momentum, const MomentumOptions& options = {});
  std::string class_name() const override { return "Momentum"; }

 protected:
  Tensor update(const Update& update) override;

 private:
  double momentum_;
  Nesterov nesterov_;
  Parameters moments_;
};

}  // namespace lamella::optim
