// Losses as layers: construct(prediction, target).
#pragma once

#include <string>

#include "lamella/nn/cell.h"

namespace lamella::nn {

// How the losses of the elements become one number.
enum class Reduction : uint8_t { None, Mean, Sum };
// "none", "mean" or "sum"; Value, in the name of `loss`, otherwise.
LAMELLA_API Reduction reduction_from_name(std::string_view name, std::string_view loss);
LAMELLA_API std::string text(Reduction reduction);

// Base of losses: holds the reduction.
class LAMELLA_API LossBase : public Layer {
 public:
  explicit LossBase(Reduction reduction = Reduction::Mean) : reduction_(reduction) {}
  std::string class_name() const override { return "LossBase"; }
  using Cell::construct;

 protected:
  Reduction reduction() const { return reduction_; }
  // `losses` times `weights`, reduced.
  Tensor get_loss(const Tensor& losses, const Operand& weights = 1.0) const;

 private:
  Reduction reduction_;
};

// Labels as class numbers, or as a distribution over the classes (one-hot).
enum class Labels : uint8_t { OneHot, Classes };

// -log(softmax(logits)) at the labels: logits [N, C]; labels int32 or int64 [N], or of logits'
// shape and a float dtype. Result [N] without reduction, which is the default.
class LAMELLA_API SoftmaxCrossEntropyWithLogits : public LossBase {
 public:
  explicit SoftmaxCrossEntropyWithLogits(Labels labels = Labels::OneHot,
                                         Reduction reduction = Reduction::None)
      : LossBase(reduction), labels_(labels) {}
  std::string class_name() const override { return "SoftmaxCrossEntropyWithLogits"; }
  using LossBase::construct;
  Tensor construct(const Tensor& logits, const Tensor& labels) override;

 private:
  Labels labels_;
};

struct CrossEntropyOptions {
  Tensor weight = {};  // of each class: [C]
  int64_t ignore_index = -100;
  Reduction reduction = Reduction::Mean;
  double label_smoothing = 0;
};

// logits [N, C, ...], labels class numbers [N, ...] or probabilities of logits' shape.
class LAMELLA_API CrossEntropyLoss : public LossBase {
 public:
  explicit CrossEntropyLoss(const CrossEntropyOptions& options = {})
      : LossBase(options.reduction), options_(options) {}
  std::string class_name() const override { return "CrossEntropyLoss"; }
  using LossBase::construct;
  Tensor construct(const Tensor& logits, const Tensor& labels) override;

 private:
  CrossEntropyOptions options_;
};

// (logits - labels)^2
class LAMELLA_API MSELoss : public LossBase {
 public:
  using LossBase::LossBase;
  std::string class_name() const override { return "MSELoss"; }
  using LossBase::construct;
  Tensor construct(const Tensor& logits, const Tensor& labels) override;
};

// |logits - labels|
class LAMELLA_API L1Loss : public LossBase {
 public:
  using LossBase::LossBase;
  std::string class_name() const override { return "L1Loss"; }
  using LossBase::construct;
  Tensor construct(const Tensor& logits, const Tensor& labels) override;
};

// d^2 / (2 beta) where d = |logits - labels| < beta, else d - beta / 2.
class LAMELLA_API SmoothL1Loss : public LossBase {
 public:
  explicit SmoothL1Loss(double beta = 1, Reduction reduction = Reduction::None)
      : LossBase(reduction), beta_(beta) {}
  std::string class_name() const override { return "SmoothL1Loss"; }
  using LossBase::construct;
  Tensor construct(const Tensor& logits, const Tensor& labels) override;

 private:
  double beta_;
};

struct BCEWithLogitsOptions {
  Reduction reduction = Reduction::Mean;
  Tensor weight = {};      // of each element; broadcasts
  Tensor pos_weight = {};  // of the elements' positive part; broadcasts
};

// -(target log(sigmoid(input)) pos_weight + (1 - target) log(1 - sigmoid(input))) weight
class LAMELLA_API BCEWithLogitsLoss : public LossBase {
 public:
  explicit BCEWithLogitsLoss(const BCEWithLogitsOptions& options = {})
      : LossBase(options.reduction), options_(options) {}
  std::string class_name() const override { return "BCEWithLogitsLoss"; }
  using LossBase::construct;
  Tensor construct(const Tensor& input, const Tensor& target) override;

 private:
  BCEWithLogitsOptions options_;
};

struct NllOptions {
  Tensor weight = {};  // of each class: [C]
  int64_t ignore_index = -100;
  Reduction reduction = Reduction::Mean;
};

// -logits at the labels, for logits that are logarithms of probabilities.
class LAMELLA_API NLLLoss : public LossBase {
 public:
  explicit NLLLoss(const NllOptions& options = {})
      : LossBase(options.reduction), options_(options) {}
  std::string class_name() const override { return "NLLLoss"; }
  using LossBase::construct;
  Tensor construct(const Tensor& logits, const Tensor& labels) override;

 private:
  NllOptions options_;
};

// -(label log(logit) + (1 - label) log(1 - logit)) weight, for probabilities.
class LAMELLA_API BCELoss : public LossBase {
 public:
  explicit BCELoss(Tensor weight = {}, Reduction reduction = Reduction::Mean)
      : LossBase(reduction), weight_(std::move(weight)) {}
  std::string class_name() const override { return "BCELoss"; }
  using LossBase::construct;
  Tensor construct(const Tensor& logits, const Tensor& labels) override;

 private:
  Tensor weight_;  // broadcasts
};

// d^2 / 2 where d = |logits - labels| <= delta, else delta (d - delta / 2).
class LAMELLA_API HuberLoss : public LossBase {
 public:
  explicit HuberLoss(Reduction reduction = Reduction::Mean, double delta = 1)
      : LossBase(reduction), delta_(delta) {}
  std::string class_name() const override { return "HuberLoss"; }
  using LossBase::construct;
  Tensor construct(const Tensor& logits, const Tensor& labels) override;

 private:
  double delta_;
};

// sqrt(mean((logits - labels)^2))
class LAMELLA_API RMSELoss : public LossBase {
 public:
  RMSELoss() = default;
  std::string class_name() const override { return "RMSELoss"; }
  using LossBase::construct;
  Tensor construct(const Tensor& logits, const Tensor& labels) override;
};

}  // namespace lamella::nn
