// Small networks, batches for them, and the bits of everything that training changes.
#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/training_networks.h"

#include "lamella/nn/container.h"
#include "lamella/nn/convolution.h"
#include "lamella/nn/dense.h"
#include "lamella/nn/dropout.h"
#include "lamella/nn/normalization.h"
#include "lamella/nn/pooling.h"

namespace lamella::testing_support {

struct Batch {
  Tensor images, labels;
};

inline Batch batch(int64_t number, const Shape& shape, int64_t classes) {
  std::mt19937 random(static_cast<unsigned>(number + 1));
  std::normal_distribution<float> normal;
  std::vector<float> elements(static_cast<size_t>(element_count(shape).value()));
  for (float& element : elements) element = normal(random);
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < shape[0].value(); ++i) {
    labels.push_back(static_cast<int32_t>(random() % static_cast<unsigned>(classes)));
  }
  return {Tensor::from_vector<float>(shape, elements),
          Tensor::from_vector<int32_t>({shape[0]}, labels)};
}

inline std::vector<std::byte> bytes_of(const Tensor& tensor) {
  const Buffer elements = tensor.data();
  const auto* first = static_cast<const std::byte*>(elements.data());
  return {first, first + elements.size};
}

// Every parameter and every part of the state, by name.
using State = std::map<std::string, std::vector<std::byte>>;
inline State state_of(nn::Cell& cell) {
  State state;
  for (const auto& parameter : cell.get_parameters()) {
    state[parameter->name()] = bytes_of(parameter->tensor());
  }
  return state;
}

inline Ref<nn::Cell> perceptron() {
  return make_ref<nn::SequentialCell>(std::vector<Ref<nn::Cell>>{
      make_ref<nn::Dense>(20, 33, nn::DenseOptions{.activation = "relu"}), make_ref<nn::Dropout>(),
      make_ref<nn::Dense>(33, 5)});
}

inline Ref<nn::Cell> small_conv_net() {
  return make_ref<nn::SequentialCell>(std::vector<Ref<nn::Cell>>{
      make_ref<nn::Conv2d>(1, 4, 3), make_ref<nn::BatchNorm2d>(4), make_ref<nn::ReLU>(),
      make_ref<nn::MaxPool2d>(2, 2), make_ref<nn::Flatten>(), make_ref<nn::Dropout>(),
      make_ref<nn::Dense>(4 * 4 * 4, 5)});
}

inline Ref<nn::Cell> small_lstm() {
  return make_ref<SequenceClassifier>();
}

inline Ref<nn::Cell> small_transformer() {
  return make_ref<SmallTransformer>();
}

}  // namespace lamella::testing_support
