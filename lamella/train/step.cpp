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

WithLossCell::WithLossCell(Ref<Cell> backbone, Ref<Cell> loss)
    : Layer(nn::NamePrefix::None), backbone_(std::move(backbone)), loss_(std::move(loss)) {
  require(backbone_, "WithLossCell", "backbone");
  require(loss_, "WithLossCell", "loss_fn");
  add_cell("_backbone", backbone_);
  add_cell("_loss_fn", loss_);
}

Tensors WithLossCell::construct(const Tensors& inputs) {
  if (inputs.size() < 2) {
    fail(ErrorKind::Value, "[WithLossCell] needs data and label, got {} inputs", inputs.size());
  }
  Tensors outputs = (*backbone_)(Tensors(inputs.begin(), inputs.end() - 1));
  outputs.push_back(inputs.back());
  return (*loss_)(outputs);
}

WithEvalCell::WithEvalCell(Ref<Cell> network, Ref<Cell> loss)
    : Layer(nn::NamePrefix::None), network_(std::move(network)), loss_(std::move(loss)) {
  require(network_, "WithEvalCell", "network");
  require(loss_, "WithEvalCell", "loss_fn");
  add_cell("_network", network_);
  add_cell("_loss_fn", loss_);
}

Tensors WithEvalCell::construct(const Tensors& inputs) {
  if (inputs.size() != 2) {
    fail(ErrorKind::Value, "[WithEvalCell] needs data and label, got {} inputs", inputs.size());
  }
  const Tensor outputs = (*network_)(inputs[0]);
  return {(*loss_)(outputs, inputs[1]), outputs, inputs[1]};
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
    : Layer(nn::NamePrefix::None),
      network_(std::move(network)),
      optimizer_(std::move(optimizer)),
      sens_(sens) {
  require(network_, "TrainOneStepCell", "network");
  require(optimizer_, "TrainOneStepCell", "optimizer");
  network_->set_grad();
  add_cell("network", network_);
  add_cell("optimizer", optimizer_);
}

Tensors TrainOneStepCell::construct(const Tensors& inputs) {
  std::vector<Tensor> weights;
  for (const auto& parameter : optimizer_->parameters()) weights.push_back(parameter->tensor());
  // The step before runs now: if it fails, that is not this step's failure to undo.
  Window::of_thread().settle();
  StatisticsGuard statistics(*network_);
  // The scaled loss is differentiated; the loss itself is what the step gives.
  ValueAndGradients result = value_and_grad(
      [&] {
        Tensors outputs = (*network_)(inputs);
        if (sens_ != 1 && !outputs.empty()) outputs.insert(outputs.begin(), outputs[0] * sens_);
        return outputs;
      },
      weights);
  Tensors outputs = std::move(result.values);
  if (sens_ != 1) outputs.erase(outputs.begin());
  const Tensors gradients = std::move(result.gradients);
  (*optimizer_)(gradients);
  statistics.complete();
  return outputs;
}

}  // namespace lamella::train
