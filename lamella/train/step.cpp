// Loss, gradients and update as one call.
#include "lamella/train/step.h"

#include "lamella/ir/window.h"
#include "lamella/nn/initializer.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/tensor_operators.h"

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
      saved.storage->restore(std::move(saved.value));
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

TrainOneStepCell::TrainOneStepCell(Ref<Cell> network, Ref<GradientAccumulation> accumulation,
                                   double sens)
    : Layer(nn::NamePrefix::None), sens_(sens) {
  require(network, "TrainOneStepCell", "network");
  require(accumulation, "TrainOneStepCell", "accumulation");
  network->set_grad();
  add_cell("network", std::move(network));
  add_cell("accumulation", std::move(accumulation));
}

GradientAccumulation* TrainOneStepCell::accumulation() const {
  return dynamic_cast<GradientAccumulation*>(child("accumulation").get());
}

optim::Optimizer& TrainOneStepCell::optimizer() const {
  if (GradientAccumulation* const sums = accumulation()) return sums->optimizer();
  return own_cell<optim::Optimizer>("optimizer");
}

ValueAndGradients TrainOneStepCell::differentiate(const Tensors& inputs,
                                                  const std::optional<Operand>& scale) {
  std::vector<Tensor> weights;
  for (const auto& parameter : optimizer().parameters()) weights.push_back(parameter->tensor());
  // The scaled loss is differentiated; the loss itself is what the step gives.
  ValueAndGradients result = value_and_grad(
      [&] {
        Tensors outputs = own_cell("network")(inputs);
        if (scale && !outputs.empty()) outputs.insert(outputs.begin(), outputs[0] * *scale);
        return outputs;
      },
      weights);
  if (scale && !result.values.empty()) result.values.erase(result.values.begin());
  return result;
}

void TrainOneStepCell::update(const Tensors& gradients) {
  if (GradientAccumulation* const sums = accumulation()) {
    (*sums)(gradients);
  } else {
    optimizer()(gradients);
  }
}

Tensors TrainOneStepCell::construct(const Tensors& inputs) {
  // The step before runs now: if it fails, that is not this step's failure to undo.
  Window::of_thread().settle();
  StatisticsGuard statistics(own_cell("network"));
  const ValueAndGradients result =
      differentiate(inputs, sens_ == 1 ? std::optional<Operand>() : Operand(sens_));
  update(result.gradients);
  statistics.complete();
  return result.values;
}

void TrainOneStepWithLossScaleCell::add_loss_scale(Ref<amp::LossScaleUpdate> loss_scale) {
  if (!loss_scale) {
    fail(ErrorKind::Type, "[TrainOneStepWithLossScaleCell] scale_sense is no loss scale");
  }
  const Tensor initial =
      nn::filled({DType::Float32, Layout::RowMajor, {}}, loss_scale->initial_scale());
  add_parameter("scale_sense",
                make_ref<nn::Parameter>(initial, "scale_sense",
                                        nn::ParameterOptions{.requires_grad = false}));
  add_cell("loss_scaling_manager", std::move(loss_scale));
  Window::of_thread().flush();
}

Tensors TrainOneStepWithLossScaleCell::construct(const Tensors& inputs) {
  Window::of_thread().settle();
  StatisticsGuard statistics(own_cell("network"));
  const Tensor& held = own_parameter("scale_sense")->tensor();
  const Tensor scale(held.value());  // of this step, whatever becomes of the parameter
  ValueAndGradients result = differentiate(inputs, Operand(scale));
  const Tensor finite = amp::all_finite(result.gradients);
  const bool applies = finite.item() != 0;
  if (applies) {
    for (Tensor& gradient : result.gradients) {
      gradient = ops::cast(gradient, lamella::compute_dtype(gradient.dtype())) / scale;
    }
    update(result.gradients);
  }
  own_cell<amp::LossScaleUpdate>("loss_scaling_manager").adjust(held, finite);
  result.values.push_back(ops::logical_not(finite));
  result.values.push_back(scale);
  // By now the update has run: what was recorded behind it made it run.
  if (applies) statistics.complete();
  return result.values;
}

}  // namespace lamella::train
