// Gradient accumulation: one step of the optimizer for the gradients of several micro-batches, as
// if they had been one batch.
#pragma once

#include "lamella/optim/optimizer.h"

namespace lamella::train {

// Takes the place of the optimizer it holds: called with the gradients of each micro-batch, it adds
// them up and hands their mean on with every n-th. Groups of parameters may have a number of their
// own (ParameterGroup::accumulation_steps). The mean over micro-batches of equal size is the
// gradient of the mean loss over them all.
//
// The sums and the number of micro-batches in them are parameters, "accumulated_gradient.<name>"
// (float32 for 16-bit parameters) and "accumulated_steps_<n>", so that checkpoints hold a window
// that is not complete.
class LAMELLA_API GradientAccumulation : public nn::Layer {
 public:
  // Throws Value for steps below 1.
  GradientAccumulation(Ref<optim::Optimizer> optimizer, int64_t steps);
  std::string class_name() const override { return "GradientAccumulation"; }

  // Takes the gradients of a micro-batch, in the order of the optimizer's parameters; throws as
  // the optimizer does. Returns the parameters' tensors.
  using Cell::construct;
  nn::Tensors construct(const nn::Tensors& gradients) override;
  // Makes the step of windows that are not complete, with the mean over what they hold: what is
  // left at the end of the data. Does nothing where there is nothing.
  void finish();

  optim::Optimizer& optimizer() const { return own_cell<optim::Optimizer>("optimizer"); }

 private:
  // Parameters whose steps are made of the same number of micro-batches.
  struct Portion {
    int64_t steps;
    std::string parameter;  // the count of micro-batches in the sums
    optim::StepCounter counter;
  };

  nn::Tensors step(const nn::Tensors& gradients);
  void update(const nn::Tensors& sums, const std::vector<int64_t>& held,
              const std::vector<bool>& complete);

  std::vector<Portion> portions_;
  std::vector<size_t> portion_of_;  // one a parameter
  nn::Parameters sums_;
};

}  // namespace lamella::train
