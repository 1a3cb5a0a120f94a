// Steps with a loss scale and steps of several micro-batches.
#include <limits>

#include "tests/train/small_training.h"
#include "tests/window_limits.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lamella/device/pool.h"
#include "lamella/ir/window.h"
#include "lamella/nn/loss.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/random.h"
#include "lamella/optim/adam.h"
#include "lamella/optim/sgd.h"
#include "lamella/runtime/counters.h"
#include "lamella/train/step.h"

namespace lamella::train {
namespace {

using nn::Dense;
using testing::ElementsAre;
using testing_support::Batch;
using testing_support::batch;
using testing_support::perceptron;
using testing_support::small_conv_net;
using testing_support::State;
using testing_support::state_of;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Ref<WithLossCell> with_cross_entropy(const Ref<nn::Cell>& network) {
  return make_ref<WithLossCell>(network, make_ref<nn::SoftmaxCrossEntropyWithLogits>(
                                             nn::Labels::Classes, nn::Reduction::Mean));
}

// weight -> weight times x, one number; its gradient is x.
struct OneWeight {
  Ref<Dense> dense =
      make_ref<Dense>(1, 1, nn::DenseOptions{.weight_init = 0.0, .bias = nn::Bias::None});
  Ref<optim::SGD> optimizer =
      make_ref<optim::SGD>(dense->trainable_params(), optim::SgdOptions{.learning_rate = 1.0});
  double weight() const { return dense->weight()->tensor().item(); }
};

Tensor of(float x) {
  return Tensor::from_vector<float>({1, 1}, {x});
}

TEST(LossScaleStep, FollowsTheScaleAndAppliesTheExactGradient) {
  OneWeight one;
  const auto step = make_ref<TrainOneStepWithLossScaleCell>(
      one.dense, one.optimizer,
      Ref<amp::LossScaleUpdate>(make_ref<amp::DynamicLossScaleUpdate>(4, 2, 1)));
  std::vector<double> scales, weights;
  for (int i = 0; i < 3; ++i) {
    const Tensors outputs = (*step)(Tensors{of(1)});
    EXPECT_FALSE(outputs[1].item());
    scales.push_back(outputs[2].item());
    weights.push_back(one.weight());
  }
  EXPECT_THAT(scales, ElementsAre(4, 8, 16));
  EXPECT_THAT(weights, ElementsAre(-1, -2, -3));
}

TEST(LossScaleStep, AnInfiniteGradientChangesNothingButTheScale) {
  set_seed(5);
  for (const float bad : {kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
    const auto network = small_conv_net();
    const auto step = make_ref<TrainOneStepWithLossScaleCell>(
        with_cross_entropy(network), make_ref<optim::Adam>(network->trainable_params()),
        Ref<amp::LossScaleUpdate>(make_ref<amp::DynamicLossScaleUpdate>(1024, 2, 100)));
    step->set_train();
    Batch good = batch(0, {6, 1, 8, 8}, 5);
    for (int i = 0; i < 3; ++i) (*step)({good.images, good.labels});
    State before = state_of(*step);
    std::vector<float> images = good.images.to_vector<float>();
    images[17] = bad;
    const Tensors outputs =
        (*step)({Tensor::from_vector<float>({6, 1, 8, 8}, images), good.labels});
    EXPECT_TRUE(outputs[1].item());
    EXPECT_EQ(outputs[2].item(), 1024);
    State after = state_of(*step);
    EXPECT_NE(after.at("scale_sense"), before.at("scale_sense"));
    EXPECT_EQ(step->optimizer().global_step(), 3);
    for (const char* name : {"scale_sense", "good_steps"}) {
      before.erase(name);
      after.erase(name);
    }
    EXPECT_EQ(after, before);
    EXPECT_GT(before.count("1.moving_mean"), 0U) << "the statistics are compared too";
    EXPECT_EQ((*step)({good.images, good.labels})[2].item(), 512);
    EXPECT_EQ(step->optimizer().global_step(), 4);
  }
}

TEST(LossScaleStep, APowerOfTwoLeavesTheBitsOfPlainTraining) {
  const auto trained = [](bool scaled) {
    set_seed(7);
    const auto network = perceptron();
    const auto loss = with_cross_entropy(network);
    const auto adam = make_ref<optim::Adam>(network->trainable_params());
    Ref<TrainOneStepCell> step =
        scaled
            ? Ref<TrainOneStepCell>(make_ref<TrainOneStepWithLossScaleCell>(
                  loss, adam, Ref<amp::LossScaleUpdate>(make_ref<amp::FixedLossScaleUpdate>(1024))))
            : make_ref<TrainOneStepCell>(loss, adam);
    step->set_train();
    for (int64_t i = 0; i < 5; ++i) {
      const Batch data = batch(i, {16, 20}, 5);
      (*step)({data.images, data.labels});
    }
    return state_of(*network);
  };
  EXPECT_EQ(trained(true), trained(false));
}

TEST(LossScaleStep, MakesNoGraphAfterTheSecondStepWhateverTheScale) {
  set_seed(1);
  const auto network = perceptron();
  const auto step = make_ref<TrainOneStepWithLossScaleCell>(
      with_cross_entropy(network), make_ref<optim::Adam>(network->trainable_params()),
      Ref<amp::LossScaleUpdate>(make_ref<amp::DynamicLossScaleUpdate>(4, 2, 3)));
  step->set_train();
  const Batch data = batch(0, {8, 20}, 5);
  int64_t graphs = 0;
  for (int i = 0; i < 60; ++i) {
    (*step)({data.images, data.labels})[0].wait();
    if (i == 1) graphs = counters().graphs;
  }
  EXPECT_EQ(counters().graphs, graphs);
}

// ---- Accumulation ----

// The state of a perceptron without dropout after training on 24 samples, 24 / parts at a time.
std::map<std::string, std::vector<float>> trained_in_parts(int64_t parts, int64_t steps) {
  set_seed(3);
  const auto network = make_ref<nn::SequentialCell>(std::vector<Ref<nn::Cell>>{
      make_ref<Dense>(20, 33, nn::DenseOptions{.activation = "relu"}), make_ref<Dense>(33, 5)});
  const auto adam =
      make_ref<optim::Adam>(network->trainable_params(), optim::AdamOptions{.weight_decay = 0.01});
  const auto step = make_ref<TrainOneStepCell>(with_cross_entropy(network),
                                               make_ref<GradientAccumulation>(adam, parts));
  step->set_train();
  const int64_t rows = 24 / parts;
  for (int64_t i = 0; i < steps; ++i) {
    const Batch data = batch(i, {24, 20}, 5);
    for (int64_t part = 0; part < parts; ++part) {
      (*step)({ops::narrow(data.images, part * rows, 0, Shape{rows}),
               ops::narrow(data.labels, part * rows, 0, Shape{rows})});
    }
  }
  EXPECT_EQ(adam->global_step(), steps);
  std::map<std::string, std::vector<float>> weights;
  for (const auto& parameter : network->get_parameters()) {
    weights[parameter->name()] = parameter->tensor().to_vector<float>();
  }
  return weights;
}

TEST(GradientAccumulation, EqualsTheFullBatchToRounding) {
  const auto whole = trained_in_parts(1, 6);
  for (const int64_t parts : {2, 3, 8}) {
    for (const auto& [name, weights] : trained_in_parts(parts, 6)) {
      EXPECT_THAT(weights, testing::Pointwise(testing::FloatNear(2e-5F), whole.at(name)))
          << name << " in " << parts;
    }
  }
}

TEST(GradientAccumulation, MakesTheStepOfALastPartialWindow) {
  OneWeight one;
  GradientAccumulation sums(one.optimizer, 4);
  for (const float gradient : {1.0F, 2.0F, 3.0F, 6.0F, 10.0F, 20.0F}) sums(Tensors{of(gradient)});
  EXPECT_EQ(one.weight(), -3);
  sums.finish();
  EXPECT_EQ(one.weight(), -18);
  sums.finish();
  EXPECT_EQ(one.weight(), -18) << "nothing is left";
  EXPECT_EQ(one.optimizer->global_step(), 2);
}

TEST(GradientAccumulation, GroupsStepByTheirOwnNumbers) {
  // SGD with a rate that falls with the group's own steps: 1, then 0.5.
  const auto parameter = [](const char* name) {
    return make_ref<nn::Parameter>(Tensor::from_vector<float>({1}, {0}), name);
  };
  const auto fast = parameter("fast"), slow = parameter("slow"), plain = parameter("plain");
  const optim::LearningRate falling = optim::Rates{1, 0.5, 0.25};
  const auto sgd = make_ref<optim::SGD>(
      std::vector<optim::ParameterGroup>{
          {.parameters = {fast}, .learning_rate = falling, .accumulation_steps = 1},
          {.parameters = {slow}, .learning_rate = falling, .accumulation_steps = 4},
          {.parameters = {plain}}},
      optim::SgdOptions{.learning_rate = 1.0});
  GradientAccumulation sums(sgd, 2);
  const auto one = [](float x) { return Tensor::from_vector<float>({1}, {x}); };
  for (int i = 0; i < 4; ++i) sums({one(1), one(static_cast<float>(i)), one(1)});
  EXPECT_EQ(fast->tensor().item(), -(1 + 0.5 + 0.25 + 0.25));
  EXPECT_EQ(slow->tensor().item(), -1.5) << "one step with rate 1 of the mean of 0, 1, 2, 3";
  EXPECT_EQ(plain->tensor().item(), -2);
  for (int i = 0; i < 2; ++i) sums({one(0), one(8), one(0)});
  sums.finish();
  EXPECT_EQ(slow->tensor().item(), -1.5 - 0.5 * 8);
}

TEST(GradientAccumulation, LeavesOutMicroBatchesThatAreNotFinite) {
  OneWeight one;
  const auto step = make_ref<TrainOneStepWithLossScaleCell>(
      one.dense, make_ref<GradientAccumulation>(one.optimizer, 2),
      Ref<amp::LossScaleUpdate>(make_ref<amp::DynamicLossScaleUpdate>(4, 2, 100)));
  for (const float x : {1.0F, kInfinity, 3.0F}) (*step)(Tensors{of(x)});
  EXPECT_EQ(one.weight(), -2);
}

TEST(GradientAccumulation, MakesNoGraphOnceAWindowHasPassed) {
  set_seed(1);
  const auto network = perceptron();
  const auto step = make_ref<TrainOneStepCell>(
      with_cross_entropy(network),
      make_ref<GradientAccumulation>(make_ref<optim::Adam>(network->trainable_params()), 3));
  step->set_train();
  const Batch data = batch(0, {8, 20}, 5);
  int64_t graphs = 0;
  for (int i = 0; i < 30; ++i) {
    (*step)({data.images, data.labels})[0].wait();
    if (i == 5) graphs = counters().graphs;
  }
  EXPECT_EQ(counters().graphs, graphs);
}

// Beside what a plain step of a micro-batch needs: the sums, one copy of the gradients.
TEST(GradientAccumulation, NeedsOneCopyOfTheGradientsMore) {
  const testing_support::ScopedWindowLimits long_window;
  int64_t gradients = 0;
  const auto peak = [&](int64_t steps) {
    set_seed(1);
    const auto network = make_ref<nn::SequentialCell>(std::vector<Ref<nn::Cell>>{
        make_ref<Dense>(200, 300), make_ref<nn::ReLU>(), make_ref<Dense>(300, 200),
        make_ref<nn::ReLU>(), make_ref<Dense>(200, 5)});
    gradients = 0;
    for (const auto& parameter : network->get_parameters()) {
      gradients += element_count(parameter->shape()).value() * 4;
    }
    const auto adam = make_ref<optim::Adam>(network->trainable_params());
    const auto loss = with_cross_entropy(network);
    const auto step =
        steps == 1 ? make_ref<TrainOneStepCell>(loss, adam)
                   : make_ref<TrainOneStepCell>(loss, make_ref<GradientAccumulation>(adam, steps));
    const Batch data = batch(0, {64, 200}, 5);
    for (int i = 0; i < 8; ++i) {
      if (i == 4) cpu_pool().reset_peak();
      (*step)({data.images, data.labels});
      Window::of_thread().flush();
    }
    return cpu_pool().statistics().peak_used;
  };
  const int64_t before = cpu_pool().statistics().used;
  const int64_t plain = peak(1) - before;
  EXPECT_LE(peak(4) - before, plain + gradients + gradients / 50);
}

TEST(GradientAccumulation, SaysWhatIsWrong) {
  OneWeight one;
  EXPECT_THROW(GradientAccumulation(one.optimizer, 0), Error);
  EXPECT_THROW(GradientAccumulation({}, 2), Error);
  GradientAccumulation sums(one.optimizer, 2);
  EXPECT_THROW(sums(Tensors{}), Error);
  EXPECT_THROW(sums(Tensors{Tensor::from_vector<float>({2}, {1, 2})}), Error);
  const std::vector<optim::ParameterGroup> groups{
      {.parameters = one.dense->trainable_params(), .accumulation_steps = 0}};
  EXPECT_THROW(optim::SGD{groups}, Error);
}

}  // namespace
}  // namespace lamella::train
