// Counts of steps.
#include "lamella/optim/step_counter.h"

#include "lamella/nn/initializer.h"

namespace lamella::optim {

namespace {

Tensor as_tensor(int64_t count) {
  return nn::filled({DType::Int32, Layout::RowMajor, {1}}, static_cast<double>(count));
}

}  // namespace

Ref<nn::Parameter> StepCounter::make_parameter(const std::string& name) {
  return make_ref<nn::Parameter>(as_tensor(0), name, nn::ParameterOptions{.requires_grad = false});
}

int64_t StepCounter::value(const nn::Parameter& parameter) {
  if (SeenValue::of(parameter) != seen_) {
    value_ = parameter.tensor().to_vector<int32_t>()[0];
    seen_ = SeenValue::of(parameter);
  }
  return value_;
}

void StepCounter::set(const nn::Parameter& parameter, int64_t value) {
  parameter.tensor().assign(as_tensor(value));
  value_ = value;
  seen_ = SeenValue::of(parameter);
}

}  // namespace lamella::optim
