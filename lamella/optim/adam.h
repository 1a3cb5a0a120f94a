// Adam and its relatives.
#pragma once

#include "lamella/optim/optimizer.h"
#include "lamella/optim/sgd.h"

namespace lamella::optim {

struct AdamOptions {
  LearningRate learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  Nesterov nesterov = Nesterov::Off;
  bool amsgrad = false;  // Reddi et al., 2018: divides by the largest second moment so far
  LearningRate weight_decay = 0.0;
  double loss_scale = 1;
};

// Kingma and Ba, "Adam", 2015, in the form of section 2's last paragraph, at step t from 1:
//   m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g^2,
//   p - rate sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + eps).
// State "moment1", "moment2", with amsgrad "vhat".
class LAMELLA_API Adam : public Optimizer {
 public:
  // Throws Value for betas outside (0, 1) and eps not above 0.
  explicit Adam(const OptimizerParameters& parameters, const AdamOptions& options = {});
  std::string class_name() const override { return "Adam"; }

 protected:
  Tensor update(const Update& update) override;

 private:
  AdamOptions options_;
  Parameters first_, second_, largest_;
};

struct AdamWeightDecayOptions {
  LearningRate learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-6;
  LearningRate weight_decay = 0.0;
};

// m and v as above, without correction of their bias, and decay beside the gradient (Loshchilov and
// Hutter, 2019): p - rate (m / (sqrt(v) + eps) + decay p). State "adam_m", "adam_v".
class LAMELLA_API AdamWeightDecay : public Optimizer {
 public:
  explicit AdamWeightDecay(const OptimizerParameters& parameters,
                           const AdamWeightDecayOptions& options = {});
  std::string class_name() const override { return "AdamWeightDecay"; }

 protected:
  Tensor update(const Update& update) override;

 private:
  AdamWeightDecayOptions options_;
  Parameters first_, second_;
};

// Where weight decay enters: beside the gradient's step, or into the gradient.
enum class DecayForm : uint8_t { Decoupled, InGradient };

struct AdamWOptions {
  LearningRate learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  LearningRate weight_decay = 0.01;
  DecayForm decay = DecayForm::Decoupled;
  bool amsgrad = false;
};

// Loshchilov and Hutter, "Decoupled weight decay regularization", 2019, with Adam's algorithm 1 for
// the step: m and v as above, each corrected for its bias before eps is added:
//   p - rate decay p - rate m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps).
// The decay applies to every parameter. State "exp_avg", "exp_avg_sq", with amsgrad
// "max_exp_avg_sq".
class LAMELLA_API AdamW : public Optimizer {
 public:
  // Throws as Adam does.
  explicit AdamW(OptimizerParameters parameters, const AdamWOptions& options = {});
  std::string class_name() const override { return "AdamW"; }

 protected:
  Tensor update(const Update& update) override;

 private:
  AdamWOptions options_;
  Parameters first_, second_, largest_;
};

}  // namespace lamella::optim
