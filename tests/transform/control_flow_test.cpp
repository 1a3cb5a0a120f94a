// Loops and branches against the same program written out, in values, gradients and cost.
#include "lamella/transform/control_flow.h"

#include <cmath>
#include <set>

#include "tests/errors.h"
#include "tests/thread_count.h"
#include "tests/window_limits.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lamella/device/pool.h"
#include "lamella/ir/window.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/random.h"
#include "lamella/ops/tensor_operators.h"
#include "lamella/runtime/counters.h"
#include "lamella/runtime/runtime.h"
#include "lamella/transform/grad.h"

namespace lamella {
namespace {

using Tensors = std::vector<Tensor>;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

Tensor vector(const std::vector<float>& elements) {
  return Tensor::from_vector<float>({static_cast<int64_t>(elements.size())}, elements);
}

std::vector<float> elements(const Tensor& tensor) {
  return tensor.to_vector<float>();
}

Tensor zeros(const Shape& shape) {
  return ops::zeros_of({DType::Float32, Layout::RowMajor, shape});
}

TEST(Scan, CarriesAndStacks) {
  const Tensor x = Tensor::from_vector<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  const auto body = [](const Tensors& carried, const Tensors& slices) {
    const Tensor sum = carried[0] + slices[0];
    return ScanResult{{sum}, {sum * 10.0}};
  };
  const ScanResult forward = scan(body, {vector({0, 0})}, {x});
  EXPECT_THAT(elements(forward.carried[0]), ElementsAre(9, 12));
  EXPECT_THAT(elements(forward.stacked[0]), ElementsAre(10, 20, 40, 60, 90, 120));
  const ScanResult reverse = scan(body, {vector({0, 0})}, {x}, {.direction = Direction::Reverse});
  EXPECT_THAT(elements(reverse.stacked[0]), ElementsAre(90, 120, 80, 100, 50, 60));
}

TEST(Scan, WithoutTurnsGivesWhatItWasGiven) {
  const ScanResult result =
      scan([](const Tensors& carried,
              const Tensors& slices) { return ScanResult{{carried[0] + slices[0]}, {carried[0]}}; },
           {vector({4, 5})}, {Tensor::from_vector<float>({0, 2}, {})});
  EXPECT_THAT(elements(result.carried[0]), ElementsAre(4, 5));
  EXPECT_EQ(result.stacked[0].shape(), (Shape{0, 2}));
}

// A recurrent network's turn: what the body reads of outside are two matrices and a number.
struct Recurrence {
  Tensor input_weight = ops::normal({4, 3}), weight = ops::normal({4, 4}) * 0.5;
  Tensor bias = ops::normal({4});

  Tensor turn(const Tensor& h, const Tensor& x) const {
    return ops::tanh(ops::dense(x, input_weight, bias) + ops::dense(h, weight)) * 0.9;
  }
  Tensors parameters() const { return {input_weight, weight, bias}; }
};

TEST(Scan, AgreesWithTheLoopWrittenOutAndSoDoItsGradients) {
  set_seed(1);
  const Recurrence net;
  const Tensor x = ops::normal({6, 2, 3}), h0 = ops::normal({2, 4}),
               weights = ops::normal({6, 2, 4});
  const auto looped = [&] {
    const ScanResult result = scan(
        [&](const Tensors& carried, const Tensors& slices) {
          const Tensor h = net.turn(carried[0], slices[0]);
          return ScanResult{{h}, {h}};
        },
        {h0}, {x});
    return Tensors{ops::sum(result.stacked[0] * weights) + ops::sum(result.carried[0]),
                   result.stacked[0]};
  };
  const auto written_out = [&] {
    Tensor h = h0, sum = Tensor::from_vector<float>({}, {0});
    Tensors all;
    for (int64_t t = 0; t < 6; ++t) {
      h = net.turn(h, ops::reshape(ops::narrow(x, t, 0, Shape{1}), Shape{2, 3}));
      all.push_back(ops::expand_dims(h, 0));
    }
    const Tensor stacked = ops::concat(all, 0);
    return Tensors{ops::sum(stacked * weights) + ops::sum(h), stacked};
  };
  Tensors wrt = net.parameters();
  wrt.push_back(x);
  wrt.push_back(h0);
  const ValueAndGradients a = value_and_grad(looped, wrt), b = value_and_grad(written_out, wrt);
  EXPECT_EQ(elements(a.values[1]), elements(b.values[1]));
  for (size_t i = 0; i < wrt.size(); ++i) {
    EXPECT_THAT(elements(a.gradients[i]), Pointwise(FloatNear(2e-5f), elements(b.gradients[i])))
        << "gradient " << i;
  }
  EXPECT_EQ(elements(looped()[1]), elements(b.values[1])) << "without a gradient";
}

// What a convolution gives lies channels-last: carried, stacked and kept for the backward pass.
TEST(Scan, KeepsTheLayoutsOfItsBodyApart) {
  set_seed(6);
  const Tensor x = ops::normal({2, 3, 5, 5}), weight = ops::normal({3, 3, 3, 3}) * 0.3;
  const Tensor y = ops::normal({4, 2, 3, 5, 5}), factors = ops::normal({4, 2, 3, 5, 5});
  const auto turn = [&](const Tensor& h, const Tensor& slice) {
    return ops::tanh(ops::conv2d(h, weight, {}, {1, 1}, {1, 1, 1, 1}) + slice);
  };
  const Tensor wrt[] = {x, weight, y};
  const auto looped = [&] {
    const ScanResult result = scan(
        [&](const Tensors& carried, const Tensors& slices) {
          const Tensor h = turn(carried[0], slices[0]);
          return ScanResult{{h}, {h}};
        },
        {x}, {y});
    return Tensors{ops::sum(result.stacked[0] * factors), result.carried[0]};
  };
  const auto written_out = [&] {
    Tensor h = x, sum = Tensor::from_vector<float>({}, {0});
    for (int64_t t = 0; t < 4; ++t) {
      const auto slice = [&](const Tensor& all) {
        return ops::squeeze(ops::narrow(all, t, 0, Shape{1}), {0});
      };
      h = turn(h, slice(y));
      sum = sum + ops::sum(h * slice(factors));
    }
    return Tensors{sum, h};
  };
  const ValueAndGradients a = value_and_grad(looped, wrt), b = value_and_grad(written_out, wrt);
  EXPECT_THAT(elements(a.values[1]), Pointwise(FloatNear(1e-5f), elements(b.values[1])));
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_THAT(elements(a.gradients[i]), Pointwise(FloatNear(1e-4f), elements(b.gradients[i])))
        << "gradient " << i;
  }
}

TEST(Scan, IsDifferentiatedTwice) {
  const Tensor x = vector({0.5, -1, 2});
  // y = product of all x by a scan; the second derivative of the sum of its square.
  const auto looped = [&] {
    const ScanResult result =
        scan([](const Tensors& carried,
                const Tensors& slices) { return ScanResult{{carried[0] * slices[0]}, {}}; },
             {vector({1})}, {ops::reshape(x, Shape{3, 1})});
    return ops::sum(ops::square(result.carried[0]));
  };
  const auto written_out = [&] {
    Tensor y = vector({1});
    for (int64_t t = 0; t < 3; ++t) y = y * ops::narrow(x, t, 0, Shape{1});
    return ops::sum(ops::square(y));
  };
  const auto second = [&](const std::function<Tensor()>& function) {
    const Tensor wrt[] = {x};
    return grad([&] { return ops::sum(grad(function, wrt)[0] * vector({1, 2, 3})); }, wrt)[0];
  };
  EXPECT_THAT(elements(second(looped)), Pointwise(FloatNear(1e-4f), elements(second(written_out))));
}

TEST(Scan, OfAThousandTurnsIsAFewNodes) {
  const Recurrence net;
  const Tensor x = ops::normal({1000, 2, 3});
  const auto looped = [&] {
    const ScanResult result = scan(
        [&](const Tensors& carried, const Tensors& slices) {
          return ScanResult{{net.turn(carried[0], slices[0])}, {}};
        },
        {zeros({2, 4})}, {x});
    return Tensors{ops::sum(result.carried[0])};
  };
  Window::of_thread().flush();
  const ValueAndGradients result = value_and_grad(looped, net.parameters());
  EXPECT_LT(Window::of_thread().size(), 100u);
  EXPECT_TRUE(std::isfinite(ops::sum(result.gradients[1]).item()));
}

TEST(Scan, ServesEveryLengthAndBatchWithFewGraphs) {
  const Recurrence net;
  const auto run = [&](int64_t length, int64_t batch) {
    const Tensor x = ops::normal({length, batch, 3});
    x.wait();
    const auto loss = [&] {
      const ScanResult result = scan(
          [&](const Tensors& carried, const Tensors& slices) {
            return ScanResult{{net.turn(carried[0], slices[0])}, {}};
          },
          {ops::broadcast_to(zeros({1, 4}), Shape{batch, 4})}, {x});
      return Tensors{ops::sum(result.carried[0])};
    };
    (void)ops::sum(value_and_grad(loss, net.parameters()).gradients[0]).item();
  };
  const testing_support::ScopedWindowLimits long_window;
  CpuRuntime::instance()
      .graphs()
      .clear();  // sizes that earlier tests had would be among the examples
  const int64_t graphs = counters().graphs;
  int64_t after_three = 0;
  for (int64_t i = 0; i < 20; ++i) {
    run(3 + i, 2 + i % 7);
    if (i == 2) after_three = counters().graphs;
  }
  EXPECT_LE(after_three - graphs, 9);
  EXPECT_LE(counters().graphs - after_three, 3);
}

// What is the same in every turn is computed once, and a gradient with respect to a tensor of
// outside may be taken inside.
TEST(Scan, ComputesWhatIsTheSameInEveryTurnOnce) {
  const Tensor x = ops::normal({5, 3}), weight = ops::normal({3, 3});
  x.wait(), weight.wait();
  const testing_support::ScopedWindowLimits long_window;
  const auto body = [&](const Tensors& carried, const Tensors& slices) {
    return ScanResult{{carried[0] + slices[0] * ops::sum(ops::exp(weight))}, {}};
  };
  const ScanResult result = scan(body, {zeros({3})}, {x});
  // exp and sum stand before the loop.
  EXPECT_EQ(Window::of_thread().size(), 3u + 1u);
  EXPECT_TRUE(std::isfinite(ops::sum(result.carried[0]).item()));
}

TEST(Scan, TakesGradientsInsideItsBody) {
  const Tensor x = vector({1, 2, 3}), weight = vector({4});
  // Gradient descent on (weight - slice)^2 / 2, and the derivative of the outside tensor inside.
  const ScanResult result = scan(
      [&](const Tensors& carried, const Tensors& slices) {
        const Tensor wrt[] = {carried[0], weight};
        const auto gradients = grad(
            [&] {
              return ops::sum(ops::square(carried[0] - slices[0]) * 0.5 + weight * slices[0]);
            },
            wrt);
        return ScanResult{{carried[0] - gradients[0] * 0.5}, {gradients[1]}};
      },
      {weight}, {ops::reshape(x, Shape{3, 1})});
  EXPECT_THAT(elements(result.carried[0]), ElementsAre(((4 + 1) / 2.0f + 2) / 4 + 1.5f));
  EXPECT_THAT(elements(result.stacked[0]), ElementsAre(1, 2, 3));
}

TEST(Scan, DrawsAnewInEveryTurnAndTheSameAgain) {
  const auto draws = [] {
    set_seed(5);
    return scan([](const Tensors&, const Tensors&) { return ScanResult{{}, {ops::uniform({3})}}; },
                {}, {}, {.length = 4})
        .stacked[0];
  };
  const std::vector<float> first = elements(draws());
  EXPECT_EQ(std::set<float>(first.begin(), first.end()).size(), 12u);
  EXPECT_EQ(elements(draws()), first);
}

// The mask of the backward pass must be that of the forward pass.
TEST(Scan, KeepsDropoutMasksInTheBackwardPass) {
  set_seed(3);
  const Tensor x = ops::uniform({5, 40}, 1.0, 2.0);
  const auto dropped = [&] {
    const ScanResult result =
        scan([](const Tensors&,
                const Tensors& slices) { return ScanResult{{}, {ops::dropout(slices[0], 0.5)}}; },
             {}, {x});
    return Tensors{ops::sum(result.stacked[0]), result.stacked[0]};
  };
  const Tensor wrt[] = {x};
  const ValueAndGradients result = value_and_grad(dropped, wrt);
  const std::vector<float> y = elements(result.values[1]), g = elements(result.gradients[0]);
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(g[i], y[i] == 0 ? 0.0f : 2.0f);
  EXPECT_NE(std::vector<float>(y.begin(), y.begin() + 40),
            std::vector<float>(y.begin() + 40, y.begin() + 80));
}

TEST(Scan, KeepsItsBitsWhereverTheWindowIsCut) {
  set_seed(9);
  const Recurrence net;
  const Tensor x = ops::normal({6, 2, 3});
  const auto gradients = [&](int64_t fixed) {
    Window::of_thread().flush();
    const testing_support::ScopedWindowLimits limits({.fixed = fixed});
    const auto loss = [&] {
      const ScanResult result = scan(
          [&](const Tensors& carried, const Tensors& slices) {
            const Tensor h = net.turn(carried[0], slices[0]);
            return ScanResult{{h}, {h}};
          },
          {zeros({2, 4})}, {x});
      return Tensors{ops::sum(result.stacked[0])};
    };
    std::vector<std::vector<float>> all;
    for (const Tensor& gradient : value_and_grad(loss, net.parameters()).gradients) {
      all.push_back(elements(gradient));
    }
    return all;
  };
  const auto whole = gradients(0);
  for (const int64_t fixed : {1, 7}) {
    const auto cut = gradients(fixed);
    for (size_t i = 0; i < whole.size(); ++i) EXPECT_EQ(cut[i], whole[i]) << "gradient " << i;
  }
}

TEST(Scan, SaysWhatIsWrong) {
  const Tensor x = vector({1, 2});
  const auto keep = [](const Tensors& carried, const Tensors&) { return ScanResult{carried, {}}; };
  EXPECT_THAT(message_of([&] { (void)scan(keep, {x}, {}); }),
              HasSubstr("[scan] a length is needed"));
  EXPECT_THAT(message_of([&] { (void)scan(keep, {x}, {x, vector({1, 2, 3})}); }),
              HasSubstr("does not fit a length of 2"));
  EXPECT_THAT(message_of([&] {
                (void)scan(
                    [](const Tensors& carried, const Tensors&) {
                      return ScanResult{{ops::concat({carried[0], carried[0]}, 0)}, {}};
                    },
                    {x}, {}, {.length = 2});
              }),
              HasSubstr("must give for what it carries (number 0)"));
  EXPECT_THAT(message_of([&] {
                (void)scan(
                    [](const Tensors& carried, const Tensors&) {
                      (void)ops::sum(carried[0]).item();
                      return ScanResult{carried, {}};
                    },
                    {x}, {}, {.length = 2});
              }),
              HasSubstr("no elements that can be read"));
  const Tensor outside = vector({0, 0});
  EXPECT_THAT(message_of([&] {
                (void)scan(
                    [&](const Tensors& carried, const Tensors&) {
                      outside.assign(carried[0] + 1.0);
                      return ScanResult{carried, {}};
                    },
                    {x}, {}, {.length = 2});
              }),
              HasSubstr("cannot write a tensor of outside"));
  EXPECT_THAT(elements(outside), ElementsAre(0, 0));
}

TEST(Scan, NamesTheLineOfABodysFailure) {
  const testing_support::ScopedWindowLimits long_window;
  const Tensor table = Tensor::from_vector<float>({3, 1}, {1, 2, 3});
  const Tensor rows = Tensor::from_vector<int32_t>({3, 1}, {0, 7, 1});
  int line = 0;
  const ScanResult result = scan(
      [&](const Tensors&, const Tensors& slices) {
        line = __LINE__ + 1;
        return ScanResult{{}, {ops::gather(table, slices[0], 0)}};
      },
      {}, {rows});
  try {
    result.stacked[0].wait();
    FAIL() << "row 7 of 3 must fail";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Index);
    EXPECT_EQ(error.location().line, line);
  }
}

TEST(Cond, RunsOneBranchAndDifferentiatesIt) {
  const Tensor x = vector({1, 2, 3});
  for (const float sign : {1.0f, -1.0f}) {
    const Tensor wrt[] = {x};
    const ValueAndGradients result = value_and_grad(
        [&] {
          const Tensor positive = ops::greater(ops::sum(x * static_cast<double>(sign)), 0.0);
          const Tensors y = cond(
              positive, [&] { return Tensors{ops::square(x)}; }, [&] { return Tensors{x * -3.0}; });
          return Tensors{ops::sum(y[0] * 2.0), y[0]};
        },
        wrt);
    if (sign > 0) {
      EXPECT_THAT(elements(result.values[1]), ElementsAre(1, 4, 9));
      EXPECT_THAT(elements(result.gradients[0]), ElementsAre(4, 8, 12));
    } else {
      EXPECT_THAT(elements(result.values[1]), ElementsAre(-3, -6, -9));
      EXPECT_THAT(elements(result.gradients[0]), ElementsAre(-6, -6, -6));
    }
  }
}

// A number that only the backward pass needs, and a tensor of outside, become known to it.
TEST(Scan, LetsAUsersGradientRuleUseTensorsOfOutside) {
  const Tensor x = vector({2, 3}), scale = vector({10, 20});
  const Tensor wrt[] = {x};
  const auto gradient = grad(
      [&] {
        const ScanResult result = scan(
            [&](const Tensors& carried, const Tensors&) {
              const Tensors y = custom_gradient(
                  {carried[0]}, [](const Tensors& in) { return Tensors{in[0] * 2.0}; },
                  [&](const Tensors&, const Tensors&, const Tensors& cotangents) {
                    return Tensors{cotangents[0] * scale * 0.5};
                  });
              return ScanResult{{y[0]}, {}};
            },
            {x}, {}, {.length = 2});
        return ops::sum(result.carried[0]);
      },
      wrt);
  EXPECT_THAT(elements(gradient[0]), ElementsAre(25, 100));
}

// A number of rank 0 is no memory, but a gradient can be asked for it all the same.
TEST(Loops, DifferentiateNumbersThatTheirBodiesRead) {
  const Tensor k = Tensor::scalar(DType::Float32, 0.5), one = vector({1});
  const Tensor wrt[] = {k};
  const auto power = [&](const Tensor& from, int64_t turns) {
    return scan([&](const Tensors& h, const Tensors&) { return ScanResult{{h[0] * k}, {}}; },
                {from}, {}, {.length = turns})
        .carried[0];
  };
  const auto cube = [&] { return ops::sum(power(one, 3)); };
  EXPECT_DOUBLE_EQ(grad(cube, wrt)[0].item(), 3 * 0.25);
  const auto nested = [&] {
    return ops::sum(
        scan([&](const Tensors& h, const Tensors&) { return ScanResult{{power(h[0], 3)}, {}}; },
             {one}, {}, {.length = 2})
            .carried[0]);
  };
  EXPECT_DOUBLE_EQ(grad(nested, wrt)[0].item(), 6 * 0.03125);
  EXPECT_DOUBLE_EQ(grad([&] { return grad(cube, wrt)[0]; }, wrt)[0].item(), 6 * 0.5);
  const auto repeated = [&] {
    return ops::sum(while_loop([](const Tensors& h) { return ops::greater(ops::sum(h[0]), 0.2); },
                               [&](const Tensors& h) { return Tensors{h[0] * k}; }, {one})[0]);
  };
  EXPECT_DOUBLE_EQ(grad(repeated, wrt)[0].item(), 3 * 0.25);
  const auto chosen = [&] {
    return ops::sum(cond(
        ops::greater(ops::sum(one), 0.0), [&] { return Tensors{one * k}; },
        [&] { return Tensors{one}; })[0]);
  };
  EXPECT_DOUBLE_EQ(grad(chosen, wrt)[0].item(), 1);
}

TEST(Scan, RefusesWhatBelongsToAnotherBody) {
  Tensor kept;
  const auto keep = [&](const Tensors& carried, const Tensors&) {
    kept = carried[0] * 2.0;
    return ScanResult{carried, {}};
  };
  const Tensor x = vector({1, 2}), good = x * 3.0;
  (void)scan(keep, {x}, {}, {.length = 2});
  EXPECT_THAT(message_of([&] { (void)(kept + 1.0); }), HasSubstr("only what is returned exists"));
  EXPECT_THAT(elements(good), ElementsAre(3, 6));
}

TEST(Cond, SaysWhatIsWrong) {
  const Tensor x = vector({1, 2});
  const auto run = [&](const Tensor& condition, const Tensors& a, const Tensors& b) {
    return message_of([&] { (void)cond(condition, [&] { return a; }, [&] { return b; }); });
  };
  const Tensor holds = ops::greater(ops::sum(x), 0.0);
  EXPECT_THAT(run(x, {x}, {x}), HasSubstr("[cond] the condition must be one bool"));
  EXPECT_THAT(run(holds, {x}, {}), HasSubstr("equally many results, got 1 and 0"));
  EXPECT_THAT(run(holds, {x}, {ops::sum(x)}), HasSubstr("result 0 must have one shape and dtype"));
}

TEST(WhileLoop, RunsUntilTheConditionFailsAndDifferentiatesThroughEveryTurn) {
  const Tensor x = vector({1.5}), factor = vector({1.3});
  const auto grown = [&] {
    const Tensors end = while_loop(
        [](const Tensors& carried) { return ops::less(ops::sum(carried[0]), 10.0); },
        [&](const Tensors& carried) { return Tensors{carried[0] * factor, carried[1] + 1.0}; },
        {x, vector({0})});
    return Tensors{ops::sum(end[0]), end[1]};
  };
  const Tensor wrt[] = {x, factor};
  const ValueAndGradients result = value_and_grad(grown, wrt);
  const int turns = 8;  // 1.5 * 1.3^8 = 12.2
  EXPECT_THAT(elements(result.values[1]), ElementsAre(turns));
  EXPECT_NEAR(result.values[0].item(), 1.5 * std::pow(1.3, turns), 1e-4);
  EXPECT_NEAR(result.gradients[0].item(), std::pow(1.3, turns), 1e-4);
  EXPECT_NEAR(result.gradients[1].item(), 1.5 * turns * std::pow(1.3, turns - 1), 1e-3);
}

TEST(WhileLoop, MayNotTurnAtAll) {
  const Tensor x = vector({20});
  const Tensor wrt[] = {x};
  const Tensor gradient = grad(
      [&] {
        return ops::sum(
            while_loop([](const Tensors& carried) { return ops::less(ops::sum(carried[0]), 10.0); },
                       [](const Tensors& carried) { return Tensors{carried[0] * 3.0}; }, {x})[0]);
      },
      wrt)[0];
  EXPECT_THAT(elements(gradient), ElementsAre(1));
}

// A loop in a loop, with a product whose working memory depends on the threads.
Tensor repeated_products(const Tensor& weight, const Tensor& state, const Tensor& slices) {
  const ScanResult outer = scan(
      [&](const Tensors& carried, const Tensors& each) {
        const ScanResult inner = scan(
            [&](const Tensors& h, const Tensors&) {
              const Tensor next = ops::tanh(ops::matmul(h[0], weight) + each[0]);
              return ScanResult{{next - ops::mean(next, Axes{1}, true)}, {}};
            },
            {carried[0]}, {}, {.length = 3});
        return ScanResult{{inner.carried[0] * 0.5}, {}};
      },
      {state}, {slices});
  return outer.carried[0];
}

TEST(ControlFlow, TakesItsMemoryFromTheWindowsPlan) {
  const testing_support::ScopedWindowLimits long_window;
  const Tensor weight = ops::uniform(Shape{96, 96}, -0.2, 0.2);
  const Tensor state = ops::uniform(Shape{120, 96}, -1.0, 1.0);
  const Tensor slices = ops::uniform(Shape{4, 120, 96}, -1.0, 1.0);
  std::vector<float> first;
  // The plan of one count of threads does not serve another.
  for (const int threads : {2, 1, 2}) {
    const testing_support::ScopedThreadCount count(threads);
    for (int run = 0; run < 2; ++run) repeated_products(weight, state, slices).wait();
    const int64_t allocations = cpu_pool().statistics().allocation_count;
    const Tensor result = repeated_products(weight, state, slices);
    result.wait();
    // The arena and the result, however many turns there are.
    EXPECT_EQ(cpu_pool().statistics().allocation_count - allocations, 2) << threads;
    if (first.empty()) first = elements(result);
    EXPECT_EQ(elements(result), first) << threads;
  }
  Tensor h = state;
  for (int64_t i = 0; i < 4; ++i) {
    const Tensor each = ops::reshape(ops::narrow(slices, i, 0, Shape{1}), Shape{120, 96});
    for (int turn = 0; turn < 3; ++turn) {
      const Tensor next = ops::tanh(ops::matmul(h, weight) + each);
      h = next - ops::mean(next, Axes{1}, true);
    }
    h = h * 0.5;
  }
  EXPECT_THAT(first, Pointwise(FloatNear(1e-5f), elements(h)));
}

TEST(ControlFlow, Nests) {
  const Tensor x = Tensor::from_vector<float>({3, 2}, {1, -2, 3, -4, 5, -6});
  const Tensor wrt[] = {x};
  const auto nested = [&] {
    const ScanResult result = scan(
        [](const Tensors& carried, const Tensors& slices) {
          const Tensors chosen = cond(
              ops::greater(ops::sum(slices[0]), 0.0), [&] { return Tensors{slices[0]}; },
              [&] { return Tensors{slices[0] * 2.0}; });
          const ScanResult inner =
              scan([&](const Tensors& state,
                       const Tensors&) { return ScanResult{{state[0] * 0.5 + chosen[0]}, {}}; },
                   {carried[0]}, {}, {.length = 2});
          return ScanResult{{inner.carried[0]}, {}};
        },
        {vector({0, 0})}, {x});
    return Tensors{ops::sum(result.carried[0]), result.carried[0]};
  };
  std::vector<float> h = {0, 0};
  const std::vector<float> slices = elements(x);
  std::vector<float> expected_gradient;
  for (size_t t = 0; t < 3; ++t) {
    const float scale = slices[2 * t] + slices[2 * t + 1] > 0 ? 1.0f : 2.0f;
    for (size_t i = 0; i < 2; ++i) {
      for (int turn = 0; turn < 2; ++turn) h[i] = h[i] * 0.5f + scale * slices[2 * t + i];
    }
    const float later = std::pow(0.25f, static_cast<float>(2 - t));
    expected_gradient.push_back(1.5f * scale * later);
    expected_gradient.push_back(1.5f * scale * later);
  }
  const ValueAndGradients result = value_and_grad(nested, wrt);
  EXPECT_THAT(elements(result.values[1]), Pointwise(FloatNear(1e-5f), h));
  EXPECT_THAT(elements(result.gradients[0]), Pointwise(FloatNear(1e-5f), expected_gradient));
}

}  // namespace
}  // namespace lamella
