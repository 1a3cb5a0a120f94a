// A training step: what it computes, that it fails whole, and that no cut of the window shows.
#include "lamella/train/step.h"

#include <cstring>
#include <random>
#include <thread>

#include "tests/train/small_training.h"
#include "tests/window_limits.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lamella/base/parallel.h"
#include "lamella/ir/window.h"
#include "lamella/nn/container.h"
#include "lamella/nn/convolution.h"
#include "lamella/nn/dropout.h"
#include "lamella/nn/loss.h"
#include "lamella/nn/normalization.h"
#include "lamella/nn/pooling.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/random.h"
#include "lamella/optim/adam.h"
#include "lamella/runtime/counters.h"

namespace lamella::train {
namespace {

using nn::Dense;
using nn::Parameters;
using testing_support::Batch;
using testing_support::batch;
using testing_support::perceptron;
using testing_support::small_conv_net;
using testing_support::small_lstm;
using testing_support::small_transformer;
using testing_support::State;
using testing_support::state_of;

Ref<TrainOneStepCell> trained_by_adam(const Ref<nn::Cell>& network) {
  const auto loss =
      make_ref<nn::SoftmaxCrossEntropyWithLogits>(nn::Labels::Classes, nn::Reduction::Mean);
  auto step = make_ref<TrainOneStepCell>(
      make_ref<WithLossCell>(network, loss),
      make_ref<optim::Adam>(network->trainable_params(), optim::AdamOptions{.weight_decay = 1e-3}));
  step->set_train();
  return step;
}

TEST(TrainOneStep, MovesAgainstTheGradient) {
  const auto dense = make_ref<Dense>(2, 1, nn::DenseOptions{.weight_init = 0.0, .bias_init = 0.0});
  const auto step = make_ref<TrainOneStepCell>(
      make_ref<WithLossCell>(dense, make_ref<nn::MSELoss>()),
      make_ref<optim::SGD>(dense->trainable_params(), optim::SgdOptions{.learning_rate = 0.5}));
  // Loss (0 - 3)^2, slopes -6 x.
  const Tensor loss =
      (*step)(Tensor::from_vector<float>({1, 2}, {1, 2}), Tensor::from_vector<float>({1, 1}, {3}));
  EXPECT_EQ(loss.item(), 9);
  EXPECT_EQ(dense->weight()->tensor().to_vector<float>(), (std::vector<float>{3, 6}));
  EXPECT_EQ(dense->bias()->tensor().to_vector<float>(), (std::vector<float>{3}));
}

TEST(TrainOneStep, ScalesTheGradientButNotTheLossItGives) {
  const auto dense =
      make_ref<Dense>(1, 1, nn::DenseOptions{.weight_init = 0.0, .bias = nn::Bias::None});
  dense->to_float(DType::BFloat16);
  const auto step = make_ref<TrainOneStepCell>(
      make_ref<WithLossCell>(dense, make_ref<nn::MSELoss>(nn::Reduction::None)),
      make_ref<optim::SGD>(dense->trainable_params(),
                           optim::SgdOptions{.learning_rate = 0.5, .loss_scale = 8}),
      8);
  const Tensor loss =
      (*step)(Tensor::from_vector<float>({1, 1}, {1}), Tensor::from_vector<float>({1, 1}, {3}));
  EXPECT_EQ(ops::sum(loss).item(), 9);
  EXPECT_EQ(dense->weight()->tensor().item(), 3);
}

TEST(TrainOneStep, LearnsAndMakesNoGraphAfterTheSecondStep) {
  set_seed(1);
  const auto step = trained_by_adam(perceptron());
  const Batch data = batch(0, {64, 20}, 5);
  const double first = (*step)(data.images, data.labels).item();
  (*step)(data.images, data.labels).item();
  const int64_t graphs = counters().graphs;
  double last = 0;
  for (int i = 0; i < 60; ++i) last = (*step)(data.images, data.labels).item();
  EXPECT_EQ(counters().graphs, graphs);
  EXPECT_LT(last, first * 0.9);
}

TEST(TrainOneStep, IsOneWindowHoweverManyOperations) {
  const auto step = trained_by_adam(small_conv_net());
  const Batch data = batch(0, {6, 1, 8, 8}, 5);
  const testing_support::ScopedWindowLimits limits({.loop = 8});
  Window::of_thread().flush();
  const int64_t flushes = counters().flushes;
  for (int i = 0; i < 4; ++i) (*step)(data.images, data.labels);
  Window::of_thread().flush();
  EXPECT_EQ(counters().flushes - flushes, 4);
}

// Trains five steps under the window limits, reading values at random places.
State after_five_steps(const Ref<nn::Cell>& network, const Shape& shape, int64_t window) {
  const testing_support::ScopedWindowLimits limits({.fixed = window});
  const auto step = trained_by_adam(network);
  std::mt19937 random(static_cast<unsigned>(window + 100));
  for (int64_t i = 0; i < 5; ++i) {
    const Batch data = batch(i, shape, 5);
    const Tensor loss = (*step)(data.images, data.labels);
    const Parameters parameters = network->get_parameters();
    if (random() % 2 == 0) loss.wait();
    if (random() % 2 == 0) parameters[random() % parameters.size()]->tensor().wait();
  }
  return state_of(*step);
}

struct Case {
  const char* name;
  Ref<nn::Cell> (*network)();
  Shape shape;
  DType dtype;
};

class Cuts : public testing::TestWithParam<Case> {};

TEST_P(Cuts, EveryWindowGivesTheSameBytes) {
  const Case& given = GetParam();
  const auto run = [&](int64_t window) {
    set_seed(7);
    const auto network = given.network();
    network->to_float(given.dtype);
    return after_five_steps(network, given.shape, window);
  };
  const State expected = run(0);
  for (int64_t window : {1, 7, 64}) {
    const State state = run(window);
    for (const auto& [name, bytes] : expected) {
      EXPECT_EQ(state.at(name), bytes) << name << " at window " << window;
    }
  }
}

// Normalisation, activations, dropout, loss and optimizer are kernels of this library; matrix
// products are not, and may differ with the thread count.
TEST(Threads, OneAndTwoGiveTheSameBytesWhereOwnKernelsRun) {
  const int threads = thread_count();
  const auto run = [&](int count) {
    set_thread_count(count);
    set_seed(7);
    const auto network = make_ref<nn::SequentialCell>(std::vector<Ref<nn::Cell>>{
        make_ref<nn::BatchNorm1d>(300), make_ref<nn::GELU>(), make_ref<nn::LayerNorm>(Shape{300}),
        make_ref<nn::Dropout>(), make_ref<nn::PReLU>(300)});
    return after_five_steps(network, {257, 300}, 0);
  };
  const State one = run(1), two = run(2);
  set_thread_count(threads);
  for (const auto& [name, bytes] : one) EXPECT_EQ(two.at(name), bytes) << name;
}

// Each thread has a window of its own, and they share caches, pool and processors.
TEST(Threads, TwoTrainAtOnceWhatTheyTrainOneAfterTheOther) {
  // Without dropout: the generator is the process's, and who draws first differs from run to run.
  const auto networks = [] {
    set_seed(7);
    return std::vector<Ref<nn::Cell>>{
        make_ref<nn::SequentialCell>(std::vector<Ref<nn::Cell>>{
            make_ref<nn::Conv2d>(1, 4, 3), make_ref<nn::BatchNorm2d>(4), make_ref<nn::ReLU>(),
            make_ref<nn::Flatten>(), make_ref<Dense>(4 * 8 * 8, 5)}),
        small_lstm()};
  };
  const std::vector<Shape> shapes{{6, 1, 8, 8}, {4, 7, 16}};
  std::vector<State> alone, together(2);
  {
    const auto made = networks();
    for (size_t i = 0; i < 2; ++i) alone.push_back(after_five_steps(made[i], shapes[i], 0));
  }
  const auto made = networks();
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] { together[i] = after_five_steps(made[i], shapes[i], 0); });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(together[i], alone[i]) << "network " << i;
}

INSTANTIATE_TEST_SUITE_P(
    Networks, Cuts,
    testing::Values(Case{"MlpF32", perceptron, {16, 20}, DType::Float32},
                    Case{"MlpBf16", perceptron, {16, 20}, DType::BFloat16},
                    Case{"ConvF32", small_conv_net, {6, 1, 8, 8}, DType::Float32},
                    Case{"ConvBf16", small_conv_net, {6, 1, 8, 8}, DType::BFloat16},
                    Case{"LstmF32", small_lstm, {4, 7, 16}, DType::Float32},
                    Case{"LstmBf16", small_lstm, {4, 7, 16}, DType::BFloat16},
                    Case{"TransformerF32", small_transformer, {3, 5, 32}, DType::Float32},
                    Case{"TransformerBf16", small_transformer, {3, 5, 32}, DType::BFloat16}),
    [](const auto& parameter) { return std::string(parameter.param.name); });

class Failures : public testing::TestWithParam<int64_t> {};

TEST_P(Failures, ABadLabelLeavesEverythingAndTheNextBatchTrains) {
  const testing_support::ScopedWindowLimits limits({.fixed = GetParam()});
  set_seed(3);
  const auto step = trained_by_adam(small_conv_net());
  State before;
  for (int64_t i = 0; i < 9; ++i) {
    Batch data = batch(i, {6, 1, 8, 8}, 5);
    if (i != 7) {
      (*step)(data.images, data.labels).wait();
      continue;
    }
    before = state_of(*step);
    data.labels = Tensor::from_vector<int32_t>({6}, {0, 1, 2, 5, 3, 4});
    EXPECT_THROW((*step)(data.images, data.labels).wait(), Error);
    EXPECT_EQ(state_of(*step), before);
    EXPECT_EQ(step->optimizer().global_step(), 7);
  }
  EXPECT_NE(state_of(*step), before);
  EXPECT_EQ(step->optimizer().global_step(), 8);
}

TEST(TrainOneStep, AFailureNobodyReadIsThrownByTheNextStepAndLeavesEverything) {
  const testing_support::ScopedWindowLimits long_window;
  set_seed(3);
  const auto step = trained_by_adam(small_conv_net());
  const Batch good = batch(0, {6, 1, 8, 8}, 5);
  (*step)(good.images, good.labels);
  const State before = state_of(*step);
  (*step)(good.images, Tensor::from_vector<int32_t>({6}, {0, 1, 2, -1, 3, 4}));
  EXPECT_THROW((*step)(good.images, good.labels), Error);
  EXPECT_EQ(state_of(*step), before);
  EXPECT_EQ(step->optimizer().global_step(), 1);
  (*step)(good.images, good.labels);
  EXPECT_NE(state_of(*step), before);
}

INSTANTIATE_TEST_SUITE_P(Windows, Failures, testing::Values(0, 1, 7, 64));

}  // namespace
}  // namespace lamella::train
