// A small network and its Adam step, written with tensors alone, for tests of the engine.
#pragma once

#include <cmath>
#include <vector>

#include "lamella/ir/tensor.h"
#include "lamella/ir/window.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/random.h"
#include "lamella/ops/tensor_operators.h"
#include "lamella/transform/grad.h"

namespace lamella::testing_support {

class SmallNetwork {
 public:
  static constexpr int64_t kFeatures = 16, kHidden = 32, kClasses = 10;

  SmallNetwork() {
    set_seed(7);
    for (const Shape& shape :
         {Shape{kHidden, kFeatures}, Shape{kHidden}, Shape{kClasses, kHidden}, Shape{kClasses}}) {
      weights.push_back(ops::uniform(shape, -0.2, 0.2));
      first_moments.push_back(Tensor::from_vector<float>(shape, std::vector<float>(count(shape))));
      second_moments.push_back(Tensor::from_vector<float>(shape, std::vector<float>(count(shape))));
      weights.back().wait();
    }
  }

  Tensor loss(const Tensor& x, const Tensor& labels, double dropout = 0.25) const {
    Tensor hidden = ops::relu(ops::dense(x, weights[0], weights[1]));
    if (dropout > 0) hidden = ops::dropout(hidden, dropout);
    return ops::cross_entropy(ops::dense(hidden, weights[2], weights[3]), labels);
  }

  // Adam (Kingma and Ba, 2015); gives the loss.
  Tensor step(const Tensor& x, const Tensor& labels, double rate = 1e-3, double dropout = 0.25) {
    const ValueAndGradients result =
        value_and_grad([&] { return std::vector{loss(x, labels, dropout)}; }, weights);
    update(result.gradients, rate);
    return result.values[0];
  }

  void update(const std::vector<Tensor>& gradients, double rate) {
    ++steps;
    const double correction = std::sqrt(1 - std::pow(0.999, steps)) / (1 - std::pow(0.9, steps));
    for (size_t i = 0; i < weights.size(); ++i) {
      const Tensor m = first_moments[i] * 0.9 + gradients[i] * 0.1;
      const Tensor v = second_moments[i] * 0.999 + ops::square(gradients[i]) * 0.001;
      weights[i].assign(weights[i] - m * (rate * correction) / (ops::sqrt(v) + 1e-8));
      first_moments[i].assign(m);
      second_moments[i].assign(v);
    }
    Window::of_thread().request_flush();
  }

  std::vector<Tensor> state() const {
    std::vector<Tensor> all = weights;
    all.insert(all.end(), first_moments.begin(), first_moments.end());
    all.insert(all.end(), second_moments.begin(), second_moments.end());
    return all;
  }

  std::vector<Tensor> weights, first_moments, second_moments;
  int steps = 0;

 private:
  static size_t count(const Shape& shape) {
    return static_cast<size_t>(element_count(shape).value());
  }
};

// Inputs and labels of a batch; a function of the seed alone.
inline Tensor batch_inputs(int64_t batch, uint32_t seed = 1) {
  std::vector<float> elements;
  for (int64_t i = 0; i < batch * SmallNetwork::kFeatures; ++i) {
    seed = seed * 1664525u + 1013904223u;
    elements.push_back(static_cast<float>(seed >> 8) * 0x1p-24f - 0.5f);
  }
  return Tensor::from_vector<float>({batch, SmallNetwork::kFeatures}, elements);
}
inline Tensor batch_labels(int64_t batch) {
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < batch; ++i)
    labels.push_back(static_cast<int32_t>(i % SmallNetwork::kClasses));
  return Tensor::from_vector<int32_t>({batch}, labels);
}

inline std::vector<uint8_t> bytes_of(const Tensor& tensor) {
  const Buffer buffer = tensor.data();
  const auto* first = static_cast<const uint8_t*>(buffer.data());
  return {first, first + element_count(tensor.shape()).value() * size_of(tensor.dtype())};
}

}  // namespace lamella::testing_support
