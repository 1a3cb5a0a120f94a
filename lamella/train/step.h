// The cells a training loop is made of: network with loss, one training step, evaluation.
#pragma once

#include "lamella/nn/cell.h"
#include "lamella/optim/optimizer.h"

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
  // `sens`: what the loss is multiplied by before it is differentiated, a loss scale.
  TrainOneStepCell(Ref<Cell> network, Ref<optim::Optimizer> optimizer, double sens = 1);
  std::string class_name() const override { return "TrainOneStepCell"; }
  using Cell::construct;
  Tensors construct(const Tensors& inputs) override;

  const Ref<Cell>& network() const { return child("network"); }
  optim::Optimizer& optimizer() const { return own_cell<optim::Optimizer>("optimizer"); }

 private:
  double sens_;
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
