// Small networks of the kinds people train, with their batches, for tests of what a training step
// costs and where it goes.
#pragma once

#include "lamella/ir/window.h"
#include "lamella/nn/attention.h"
#include "lamella/nn/container.h"
#include "lamella/nn/convolution.h"
#include "lamella/nn/dense.h"
#include "lamella/nn/loss.h"
#include "lamella/nn/normalization.h"
#include "lamella/nn/pooling.h"
#include "lamella/nn/recurrent.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/random.h"
#include "lamella/optim/adam.h"
#include "lamella/train/step.h"

namespace lamella::testing_support {

// LeNet-5 (LeCun et al., 1998) with rectifiers. x: [N, 1, 28, 28]; result: [N, 10].
class LeNet : public nn::Cell {
 public:
  LeNet() {
    conv1_ = add("conv1", make_ref<nn::Conv2d>(1, 6, 5));
    conv2_ = add("conv2",
                 make_ref<nn::Conv2d>(6, 16, 5, nn::Conv2dOptions{.pad_mode = nn::PadMode::Valid}));
    relu_ = add("relu", make_ref<nn::ReLU>());
    pool_ = add("pool", make_ref<nn::MaxPool2d>(2, 2));
    flatten_ = add("flatten", make_ref<nn::Flatten>());
    fc1_ = add("fc1", make_ref<nn::Dense>(400, 120));
    fc2_ = add("fc2", make_ref<nn::Dense>(120, 84));
    fc3_ = add("fc3", make_ref<nn::Dense>(84, 10));
  }
  using Cell::construct;
  Tensor construct(const Tensor& x) override {
    Tensor y = (*pool_)((*relu_)((*conv1_)(x)));
    y = (*flatten_)((*pool_)((*relu_)((*conv2_)(y))));
    return (*fc3_)((*relu_)((*fc2_)((*relu_)((*fc1_)(y)))));
  }

 private:
  Ref<nn::Conv2d> conv1_, conv2_;
  Ref<nn::ReLU> relu_;
  Ref<nn::MaxPool2d> pool_;
  Ref<nn::Flatten> flatten_;
  Ref<nn::Dense> fc1_, fc2_, fc3_;
};

// Classifies sequences by the last output of a recurrent layer. x: [N, T, 16]; result: [N, 10].
class SequenceClassifier : public nn::Cell {
 public:
  SequenceClassifier() {
    lstm_ = add("lstm", make_ref<nn::LSTM>(
                            16, 32, nn::RecurrentOptions{.axes = nn::AxisOrder::BatchFirst}));
    head_ = add("head", make_ref<nn::Dense>(32, 10));
  }
  using Cell::construct;
  Tensor construct(const Tensor& x) override {
    const Tensor sequence = (*lstm_)(nn::Tensors{x})[0];
    return (*head_)(ops::mean(sequence, Axes{1}, false));
  }

 private:
  Ref<nn::LSTM> lstm_;
  Ref<nn::Dense> head_;
};

// Two encoder layers and a head. x: [N, T, 32]; result: [N, 10].
class SmallTransformer : public nn::Cell {
 public:
  SmallTransformer() {
    const nn::TransformerLayerOptions options{
        .dim_feedforward = 64, .dropout = 0.1, .axes = nn::AxisOrder::BatchFirst};
    first_ = add("first", make_ref<nn::TransformerEncoderLayer>(32, 4, options));
    second_ = add("second", make_ref<nn::TransformerEncoderLayer>(32, 4, options));
    head_ = add("head", make_ref<nn::Dense>(32, 10));
  }
  using Cell::construct;
  Tensor construct(const Tensor& x) override {
    return (*head_)(ops::mean((*second_)((*first_)(x)), Axes{1}, false));
  }

 private:
  Ref<nn::TransformerEncoderLayer> first_, second_;
  Ref<nn::Dense> head_;
};

// A network, its batch and its training step with Adam.
struct Training {
  Ref<train::TrainOneStepCell> cell;
  Tensor x, labels;

  Training(const Ref<nn::Cell>& network, const Shape& input, int64_t batch) {
    cell = make_ref<train::TrainOneStepCell>(
        make_ref<train::WithLossCell>(network, make_ref<nn::SoftmaxCrossEntropyWithLogits>(
                                                   nn::Labels::Classes, nn::Reduction::Mean)),
        make_ref<optim::Adam>(network->trainable_params()));
    cell->set_train();
    x = ops::normal(input);
    std::vector<int32_t> classes;
    for (int64_t i = 0; i < batch; ++i) classes.push_back(static_cast<int32_t>(i % 10));
    labels = Tensor::from_vector<int32_t>({batch}, classes);
    Window::of_thread().flush();
  }

  Tensor step() const {
    Tensor loss = (*cell)(x, labels);
    Window::of_thread().flush();
    return loss;
  }

  static Training lenet(int64_t batch = 32) {
    return {make_ref<LeNet>(), {batch, 1, 28, 28}, batch};
  }
  static Training lstm(int64_t batch = 16, int64_t turns = 12) {
    return {make_ref<SequenceClassifier>(), {batch, turns, 16}, batch};
  }
  static Training transformer(int64_t batch = 8, int64_t length = 24) {
    return {make_ref<SmallTransformer>(), {batch, length, 32}, batch};
  }
};

}  // namespace lamella::testing_support
