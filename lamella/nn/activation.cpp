// What the activations call.
#include "lamella/nn/activation.h"

#include <map>

#include "lamella/nn/initializer.h"
#include "lamella/ops/functions.h"

namespace lamella::nn {

Tensor ReLU::construct(const Tensor& x) {
  return ops::relu(x);
}
Tensor ReLU6::construct(const Tensor& x) {
  return ops::relu6(x);
}
Tensor Sigmoid::construct(const Tensor& x) {
  return ops::sigmoid(x);
}
Tensor Tanh::construct(const Tensor& x) {
  return ops::tanh(x);
}
Tensor SiLU::construct(const Tensor& x) {
  return ops::silu(x);
}
Tensor Mish::construct(const Tensor& x) {
  return ops::mish(x);
}
Tensor HSigmoid::construct(const Tensor& x) {
  return ops::hardsigmoid(x);
}
Tensor HSwish::construct(const Tensor& x) {
  return ops::hardswish(x);
}
Tensor LogSigmoid::construct(const Tensor& x) {
  return ops::logsigmoid(x);
}
Tensor SeLU::construct(const Tensor& x) {
  return ops::selu(x);
}
Tensor SoftSign::construct(const Tensor& x) {
  return ops::softsign(x);
}
Tensor Softplus::construct(const Tensor& x) {
  return ops::softplus(x);
}
Tensor Tanhshrink::construct(const Tensor& x) {
  return ops::tanhshrink(x);
}
Tensor Identity::construct(const Tensor& x) {
  return x;
}

Tensor LeakyReLU::construct(const Tensor& x) {
  return ops::leaky_relu(x, alpha_);
}
std::string LeakyReLU::description() const {
  return fmt::format("alpha={}", alpha_);
}
Tensor ELU::construct(const Tensor& x) {
  return ops::elu(x, alpha_);
}
std::string ELU::description() const {
  return fmt::format("alpha={}", alpha_);
}
Tensor CELU::construct(const Tensor& x) {
  return ops::celu(x, alpha_);
}
std::string CELU::description() const {
  return fmt::format("alpha={}", alpha_);
}
Tensor HShrink::construct(const Tensor& x) {
  return ops::hardshrink(x, lambd_);
}
std::string HShrink::description() const {
  return fmt::format("lambd={}", lambd_);
}
Tensor SoftShrink::construct(const Tensor& x) {
  return ops::softshrink(x, lambd_);
}
std::string SoftShrink::description() const {
  return fmt::format("lambd={}", lambd_);
}

Tensor GELU::construct(const Tensor& x) {
  return ops::gelu(x, form_ == GeluForm::Tanh);
}
Tensor Softmax::construct(const Tensor& x) {
  return ops::softmax(x, axis_);
}
std::string Softmax::description() const {
  return fmt::format("axis={}", axis_);
}
Tensor LogSoftmax::construct(const Tensor& x) {
  return ops::log_softmax(x, axis_);
}
std::string LogSoftmax::description() const {
  return fmt::format("axis={}", axis_);
}

PReLU::PReLU(int64_t channels, double weight) {
  add_parameter(
      "w", make_ref<Parameter>(filled({DType::Float32, Layout::RowMajor, {channels}}, weight)));
}

Tensor PReLU::construct(const Tensor& x) {
  return ops::prelu(x, use("w"));
}

namespace {

template <typename T>
Ref<Cell> made() {
  return Ref<Cell>(new T);
}

const std::map<std::string_view, Ref<Cell> (*)()> kByName = {
    {"softmax", made<Softmax>},
    {"logsoftmax", made<LogSoftmax>},
    {"relu", made<ReLU>},
    {"relu6", made<ReLU6>},
    {"tanh", made<Tanh>},
    {"gelu", made<GELU>},
    {"elu", made<ELU>},
    {"sigmoid", made<Sigmoid>},
    {"silu", made<SiLU>},
    {"prelu", made<PReLU>},
    {"leakyrelu", made<LeakyReLU>},
    {"hswish", made<HSwish>},
    {"hsigmoid", made<HSigmoid>},
    {"logsigmoid", made<LogSigmoid>},
    {"softshrink", made<SoftShrink>},
    {"mish", made<Mish>},
};

}  // namespace

Ref<Cell> get_activation(std::string_view name) {
  if (name.empty()) return {};
  const auto found = kByName.find(name);
  if (found == kByName.end()) {
    std::string names;
    for (const auto& [each, make] : kByName)
      names += (names.empty() ? "" : ", ") + std::string(each);
    fail(ErrorKind::Value, "[activation] there is no activation '{}'; there are {}", name, names);
  }
  return found->second();
}

}  // namespace lamella::nn
