// The cells a training loop is made of: network with loss, one training step, evaluation.
#pragma once

#include "lamella/amp/loss_scale.h"
#include "lamella/nn/cell.h"
#include "lamella/train/accumulation.h"
#include "lamella/transform/grad.h"

namespace lamella::train {

using nn::Cell;
using nn::Layer;
using nn::Tensors;

// loss(backbone(data...), label) for inputs data..., label.
class LAMELLA_API WithLossCell : public Layer {
 public:
  WithLossCell(Ref<Cell> backbone, Ref<Cell> loss);
  std::string class_name() const override { return "WithLossCell"; }
  using Cell::construct;
  Tensors construct(const Tensors& inputs) override;
  const Ref<Cell>& backbone_network() const { return child("_backbone"); }
};

// (loss, outputs, label) for inputs data, label.
class LAMELLA_API WithEvalCell : public Layer {
 public:
  WithEvalCell(Ref<Cell> network, Ref<Cell> loss);
  std::string class_name() const override { return "WithEvalCell"; }
  using Cell::construct;
  Tensors construct(const Tensors& inputs) override;
};

// One training step: the network's first output (the loss) is differentiated in the optimizer's
// parameters, which are then updated. Gives the network's outputs. If the step fails, also later,
// when it runs, parameters, statistics and optimizer state are as they were.
class LAMELLA_API TrainOneStepCell : public Layer {
 public:
  // `sens`: what the loss is multiplied by before it is differentiated; the optimizer's loss_scale
  // divides by it.
  TrainOneStepCell(Ref<Cell> network, Ref<optim::Optimizer> optimizer, double sens = 1);
  // Steps of several micro-batches.
  TrainOneStepCell(Ref<Cell> network, Ref<GradientAccumulation> accumulation, double sens = 1);
  std::string class_name() const override { return "TrainOneStepCell"; }
  using Cell::construct;
  Tensors construct(const Tensors& inputs) override;

  const Ref<Cell>& network() const { return child("network"); }
  optim::Optimizer& optimizer() const;
  // Null if every batch is a step.
  GradientAccumulation* accumulation() const;

 protected:
  // The network's outputs, and the gradients of its loss times `scale` (a number or float32, []).
  ValueAndGradients differentiate(const Tensors& inputs, const std::optional<Operand>& scale);
  // Makes the step, or the part of one.
  void update(const Tensors& gradients);

 private:
  double sens_;
};

// As TrainOneStepCell, with a loss scale: gradients are divided by the scale that multiplied their
// loss, in float32. A step whose gradients are not all finite is left out: parameters, optimizer
// state, schedule, statistics and sums of gradients stay as they were, and only the scale changes.
// Gives the network's outputs, whether the step was left out (bool, []), and the scale it had
// (float32, []). Parameter "scale_sense": float32, [].
class LAMELLA_API TrainOneStepWithLossScaleCell : public TrainOneStepCell {
 public:
  template <typename Updater>  // Optimizer or GradientAccumulation
  TrainOneStepWithLossScaleCell(Ref<Cell> network, Ref<Updater> updater,
                                Ref<amp::LossScaleUpdate> loss_scale)
      : TrainOneStepCell(std::move(network), std::move(updater)) {
    add_loss_scale(std::move(loss_scale));
  }
  std::string class_name() const override { return "TrainOneStepWithLossScaleCell"; }
  using Cell::construct;
  Tensors construct(const Tensors& inputs) override;

 private:
  void add_loss_scale(Ref<amp::LossScaleUpdate> loss_scale);
};

// The state that a forward pass itself writes (moving statistics): remembers it, and puts it back
// unless the step is said to be complete.
class LAMELLA_API StatisticsGuard {
 public:
  explicit StatisticsGuard(Cell& network);
  ~StatisticsGuard();
  StatisticsGuard(const StatisticsGuard&) = delete;
  StatisticsGuard& operator=(const StatisticsGuard&) = delete;
  void complete() { saved_.clear(); }

 private:
  struct Saved {
    Ref<Storage> storage;
    Ref<Value> value;
    uint64_t version;
  };
  std::vector<Saved> saved_;
};

}  // namespace lamella::train
