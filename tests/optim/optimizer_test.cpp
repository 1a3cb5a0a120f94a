// Optimizers: their formulas in plain loops, groups, state, and how a step runs.
#include <cmath>

#include "tests/window_limits.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lamella/ir/window.h"
#include "lamella/nn/initializer.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/tensor_operators.h"
#include "lamella/optim/adam.h"
#include "lamella/optim/adaptive.h"
#include "lamella/optim/sgd.h"
#include "lamella/runtime/counters.h"

namespace lamella::optim {
namespace {

using nn::Parameter;
using testing::ElementsAre;
using testing::HasSubstr;

Tensor floats(const Shape& shape, std::vector<float> elements) {
  return Tensor::from_vector<float>(shape, elements);
}
Ref<Parameter> parameter(const std::string& name, const Shape& shape, std::vector<float> elements) {
  return make_ref<Parameter>(floats(shape, std::move(elements)), name);
}
float only(const Ref<Parameter>& one) {
  return one->tensor().to_vector<float>()[0];
}

TEST(Sgd, IsTheParameterLessRateTimesGradient) {
  std::vector<float> p(32), g(32), expected(32);
  for (size_t i = 0; i < 32; ++i) {
    p[i] = 0.1f * static_cast<float>(i) - 1.3f;
    g[i] = 0.7f - 0.05f * static_cast<float>(i);
    expected[i] = p[i] - 0.1f * g[i];
  }
  const auto weight = parameter("w", {1, 1, 32}, p);
  SGD sgd(Parameters{weight});
  sgd({floats({1, 1, 32}, g)});
  EXPECT_EQ(weight->tensor().to_vector<float>(), expected);
}

TEST(Sgd, TakesShapesWithoutAxesAndWithoutElements) {
  const auto scalar = make_ref<Parameter>(floats({}, {1}), "scalar");
  const auto empty = make_ref<Parameter>(floats({0, 3}, {}), "empty");
  SGD sgd(Parameters{scalar, empty}, {.learning_rate = 0.5});
  sgd({floats({}, {1}), floats({0, 3}, {})});
  EXPECT_EQ(only(scalar), 0.5f);
}

TEST(Sgd, MomentumDampeningAndNesterov) {
  const auto run = [](SgdOptions options) {
    const auto weight = parameter("w", {1}, {1});
    SGD sgd(Parameters{weight}, options);
    for (float g : {1.0f, 2.0f, -1.0f}) sgd({floats({1}, {g})});
    return only(weight);
  };
  // v: 1, then 0.5 + 0.75 * 2 = 2, then 1 - 0.75 = 0.25
  EXPECT_FLOAT_EQ(run({.learning_rate = 0.1, .momentum = 0.5, .dampening = 0.25}),
                  1 - 0.1f * (1 + 2 + 0.25f));
  // v: 1, 2.5, 0.25; steps g + v / 2: 1.5, 3.25, -0.875
  EXPECT_FLOAT_EQ(run({.learning_rate = 0.1, .momentum = 0.5, .nesterov = Nesterov::On}),
                  1 - 0.1f * (1.5f + 3.25f - 0.875f));
  EXPECT_THROW(run({.nesterov = Nesterov::On}), Error);
}

TEST(Momentum, WithLossScaleAndDecay) {
  const auto weight = parameter("w", {1}, {2});
  Momentum momentum(Parameters{weight}, 0.1, 0.9, {.weight_decay = 0.5, .loss_scale = 4});
  momentum({floats({1}, {8})});  // g = 8 / 4 + 0.5 * 2 = 3
  EXPECT_FLOAT_EQ(only(weight), 2 - 0.1f * 3);
  momentum({floats({1}, {0})});  // g = 0.5 * 1.7, v = 2.7 + 0.85
  EXPECT_FLOAT_EQ(only(weight), 1.7f - 0.1f * 3.55f);
}

TEST(Adam, FollowsItsFormula) {
  const auto weight = parameter("w", {1}, {1});
  Adam adam(Parameters{weight}, {.learning_rate = 0.1});
  double p = 1, m = 0, v = 0;
  for (int t = 1; t <= 10; ++t) {
    const double g = std::sin(t);
    adam({floats({1}, {static_cast<float>(g)})});
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    p -= 0.1 * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t)) * m /
         (std::sqrt(v) + 1e-8);
    EXPECT_NEAR(only(weight), p, 2e-6) << "step " << t;
  }
  EXPECT_EQ(adam.global_step(), 10);
}

TEST(AdamWeightDecay, DecaysBesideTheGradient) {
  const auto weight = parameter("w", {1}, {1});
  AdamWeightDecay adam(Parameters{weight}, {.learning_rate = 0.1, .weight_decay = 0.2});
  double p = 1, m = 0, v = 0;
  for (int t = 1; t <= 5; ++t) {
    const double g = std::cos(t);
    adam({floats({1}, {static_cast<float>(g)})});
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    p -= 0.1 * (m / (std::sqrt(v) + 1e-6) + 0.2 * p);
    EXPECT_NEAR(only(weight), p, 5e-6) << "step " << t;
  }
}

TEST(RmsProp, FollowsItsFormulaWithAndWithoutCentering) {
  for (const Centering centering : {Centering::Off, Centering::On}) {
    const auto weight = parameter("w", {1}, {1});
    RMSProp optimizer(
        Parameters{weight},
        {.learning_rate = 0.01, .momentum = 0.5, .epsilon = 1e-6, .centering = centering});
    double p = 1, s = 1, a = 0, v = 0;
    for (int t = 1; t <= 6; ++t) {
      const double g = std::sin(t);
      optimizer({floats({1}, {static_cast<float>(g)})});
      s = 0.9 * s + 0.1 * g * g;
      if (centering == Centering::On) a = 0.9 * a + 0.1 * g;
      v = 0.5 * v + 0.01 * g / std::sqrt(s - a * a + 1e-6);
      p -= v;
      EXPECT_NEAR(only(weight), p, 2e-6) << "step " << t;
    }
  }
}

TEST(Adagrad, DividesByTheRootOfTheSumOfSquares) {
  const auto weight = parameter("w", {1}, {1});
  Adagrad optimizer(Parameters{weight}, {.accum = 0.25, .learning_rate = 0.5});
  optimizer({floats({1}, {2})});
  EXPECT_FLOAT_EQ(only(weight), static_cast<float>(1 - 1 / std::sqrt(4.25)));
}

TEST(AdaMax, DividesByTheLargestGradient) {
  const auto weight = parameter("w", {1}, {1});
  AdaMax optimizer(Parameters{weight}, {.learning_rate = 0.1});
  optimizer({floats({1}, {2})});  // m = 0.2, u = 2, correction 0.1: a step of 0.1
  EXPECT_NEAR(only(weight), 0.9, 1e-6);
}

TEST(Lamb, ScalesItsStepByTheParameter) {
  const auto weight = parameter("w", {2}, {3, 4});
  Lamb optimizer(Parameters{weight}, 0.1);
  optimizer({floats({2}, {1, 1})});  // direction (1, 1), ratio 5 / sqrt(2)
  const double step = 0.1 * 5 / std::sqrt(2.0);
  EXPECT_NEAR(weight->tensor().to_vector<float>()[0], 3 - step, 1e-5);
  EXPECT_NEAR(weight->tensor().to_vector<float>()[1], 4 - step, 1e-5);
}

TEST(Optimizer, SixteenBitParametersKeepFloat32State) {
  const auto weight = make_ref<Parameter>(ops::cast(floats({2}, {1, 2}), DType::BFloat16), "w");
  Adam adam(Parameters{weight}, {.learning_rate = 1e-3});
  EXPECT_EQ(adam.parameter("moment1.w")->dtype(), DType::Float32);
  adam({ops::cast(floats({2}, {1, 1}), DType::BFloat16)});
  EXPECT_EQ(weight->dtype(), DType::BFloat16);
}

TEST(Optimizer, NamesItsState) {
  Adam adam(Parameters{parameter("conv.weight", {1}, {1}), parameter("bias", {1}, {1})});
  std::vector<std::string> names;
  for (const auto& each : adam.get_parameters()) names.push_back(each->name());
  EXPECT_THAT(names, ElementsAre("learning_rate", "global_step", "moment1.conv.weight",
                                 "moment1.bias", "moment2.conv.weight", "moment2.bias"));
}

TEST(Optimizer, DecayLeavesNormalisationAloneUnlessGroupsSaySo) {
  const auto weight = parameter("bn.weight", {1}, {1}), gamma = parameter("bn.gamma", {1}, {1});
  SGD whole(Parameters{weight, gamma}, {.learning_rate = 1.0, .weight_decay = 0.25});
  whole({floats({1}, {0}), floats({1}, {0})});
  EXPECT_EQ(only(weight), 0.75f);
  EXPECT_EQ(only(gamma), 1.0f);
  SGD grouped(std::vector<ParameterGroup>{{.parameters = {gamma}}},
              {.learning_rate = 1.0, .weight_decay = 0.25});
  grouped({floats({1}, {0})});
  EXPECT_EQ(only(gamma), 0.75f);
}

TEST(Optimizer, GroupsHaveTheirOwnRatesAndOrder) {
  const auto a = parameter("a", {1}, {0}), b = parameter("b", {1}, {0});
  const auto c = parameter("c", {2, 2}, {0, 0, 0, 0});
  SGD sgd(OptimizerParameters({{.parameters = {a}, .learning_rate = 0.5, .weight_decay = 0.0},
                               {.parameters = {b}, .learning_rate = Rates{0.25, 2.0}},
                               {.parameters = {c}, .centralize_gradients = true}},
                              {c, b, a}),
          {.learning_rate = 1.0});
  const Tensor one = floats({1}, {1});
  const Tensor matrix = floats({2, 2}, {1, 3, 5, 5});
  for (int step = 0; step < 3; ++step) sgd({matrix, one, one});
  EXPECT_EQ(only(a), -1.5f);
  EXPECT_EQ(only(b), -4.25f);  // the last rate of the list stays
  EXPECT_EQ(c->tensor().to_vector<float>(), (std::vector<float>{3, -3, 0, 0}));
  EXPECT_EQ(sgd.learning_rate(2), 0.5);
  EXPECT_THROW(SGD(OptimizerParameters({{.parameters = {a, b}}}, {a})), Error);
}

TEST(Optimizer, RefusesParametersItCannotTellApart) {
  const auto a = parameter("same", {1}, {0}), b = parameter("same", {1}, {0});
  EXPECT_THROW(SGD(Parameters{a, b}), Error);
  EXPECT_THROW(SGD(Parameters{a, a}), Error);
  EXPECT_THROW(SGD(Parameters{}), Error);
  EXPECT_THROW(SGD(Parameters{make_ref<Parameter>(Tensor::from_vector<int32_t>({1}, {1}), "i")}),
               Error);
  EXPECT_THROW(SGD(Parameters{a}, {.loss_scale = 0}), Error);
  EXPECT_THROW(SGD(Parameters{a}, {.learning_rate = -1.0}), Error);
}

TEST(Optimizer, RefusesListsOfRatesThatEndAtDifferentSteps) {
  const std::vector<ParameterGroup> groups{
      {.parameters = {parameter("a", {1}, {0})}, .learning_rate = Rates{1, 2}}};
  EXPECT_NO_THROW(SGD(groups, {.learning_rate = Rates{3, 4}, .weight_decay = Rates{1}}));
  try {
    SGD(groups, {.learning_rate = Rates{3}});
    FAIL() << "one list ends a step before the other";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("[SGD] the lists of learning rates must be of one length"));
  }
}

TEST(Optimizer, RefusesGradientsThatDoNotFitBeforeWritingAnything) {
  const auto a = parameter("a", {1}, {3}), b = parameter("b", {2}, {3, 3});
  SGD sgd(Parameters{a, b});
  EXPECT_THROW(sgd({floats({1}, {1})}), Error);
  try {
    sgd({floats({1}, {1}), floats({3}, {1, 1, 1})});
    FAIL() << "a gradient of shape [3] does not fit [2]";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("'b' has shape [2], its gradient [3]"));
  }
  EXPECT_EQ(only(a), 3);
  EXPECT_EQ(sgd.global_step(), 0);
}

TEST(Optimizer, AWrittenRateHoldsFromTheNextStep) {
  const auto weight = parameter("w", {1}, {0});
  SGD sgd(Parameters{weight}, {.learning_rate = 1.0});
  const Tensor one = floats({1}, {1});
  sgd({one});
  sgd.parameter("learning_rate")->set_data(floats({}, {0.5f}));
  sgd({one});
  EXPECT_EQ(only(weight), -1.5f);
}

TEST(Optimizer, AThousandStepsOfChangingRateMakeNoNewGraph) {
  const auto weight = parameter("w", {3}, {1, 2, 3});
  const auto schedule = make_ref<CosineDecayLR>(0.0, 0.1, 1000);
  Adam adam(Parameters{weight}, {.learning_rate = Ref<LearningRateSchedule>(schedule)});
  const auto step = [&] {
    const Tensor gradient = weight->tensor() * 2.0;
    adam({gradient});
  };
  step();
  step();
  Window::of_thread().flush();
  const int64_t graphs = counters().graphs;
  for (int i = 0; i < 1000; ++i) step();
  Window::of_thread().flush();
  EXPECT_EQ(counters().graphs, graphs);
}

TEST(Optimizer, AdamOverAllParametersIsOneLaunchWithoutMemory) {
  const testing_support::ScopedWindowLimits long_window;
  Parameters parameters;
  Tensors gradients;
  for (int i = 0; i < 12; ++i) {
    const Shape shape = i % 3 == 0 ? Shape{64, 17} : i % 3 == 1 ? Shape{64} : Shape{8, 4, 3, 3};
    const TensorType type{DType::Float32, Layout::RowMajor, shape};
    parameters.push_back(make_ref<Parameter>(nn::filled(type, 1), fmt::format("p{}", i)));
    gradients.push_back(nn::filled(type, 0.5));
  }
  Adam adam(parameters);
  for (int i = 0; i < 3; ++i) {
    adam(gradients);
    Window::of_thread().flush();
  }
  std::vector<const void*> before;
  for (const auto& each : parameters) before.push_back(each->tensor().value()->buffer().data());
  const int64_t launches = counters().launches;
  adam(gradients);
  Window::of_thread().flush();
  EXPECT_EQ(counters().launches - launches, 1);
  EXPECT_EQ(counters().arena_bytes, 0);
  for (size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_EQ(parameters[i]->tensor().value()->buffer().data(), before[i]) << "parameter " << i;
  }
}

}  // namespace
}  // namespace lamella::optim
