// Sums of gradients, and when they become a step.
#include "lamella/train/accumulation.h"

#include <algorithm>

#include "lamella/ir/window.h"
#include "lamella/nn/initializer.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/tensor_operators.h"

namespace lamella::train {

GradientAccumulation::GradientAccumulation(Ref<optim::Optimizer> optimizer, int64_t steps)
    : Layer(nn::NamePrefix::None) {
  if (!optimizer) fail(ErrorKind::Type, "[GradientAccumulation] optimizer is no optimizer");
  if (steps < 1) {
    fail(ErrorKind::Value,
         "[GradientAccumulation] the number of micro-batches must be at least 1, got {}", steps);
  }
  const nn::Parameters& parameters = optimizer->parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const int64_t own = optimizer->accumulation_steps(i).value_or(steps);
    const auto known = std::find_if(portions_.begin(), portions_.end(),
                                    [&](const Portion& portion) { return portion.steps == own; });
    portion_of_.push_back(static_cast<size_t>(known - portions_.begin()));
    if (known == portions_.end()) {
      portions_.push_back({own, fmt::format("accumulated_steps_{}", own), {}});
      add_parameter(portions_.back().parameter,
                    optim::StepCounter::make_parameter(portions_.back().parameter));
    }
    TensorType type = parameters[i]->type();
    type.dtype = lamella::compute_dtype(type.dtype);
    sums_.push_back(make_ref<nn::Parameter>(nn::filled(type, 0),
                                            "accumulated_gradient." + parameters[i]->name(),
                                            nn::ParameterOptions{.requires_grad = false}));
    adopt_parameter(sums_.back());
  }
  add_cell("optimizer", std::move(optimizer));
  Window::of_thread().flush();
}

nn::Tensors GradientAccumulation::construct(const nn::Tensors& gradients) {
  return optim::called_at_each_replay(*this, gradients,
                                      [this](const nn::Tensors& given) { return step(given); });
}

nn::Tensors GradientAccumulation::step(const nn::Tensors& gradients) {
  if (gradients.size() != sums_.size()) {
    fail(ErrorKind::Value, "[GradientAccumulation] there are {} parameters, but {} gradients",
         sums_.size(), gradients.size());
  }
  std::vector<int64_t> held;  // with this micro-batch
  for (Portion& portion : portions_) {
    held.push_back(portion.counter.value(*own_parameter(portion.parameter)) + 1);
  }
  nn::Tensors sums;
  for (size_t i = 0; i < sums_.size(); ++i) {
    const Tensor& sum = sums_[i]->tensor();
    if (gradients[i].shape() != sum.shape()) {
      fail(ErrorKind::Value, "[GradientAccumulation] '{}' has shape {}, its gradient {}",
           optimizer().parameters()[i]->name(), text(sum.shape()), text(gradients[i].shape()));
    }
    const Tensor gradient =
        gradients[i].dtype() == sum.dtype() ? gradients[i] : ops::cast(gradients[i], sum.dtype());
    // What a finished portion left is not cleared, which would need memory, but passed over. Which
    // it is does not make another graph.
    const Tensor first = Tensor::scalar(DType::Bool, held[portion_of_[i]] == 1);
    sums.push_back(ops::where(first, gradient, sum + gradient));
  }
  std::vector<bool> complete;
  for (size_t w = 0; w < portions_.size(); ++w) complete.push_back(held[w] >= portions_[w].steps);
  update(sums, held, complete);
  nn::Tensors updated;
  for (const auto& parameter : optimizer().parameters()) updated.push_back(parameter->tensor());
  return updated;
}

void GradientAccumulation::finish() {
  std::vector<int64_t> held;
  std::vector<bool> begun;
  for (Portion& portion : portions_) {
    held.push_back(portion.counter.value(*own_parameter(portion.parameter)));
    begun.push_back(held.back() > 0);
  }
  if (std::find(begun.begin(), begun.end(), true) == begun.end()) return;
  nn::Tensors sums;
  for (const auto& sum : sums_) sums.push_back(sum->tensor());
  update(sums, held, begun);
}

// Hands on the portions that are complete, and keeps the sums of the others.
void GradientAccumulation::update(const nn::Tensors& sums, const std::vector<int64_t>& held,
                                  const std::vector<bool>& complete) {
  nn::Tensors means(sums.size());
  for (size_t i = 0; i < sums.size(); ++i) {
    const size_t portion = portion_of_[i];
    if (complete[portion]) means[i] = sums[i] * (1 / static_cast<double>(held[portion]));
  }
  if (std::find(complete.begin(), complete.end(), true) != complete.end()) optimizer()(means);
  for (size_t w = 0; w < portions_.size(); ++w) {
    portions_[w].counter.set(*own_parameter(portions_[w].parameter), complete[w] ? 0 : held[w]);
  }
  for (size_t i = 0; i < sums.size(); ++i) {
    if (!complete[portion_of_[i]]) sums_[i]->tensor().assign(sums[i]);
  }
  Window::of_thread().request_flush();
}

}  // namespace lamella::train
