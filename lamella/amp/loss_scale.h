// Loss scales. A loss is multiplied by a scale before it is differentiated, so that gradients which
// 16-bit floats would round to zero survive, and the gradients are divided by the same scale
// (Micikevicius et al., "Mixed precision training", 2018, section 3.2).
#pragma once

#include "lamella/nn/cell.h"

namespace lamella::amp {

// Whether every element of every float tensor is finite: bool, []. True if there is none.
LAMELLA_API Tensor all_finite(const nn::Tensors& tensors);

// What decides the scale of the next step. The scale itself is a parameter of whoever holds it.
class LAMELLA_API LossScaleUpdate : public nn::Layer {
 public:
  // Throws Value unless the scale is at least 1 and finite.
  explicit LossScaleUpdate(double initial_scale);

  double initial_scale() const { return initial_scale_; }
  // Writes into `scale` (float32, []) what follows a step whose gradients were `finite` (bool, []).
  virtual void adjust(const Tensor& scale, const Tensor& finite) = 0;

  // For inputs (scale, overflow): adjusts, and gives the overflow.
  using Cell::construct;
  nn::Tensors construct(const nn::Tensors& inputs) override;

 private:
  double initial_scale_;
};

// The same scale for every step.
class LAMELLA_API FixedLossScaleUpdate : public LossScaleUpdate {
 public:
  using LossScaleUpdate::LossScaleUpdate;
  std::string class_name() const override { return "FixedLossScaleUpdateCell"; }
  void adjust(const Tensor&, const Tensor&) override {}
};

// As large as the gradients allow: after `window` finite steps in a row the scale is multiplied by
// the factor, unless that is beyond float32; after a step that is not finite it is divided by the
// factor, but never below 1. Parameter "good_steps": int32, [].
class LAMELLA_API DynamicLossScaleUpdate : public LossScaleUpdate {
 public:
  // Throws Value unless the factor is above 1 and the window at least 1.
  explicit DynamicLossScaleUpdate(double initial_scale = 16777216, double factor = 2,
                                  int64_t window = 2000);
  std::string class_name() const override { return "DynamicLossScaleUpdateCell"; }
  void adjust(const Tensor& scale, const Tensor& finite) override;

  double factor() const { return factor_; }
  int64_t window() const { return window_; }

 private:
  double factor_;
  int64_t window_;
};

}  // namespace lamella::amp
