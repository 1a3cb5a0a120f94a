// Optimizers with a rate of their own for each element.
#pragma once

#include "lamella/optim/optimizer.h"

namespace lamella::optim {

enum class Centering : uint8_t { Off, On };

struct RmsPropOptions {
  LearningRate learning_rate = 0.1;
  double decay = 0.9;
  double momentum = 0;
  double epsilon = 1e-10;
  Centering centering = Centering::Off;
  double loss_scale = 1;
  LearningRate weight_decay = 0.0;
};

// Tieleman and Hinton, 2012; with centering Graves, "Generating sequences with recurrent neural
// networks", 2013:
//   s = decay s + (1 - decay) g^2,  a = decay a + (1 - decay) g (a = 0 without centering),
//   v = momentum v + rate g / sqrt(s - a^2 + epsilon),  p - v.
// State "mean_square" (ones at first), "moment", with centering "mean_grad".
class LAMELLA_API RMSProp : public Optimizer {
 public:
  explicit RMSProp(const OptimizerParameters& parameters, const RmsPropOptions& options = {});
  std::string class_name() const override { return "RMSProp"; }

 protected:
  Tensor update(const Update& update) override;

 private:
  RmsPropOptions options_;
  Parameters squares_, moments_, means_;
};

struct AdagradOptions {
  double accum = 0.1;  // what the sum of squares begins with
  LearningRate learning_rate = 0.001;
  double loss_scale = 1;
  LearningRate weight_decay = 0.0;
};

// Duchi, Hazan and Singer, 2011: s = s + g^2, p - rate g / sqrt(s). State "accum".
class LAMELLA_API Adagrad : public Optimizer {
 public:
  explicit Adagrad(const OptimizerParameters& parameters, const AdagradOptions& options = {});
  std::string class_name() const override { return "Adagrad"; }

 protected:
  Tensor update(const Update& update) override;

 private:
  Parameters sums_;
};

struct AdaMaxOptions {
  LearningRate learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  LearningRate weight_decay = 0.0;
  double loss_scale = 1;
};

// Kingma and Ba, "Adam", 2015, section 7.1: m = beta1 m + (1 - beta1) g, u = max(beta2 u, |g|),
// p - rate / (1 - beta1^t) m / (u + eps). State "moment1", "moment2".
class LAMELLA_API AdaMax : public Optimizer {
 public:
  explicit AdaMax(const OptimizerParameters& parameters, const AdaMaxOptions& options = {});
  std::string class_name() const override { return "AdaMax"; }

 protected:
  Tensor update(const Update& update) override;

 private:
  AdaMaxOptions options_;
  Parameters moments_, largest_;
};

struct LambOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-6;
  LearningRate weight_decay = 0.0;
};

// You et al., "Large batch optimization for deep learning", 2020: Adam's direction with decay d,
// p - rate (|p| / |d|) d; the ratio of norms is 1 where one of them is 0. State "lamb_m", "lamb_v".
class LAMELLA_API Lamb : public Optimizer {
 public:
  Lamb(const OptimizerParameters& parameters, const LearningRate& learning_rate,
       const LambOptions& options = {});
  std::string class_name() const override { return "Lamb"; }

 protected:
  Tensor update(const Update& update) override;

 private:
  LambOptions options_;
  Parameters first_, second_;
};

}  // namespace lamella::optim
