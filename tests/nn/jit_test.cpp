// Jit gives what the function gives, and calls it no more often than it must.
#include "lamella/nn/jit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lamella/nn/container.h"
#include "lamella/nn/dense.h"
#include "lamella/nn/dropout.h"
#include "lamella/nn/normalization.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/random.h"
#include "lamella/ops/tensor_operators.h"
#include "lamella/optim/adam.h"
#include "lamella/transform/control_flow.h"
#include "lamella/transform/grad.h"

namespace lamella::nn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Tensors = std::vector<Tensor>;

Tensor floats(const std::vector<float>& elements) {
  return Tensor::from_vector<float>({static_cast<int64_t>(elements.size())}, elements);
}

// A function that counts how often it is called.
struct Counted {
  int calls = 0;
  Jit::Function function;

  Jit jit() {
    return Jit([this](const Tensors& arguments) {
      ++calls;
      return function(arguments);
    });
  }
};

TEST(Jit, CallsTheFunctionTwiceAndThenRepeatsIt) {
  Counted counted{.function = [](const Tensors& x) { return Tensors{ops::tanh(x[0] * x[1])}; }};
  Jit jit = counted.jit();
  for (int i = 0; i < 5; ++i) {
    const Tensor a = floats({0.5F, static_cast<float>(i)}), b = floats({2, 3});
    EXPECT_EQ(jit({a, b})[0].to_vector<float>(), ops::tanh(a * b).to_vector<float>());
  }
  EXPECT_EQ(counted.calls, 2);
  EXPECT_EQ(jit.reason(), "");
}

TEST(Jit, OtherTypesAndOtherSharingAreOtherCalls) {
  Counted counted{.function = [](const Tensors& x) { return Tensors{x[0] + x[1] * 2.0}; }};
  Jit jit = counted.jit();
  const Tensor a = floats({1}), b = floats({2}), two = floats({1, 2});
  for (int i = 0; i < 4; ++i) {
    EXPECT_THAT(jit({a, b})[0].to_vector<float>(), ElementsAre(5));
    EXPECT_THAT(jit({a, a})[0].to_vector<float>(), ElementsAre(3));
    EXPECT_THAT(jit({two, b})[0].to_vector<float>(), ElementsAre(5, 6));
  }
  EXPECT_EQ(counted.calls, 6);
}

TEST(Jit, GivesBackArgumentsAndTensorsOfOutside) {
  const Tensor outside = floats({7});
  Jit jit([&](const Tensors& x) { return Tensors{x[1], outside, x[0] * 2.0, x[1]}; });
  for (int i = 0; i < 4; ++i) {
    const Tensor a = floats({1}), b = floats({2});
    const Tensors results = jit({a, b});
    EXPECT_EQ(results[0].storage(), b.storage());
    EXPECT_EQ(results[1].storage(), outside.storage());
    EXPECT_THAT(results[2].to_vector<float>(), ElementsAre(2));
    EXPECT_EQ(results[3].storage(), b.storage());
  }
}

TEST(Jit, ReadsAndWritesTensorsOfOutsideAtEachCall) {
  const Tensor total = floats({0});
  Jit jit([&](const Tensors& x) {
    total.assign(total + x[0]);
    return Tensors{total * 10.0};
  });
  for (int i = 1; i <= 5; ++i) {
    EXPECT_THAT(jit({floats({1})})[0].to_vector<float>(),
                ElementsAre(10.0F * static_cast<float>(i)));
  }
  total.assign(floats({100}));
  EXPECT_THAT(jit({floats({1})})[0].to_vector<float>(), ElementsAre(1010));
}

// What a function keeps of a call, by how it keeps it.
using Keep = std::function<Tensors(const Tensors& x, Tensors& kept)>;

class JitKeeping : public testing::TestWithParam<std::pair<const char*, Keep>> {};

TEST_P(JitKeeping, WhatIsKeptOutsideIsThatOfTheLastCall) {
  const Keep& keep = GetParam().second;
  Tensors kept(2, floats({0})), expected(2, floats({0}));
  Jit jit([&](const Tensors& x) { return keep(x, kept); });
  const Tensor same = floats({7});
  for (const Tensor& x : {same, same, same, floats({1}), floats({2}), same, floats({3})}) {
    const Tensors results = jit({x}), plain = keep({x}, expected);
    ASSERT_EQ(results.size(), plain.size());
    for (size_t i = 0; i < plain.size(); ++i) {
      EXPECT_EQ(results[i].to_vector<float>(), plain[i].to_vector<float>());
    }
    for (size_t i = 0; i < kept.size(); ++i) {
      EXPECT_EQ(kept[i].to_vector<float>(), expected[i].to_vector<float>());
    }
  }
  EXPECT_THAT(jit.reason(), HasSubstr("keeps a"));
}

INSTANTIATE_TEST_SUITE_P(
    , JitKeeping,
    testing::Values(std::pair("Made", Keep([](const Tensors& x, Tensors& kept) {
                                kept[0] = x[0] * 2.0;
                                return Tensors{x[0] * 3.0};
                              })),
                    std::pair("MadeAndReturned", Keep([](const Tensors& x, Tensors& kept) {
                                kept[0] = x[0] * 2.0;
                                return Tensors{kept[0]};
                              })),
                    std::pair("MadeAndWritten", Keep([](const Tensors& x, Tensors& kept) {
                                kept[1] = x[0] * 2.0;
                                kept[1].assign(x[0] + 1.0);
                                return Tensors{};
                              })),
                    std::pair("Argument", Keep([](const Tensors& x, Tensors& kept) {
                                kept[0] = x[0];
                                return Tensors{x[0] * 3.0};
                              })),
                    std::pair("ArgumentWrittenAndReturned",
                              Keep([](const Tensors& x, Tensors& kept) {
                                x[0].assign(x[0] + 1.0);
                                kept[0] = x[0];
                                return Tensors{x[0]};
                              }))),
    [](const auto& tested) { return tested.param.first; });

TEST(Jit, WhatIsWrittenAndReturnedOrLetGoIsNotKept) {
  Counted counted{.function = [](const Tensors& x) {
    const Tensor made = x[0] * 1.0, returned = x[0] * 2.0;
    made.assign(made + 1.0);
    returned.assign(made + returned);
    x[0].assign(made);
    return Tensors{returned, x[0], returned};
  }};
  Jit jit = counted.jit();
  for (int i = 0; i < 4; ++i) {
    EXPECT_THAT(jit({floats({1})})[0].to_vector<float>(), ElementsAre(4));
  }
  EXPECT_EQ(counted.calls, 2);
}

// Regions and gradient rules are made anew at each call; they are compared by what they mean.
TEST(Jit, LoopsAndBranchesWithGradientsAreRepeated) {
  const Tensor weight = floats({0.5F, -0.25F});
  const auto loss = [](const Tensor& x, const Tensor& w) {
    const auto turn = [&](const Tensors& state, const Tensors&) {
      return ScanResult{.carried = {ops::tanh(state[0] * w)}, .stacked = {}};
    };
    const Tensor scanned = scan(turn, {x}, {}, {.length = 5}).carried[0];
    const Tensor turned =
        while_loop([](const Tensors& s) { return ops::less(s[1], 3.0); },
                   [&](const Tensors& s) { return Tensors{s[0] * w, s[1] + 1.0}; },
                   {scanned, Tensor::scalar(DType::Float32, 0)})[0];
    return ops::sum(cond(
        ops::greater(ops::sum(x), 0.0), [&] { return Tensors{turned * 2.0}; },
        [&] { return Tensors{turned * w}; })[0]);
  };
  Counted counted{.function = [&](const Tensors& x) {
    const Tensors wrt = {x[0], weight};
    const auto found = value_and_grad([&] { return std::vector{loss(x[0], weight)}; }, wrt);
    return Tensors{found.values[0], found.gradients[0], found.gradients[1]};
  }};
  Jit jit = counted.jit();
  for (const float sign : {1.0F, -1.0F, 1.0F, -1.0F, 1.0F}) {
    const Tensors x = {floats({0.75F * sign, 0.5F})};
    const Tensors results = jit(x), expected = counted.function(x);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(results[i].to_vector<float>(), expected[i].to_vector<float>());
    }
  }
  EXPECT_EQ(counted.calls, 2);
  EXPECT_EQ(jit.reason(), "");
}

// A scan of x * w whose gradient rule, where it has one of its own, gives -factor.
Tensors scan_of(const Tensors& x, const Tensor& weight, double factor) {
  const auto turn = [&](const Tensors& state, const Tensors&) {
    Tensor next = state[0] * weight;
    if (factor != 0) {
      next = custom_gradient(
          {next}, [](const Tensors& y) { return Tensors{y[0] * 1.0}; },
          [factor](const Tensors&, const Tensors&, const Tensors& cotangents) {
            return Tensors{cotangents[0] * -factor};
          })[0];
    }
    return ScanResult{.carried = {next}, .stacked = {}};
  };
  return scan(turn, {x[0]}, {}, {.length = 1}).carried;
}

TEST(Jit, GradientsOfRepeatedLoopsAreTakenOutside) {
  const Tensor weight = floats({3});
  Counted counted{.function = [&](const Tensors& x) { return scan_of(x, weight, 0); }};
  Jit jit = counted.jit();
  for (int i = 1; i <= 20; ++i) {
    const Tensor x = floats({static_cast<float>(i)});
    const Tensors wrt = {x, weight};
    const Tensors gradients = grad([&] { return ops::sum(jit({x})[0] * x); }, wrt);
    EXPECT_THAT(gradients[0].to_vector<float>(), ElementsAre(static_cast<float>(6 * i)));
    EXPECT_THAT(gradients[1].to_vector<float>(), ElementsAre(static_cast<float>(i * i)));
  }
  EXPECT_LT(counted.calls, 20);
}

TEST(Jit, LoopsWhoseGradientRulesMayDifferAreNotRepeated) {
  double factor = 0;
  Counted counted{
      .function = [&](const Tensors& x) { return scan_of(x, floats({1}), factor += 1); }};
  Jit jit = counted.jit();
  for (int i = 1; i <= 6; ++i) {
    const Tensor x = floats({2});
    const Tensors gradients = grad([&] { return ops::sum(jit({x})[0]); }, Tensors{x});
    EXPECT_THAT(gradients[0].to_vector<float>(), ElementsAre(static_cast<float>(-i)));
  }
}

TEST(Jit, LoopsThatDifferAreNotRepeated) {
  double factor = 0;
  Counted counted{.function = [&](const Tensors& x) {
    factor += 1;
    const auto turn = [&](const Tensors& state, const Tensors&) {
      return ScanResult{.carried = {state[0] * factor}, .stacked = {}};
    };
    return scan(turn, {x[0]}, {}, {.length = 2}).carried;
  }};
  Jit jit = counted.jit();
  for (int i = 1; i <= 5; ++i) {
    EXPECT_THAT(jit({floats({1})})[0].to_vector<float>(), ElementsAre(static_cast<float>(i * i)));
  }
  EXPECT_EQ(counted.calls, 5);
}

TEST(Jit, WhatTheFirstCallSetsUpIsKept) {
  Tensor table;
  Counted counted{.function = [&](const Tensors& x) {
    if (!table.defined()) table = ops::exp(floats({0}));
    return Tensors{x[0] + table};
  }};
  Jit jit = counted.jit();
  for (int i = 0; i < 5; ++i) {
    EXPECT_THAT(jit({floats({1})})[0].to_vector<float>(), ElementsAre(2));
  }
  EXPECT_EQ(counted.calls, 3);
}

TEST(Jit, AnEmptyFunctionIsRefused) {
  EXPECT_THROW(Jit{Jit::Function()}, Error);
}

TEST(Jit, AnArgumentThatTheFunctionHoldsIsNotMistakenForAnother) {
  const Tensor held = floats({1, 2});
  Counted counted{.function = [&](const Tensors& x) {
    const Tensor before = held * 1.0;
    x[0].assign(x[0] + 1.0);
    return Tensors{before, held * 1.0};
  }};
  Jit jit = counted.jit();
  for (int i = 0; i < 3; ++i) jit({floats({3, 4})});
  EXPECT_EQ(counted.calls, 2);
  const Tensors results = jit({held});
  EXPECT_THAT(results[0].to_vector<float>(), ElementsAre(1, 2));
  EXPECT_THAT(results[1].to_vector<float>(), ElementsAre(2, 3));
}

TEST(Jit, WhatChangesBetweenTwoCallsIsNotRepeated) {
  double factor = 0;
  Counted counted{.function = [&](const Tensors& x) { return Tensors{x[0] * (factor += 1)}; }};
  Jit jit = counted.jit();
  for (int i = 1; i <= 6; ++i) {
    EXPECT_THAT(jit({floats({1})})[0].to_vector<float>(), ElementsAre(static_cast<float>(i)));
  }
  EXPECT_EQ(counted.calls, 6);
  EXPECT_THAT(jit.reason(), HasSubstr("do different things"));
}

TEST(Jit, OfMoreTypesInTurnThanItKeepsTheFirstAreRepeated) {
  Counted counted{.function = [](const Tensors& x) { return Tensors{x[0] + 1.0}; }};
  Jit jit = counted.jit();
  for (int turn = 0; turn < 6; ++turn) {
    for (size_t i = 1; i <= 17; ++i) jit({floats(std::vector<float>(i, 1))});
  }
  EXPECT_EQ(counted.calls, 2 * 16 + 6);
}

TEST(Jit, AModeThatIsSetAgainChangesNothing) {
  const auto net = make_ref<Dense>(2, 2);
  Counted counted{.function = [&](const Tensors& x) { return Tensors{(*net)(x[0])}; }};
  Jit jit = counted.jit();
  for (int i = 0; i < 10; ++i) {
    net->set_train(true);
    jit({ops::reshape(floats({1, 2}), Shape{1, 2})});
  }
  EXPECT_EQ(counted.calls, 2);
}

TEST(Jit, AnArgumentThatAnOptimizerOfOutsideUpdatesIsReadAfterwards) {
  const auto run = [](bool traced) {
    const auto weight = make_ref<Parameter>(floats({1, 2}), "w", ParameterOptions{});
    const auto optimizer =
        make_ref<optim::Adam>(Parameters{weight}, optim::AdamOptions{.learning_rate = 0.5});
    const Jit::Function plain = [&](const Tensors& x) {
      (*optimizer)({x[0] * 0.0 + 1.0});
      return Tensors{x[0] * 1.0};
    };
    Jit jit(plain);
    std::vector<std::vector<float>> seen;
    for (int i = 0; i < 6; ++i) {
      const Tensors arguments = {i < 3 ? floats({7, 8}) : weight->tensor()};
      seen.push_back((traced ? jit(arguments) : plain(arguments))[0].to_vector<float>());
    }
    return seen;
  };
  EXPECT_EQ(run(true), run(false));
}

TEST(Jit, CallsThatNeverRepeatAreNotFollowedForEver) {
  Counted counted{.function = [](const Tensors& x) { return Tensors{x[0] + 1.0}; }};
  Jit jit = counted.jit();
  for (size_t i = 1; i <= 40; ++i) {
    EXPECT_EQ(jit({floats(std::vector<float>(i, 1))})[0].to_vector<float>(),
              std::vector<float>(i, 2));
  }
  EXPECT_THAT(jit.reason(), HasSubstr("do not repeat"));
}

TEST(Jit, AFunctionThatReadsAValueRunsAsItIs) {
  Counted counted{
      .function = [](const Tensors& x) { return Tensors{x[0].item() > 0 ? x[0] * 2.0 : -x[0]}; }};
  Jit jit = counted.jit();
  for (const float x : {1.0F, -3.0F, 2.0F, -1.0F}) {
    EXPECT_THAT(jit({floats({x})})[0].to_vector<float>(), ElementsAre(x > 0 ? 2 * x : -x));
  }
  EXPECT_EQ(counted.calls, 4);
  EXPECT_THAT(jit.reason(), HasSubstr("reads a tensor's value"));
}

TEST(Jit, AnExceptionOfTheFunctionPassesAndNothingIsKept) {
  bool fails = true;
  Jit jit([&](const Tensors& x) {
    if (fails) throw std::runtime_error("not now");
    return Tensors{x[0] + 1.0};
  });
  EXPECT_THROW(jit({floats({1})}), std::runtime_error);
  fails = false;
  for (int i = 0; i < 3; ++i) EXPECT_THAT(jit({floats({1})})[0].to_vector<float>(), ElementsAre(2));
}

TEST(Jit, InsideAnotherJitIsPartOfItsTrace) {
  Counted inner{.function = [](const Tensors& x) { return Tensors{x[0] * 3.0}; }};
  Jit triple = inner.jit();
  Jit outer([&](const Tensors& x) { return Tensors{triple({x[0] + 1.0})[0] - 1.0}; });
  for (int i = 0; i < 4; ++i)
    EXPECT_THAT(outer({floats({1})})[0].to_vector<float>(), ElementsAre(5));
  EXPECT_EQ(inner.calls, 2);
}

// Losses of a step with dropout, batch norm and Adam; the mode changes in the middle.
std::vector<float> losses(bool with_jit) {
  set_seed(5);
  const auto network = make_ref<SequentialCell>(std::vector<Ref<Cell>>{
      make_ref<Dense>(3, 8), make_ref<BatchNorm1d>(8), make_ref<Dropout>(), make_ref<Dense>(8, 1)});
  optim::Adam optimizer(network->trainable_params(), {.learning_rate = 0.05});
  Tensors weights;
  for (const auto& parameter : network->trainable_params()) weights.push_back(parameter->tensor());
  const Jit::Function plain = [&](const Tensors& x) {
    const ValueAndGradients step = value_and_grad(
        [&] { return Tensors{ops::mean(ops::square((*network)(x[0]) - 1.0))}; }, weights);
    optimizer(step.gradients);
    return step.values;
  };
  Jit traced(plain);
  std::vector<float> result;
  network->set_train(true);
  for (int i = 0; i < 12; ++i) {
    if (i == 6) network->set_train(false);
    if (i == 9) network->set_train(true);
    const Tensor x = ops::reshape(floats({1, 2, 3, 4, 5, static_cast<float>(i)}), Shape{2, 3});
    const Tensors loss = with_jit ? traced({x}) : plain({x});
    result.push_back(static_cast<float>(loss[0].item()));
  }
  EXPECT_EQ(traced.reason(), "");
  return result;
}

TEST(Jit, TrainsToTheSameBits) {
  EXPECT_EQ(losses(true), losses(false));
}

}  // namespace
}  // namespace lamella::nn
