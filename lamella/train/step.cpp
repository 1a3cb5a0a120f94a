// Loss, gradients and update as one call.
#include "lamella/train/step.h"

#include "lamella/ir/window.h"
#include "lamella/ops/tensor_operators.h"
#include "lamella/transform/grad.h"

namespace lamella::train {

namespace {

void require(const Ref<Cell>& cell, std::string_view owner, std::string_view argument) {
  if (!cell) fail(ErrorKind::Type, "[{}] {} is no cell", owner, argument);
}

}  // namespace

WithLossCell::WithLossCell(Ref<Cell> backbone, Ref<Cell> loss) : Layer(nn::NamePrefix::None) {
  require(backbone, "WithLossCell", "backbone");
  require(loss, "WithLossCell", "loss_fn");
  add_cell("_backbone", std::move(backbone));
  add_cell("_loss_fn", std::move(loss));
}

Tensors WithLossCell::construct(const Tensors& inputs) {
  if (inputs.size() < 2) {
    fail(ErrorKind::Value, "[WithLossCell] needs data and label, got {} inputs", inputs.size());
  }
  Tensors outputs = own_cell("_backbone")(Tensors(inputs.begin(), inputs.end() - 1));
  outputs.push_back(inputs.back());
  return own_cell("_loss_fn")(outputs);
}

WithEvalCell::WithEvalCell(Ref<Cell> network, Ref<Cell> loss) : Layer(nn::NamePrefix::None) {
  require(network, "WithEvalCell", "network");
  require(loss, "WithEvalCell", "loss_fn");
  add_cell("_network", std::move(network));
  add_cell("_loss_fn", std::move(loss));
}

Tensors WithEvalCell::construct(const Tensors& inputs) {
  if (inputs.size() != 2) {
    fail(ErrorKind::Value, "[WithEvalCell] needs data and label, got {} inputs", inputs.size());
  }
  const Tensor outputs = own_cell("_network")(inputs[0]);
  return {own_cell("_loss_fn")(outputs, inputs[1]), outputs, inputs[1]};
}

StatisticsGuard::StatisticsGuard(Cell& network) {
  for (const Ref<nn::Parameter>& parameter : network.untrainable_params()) {
    const Ref<Storage>& storage = parameter->tensor().storage();
    saved_.push_back({storage, storage->current(), storage->version()});
  }
}

StatisticsGuard::~StatisticsGuard() {
  for (Saved& saved : saved_) {
    if (saved.storage->version() != saved.version) {
      saved.storage->restore(std::move(saved.value), saved.version);
    }
  }
}

TrainOneStepCell::TrainOneStepCell(Ref<Cell> network, Ref<optim::Optimizer> optimizer, double sens)
    : Layer(nn::NamePrefix::None), sens_(sens) {
  require(network, "TrainOneStepCell", "network");
  require(optimizer, "TrainOneStepCell", "optimizer");
  network->set_grad();
  add_cell("network", std::move(network));
  add_cell("optimizer", std::move(optimizer));
}

Tensors TrainOneStepCell::construct(const Tensors& inputs) {
  Cell& network = own_cell("network");
  optim::Optimizer& optimizer = this->optimizer();
  std::vector<Tensor> weights;
  for (const auto& parameter : optimizer.parameters()) weights.push_back(parameter->tensor());
  // The step before runs now: if it fails, that is not this step's failure to undo.
  Window::of_thread().settle();
  StatisticsGuard statistics(network);
  // The scaled loss is differentiated; the loss itself is what the step gives.
  ValueAndGradients result = value_and_grad(
      [&] {
        Tensors outputs = network(inputs);
        if (sens_ != 1 && !outputs.empty()) outputs.insert(outputs.begin(), outputs[0] * sens_);
        return outputs;
      },
      weights);
  Tensors outputs = std::move(result.values);
  if (sens_ != 1) outputs.erase(outputs.begin());
  const Tensors gradients = std::move(result.gradients);
  optimizer(gradients);
  statistics.complete();
  return outputs;
}

}  // namespace lamella::train
