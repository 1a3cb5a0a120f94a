// Loss scales follow the gradients by operators alone, so that no step waits for a number.
#include "lamella/amp/loss_scale.h"

#include <cmath>

#include "lamella/nn/initializer.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/tensor_operators.h"

namespace lamella::amp {

Tensor all_finite(const nn::Tensors& tensors) {
  Tensor finite;
  for (const Tensor& tensor : tensors) {
    if (!is_float(tensor.dtype())) continue;
    const Tensor each = ops::all(ops::isfinite(tensor));
    finite = finite.defined() ? ops::logical_and(finite, each) : each;
  }
  return finite.defined() ? finite : Tensor::scalar(DType::Bool, true);
}

LossScaleUpdate::LossScaleUpdate(double initial_scale)
    : Layer(nn::NamePrefix::None), initial_scale_(initial_scale) {
  if (!(initial_scale >= 1) || !std::isfinite(static_cast<float>(initial_scale))) {
    fail(ErrorKind::Value, "[loss scale] the scale must be at least 1 and a float32 number, got {}",
         initial_scale);
  }
}

nn::Tensors LossScaleUpdate::construct(const nn::Tensors& inputs) {
  if (inputs.size() != 2) {
    fail(ErrorKind::Value, "[{}] needs loss_scale and overflow, got {} inputs", class_name(),
         inputs.size());
  }
  adjust(inputs[0], ops::logical_not(inputs[1]));
  return {inputs[1]};
}

DynamicLossScaleUpdate::DynamicLossScaleUpdate(double initial_scale, double factor, int64_t window)
    : LossScaleUpdate(initial_scale), factor_(factor), window_(window) {
  if (!(factor > 1) || !std::isfinite(factor)) {
    fail(ErrorKind::Value, "[{}] scale_factor must be above 1, got {}", class_name(), factor);
  }
  if (window < 1) {
    fail(ErrorKind::Value, "[{}] scale_window must be at least 1, got {}", class_name(), window);
  }
  add_parameter("good_steps", make_ref<nn::Parameter>(
                                  nn::filled({DType::Int32, Layout::RowMajor, {}}, 0), "good_steps",
                                  nn::ParameterOptions{.requires_grad = false}));
}

void DynamicLossScaleUpdate::adjust(const Tensor& scale, const Tensor& finite) {
  const Tensor& good_steps = own_parameter("good_steps")->tensor();
  const Tensor zero = Tensor::scalar(DType::Int32, 0);
  const Tensor counted = ops::where(finite, ops::mod(good_steps + int64_t{1}, window_), zero);
  const Tensor grown = scale * factor_;
  const Tensor grows = ops::logical_and(ops::equal(counted, zero), ops::isfinite(grown));
  const Tensor smaller = ops::maximum(scale / factor_, 1.0);
  const Tensor next = ops::where(finite, ops::where(grows, grown, scale), smaller);
  good_steps.assign(counted);
  scale.assign(next);
}

}  // namespace lamella::amp
