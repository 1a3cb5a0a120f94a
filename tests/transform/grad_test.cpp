// Gradients against closed forms and finite differences.
#include "lamella/transform/grad.h"

#include <functional>
#include <optional>
#include <thread>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lamella/device/pool.h"
#include "lamella/ir/window.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/tensor_operators.h"
#include "lamella/runtime/counters.h"

namespace lamella {
namespace {

Tensor doubles(const Shape& shape, std::vector<double> elements) {
  return Tensor::from_vector<double>(shape, elements);
}

TEST(Grad, OfAProductWithBroadcasting) {
  const Tensor x = doubles({2, 2}, {1, 2, 3, 4}), y = doubles({2}, {5, 6});
  const Tensor wrt[] = {x, y};
  const auto result = value_and_grad([&] { return std::vector{ops::sum(x * y)}; }, wrt);
  EXPECT_EQ(result.values[0].item(), 5 + 12 + 15 + 24);
  EXPECT_EQ(result.gradients[0].to_vector<double>(), (std::vector<double>{5, 6, 5, 6}));
  EXPECT_EQ(result.gradients[1].to_vector<double>(), (std::vector<double>{4, 6}));
}

TEST(Grad, OfAMatrixProduct) {
  const Tensor x = doubles({1, 2}, {1, 2}), w = doubles({2, 2}, {3, 4, 5, 6});
  const Tensor wrt[] = {x, w};
  const auto gradients = grad([&] { return ops::sum(ops::matmul(x, w)); }, wrt);
  EXPECT_EQ(gradients[0].to_vector<double>(), (std::vector<double>{7, 11}));
  EXPECT_EQ(gradients[1].to_vector<double>(), (std::vector<double>{1, 1, 2, 2}));
}

TEST(Grad, OfAGradient) {
  const Tensor x = doubles({3}, {1, 2, 3});
  const Tensor wrt[] = {x};
  const auto second =
      grad([&] { return ops::sum(grad([&] { return ops::sum(x * x * x); }, wrt)[0]); }, wrt);
  EXPECT_EQ(second[0].to_vector<double>(), (std::vector<double>{6, 12, 18}));
}

TEST(Grad, WhatDoesNotDependHasZeros) {
  const Tensor x = doubles({2}, {1, 2}), unused = doubles({3}, {0, 0, 0});
  const Tensor wrt[] = {unused};
  EXPECT_EQ(grad([&] { return ops::sum(x * x); }, wrt)[0].to_vector<double>(),
            (std::vector<double>{0, 0, 0}));
}

TEST(Vjp, RunsOnceAndPullsBackAsOftenAsAsked) {
  const Tensor x = doubles({2}, {1, 2}), y = doubles({2}, {3, 4});
  const Tensor wrt[] = {x, y};
  int runs = 0;
  const auto [values, pull_back] = vjp(
      [&] {
        ++runs;
        return std::vector{x * y, ops::sum(x * x)};
      },
      wrt);
  EXPECT_EQ(values[0].to_vector<double>(), (std::vector<double>{3, 8}));
  const Tensor directions[] = {doubles({2}, {10, 100}), Tensor()};
  const Tensor others[] = {Tensor(), doubles({}, {1})};
  for (int i = 0; i < 2; ++i) {
    const auto gradients = pull_back(directions);
    EXPECT_EQ(gradients[0].to_vector<double>(), (std::vector<double>{30, 400}));
    EXPECT_EQ(gradients[1].to_vector<double>(), (std::vector<double>{10, 200}));
    const auto of_the_sum = pull_back(others);
    EXPECT_EQ(of_the_sum[0].to_vector<double>(), (std::vector<double>{2, 4}));
    EXPECT_EQ(of_the_sum[1].to_vector<double>(), (std::vector<double>{0, 0}));
  }
  EXPECT_EQ(runs, 1);
}

TEST(Vjp, IsDifferentiatedLikeAnyProgram) {
  const Tensor x = doubles({2}, {1, 2}), one = doubles({2}, {1, 1});
  const Tensor wrt[] = {x};
  const auto second = grad(
      [&] {
        const auto [values, pull_back] = vjp([&] { return std::vector{x * x * x}; }, wrt);
        return ops::sum(pull_back(std::vector{one})[0]);
      },
      wrt);
  EXPECT_EQ(second[0].to_vector<double>(), (std::vector<double>{6, 12}));
}

TEST(Vjp, OutlivesTheWindowAndTheThreadThatRanIt) {
  const Tensor x = doubles({2}, {1, 2}), one = doubles({2}, {1, 1});
  std::optional<Pullback> pull_back;
  std::thread([&] {
    const Tensor wrt[] = {x};
    pull_back = vjp([&] { return std::vector{x * x * x}; }, wrt).pullback;
    Window::of_thread().flush();
  }).join();
  EXPECT_EQ((*pull_back)(std::vector{one})[0].to_vector<double>(), (std::vector<double>{3, 12}));
}

// The bytes in use while the pullback of a function of one tensor lives, less those before.
int64_t kept_by(const std::function<Tensor(const Tensor&)>& function, const Tensor& x) {
  Window::of_thread().flush();
  const int64_t before = cpu_pool().statistics().used;
  const Tensor wrt[] = {x};
  const Pullback pull_back = vjp([&] { return std::vector{function(x)}; }, wrt).pullback;
  Window::of_thread().flush();
  const int64_t kept = cpu_pool().statistics().used - before;
  EXPECT_EQ(pull_back(std::vector{x})[0].shape(), x.shape());
  return kept;
}

TEST(Vjp, KeepsOfTheRunOnlyWhatItsGradientsNeed) {
  const Tensor x = Tensor::from_vector<double>({1 << 16}, std::vector<double>(1 << 16, 2));
  const int64_t size = 8 << 16;
  const auto product = [](const Tensor& y) { return y * y; };
  EXPECT_LT(kept_by(product, x), 2 * size);
  const auto beside = [&](const Tensor& y) {
    for (int i = 0; i < 5; ++i) std::ignore = ops::exp(y + static_cast<double>(i));  // of no result
    return product(y);
  };
  EXPECT_EQ(kept_by(beside, x), kept_by(product, x));
  const auto stopped = [&](const Tensor& y) {
    return product(y) + ops::stop_gradient(ops::exp(ops::sin(ops::cos(y))));
  };
  EXPECT_LT(kept_by(stopped, x), 4 * size);
  const auto jumps = [&](const Tensor& y) {
    return product(y) + ops::exp(ops::sin(ops::floor(y)));
  };
  EXPECT_LT(kept_by(jumps, x), 4 * size);
}

// Whoever else holds them: an argument made just before, and what no gradient flows through.
TEST(Vjp, KeepsOperandsThatAreYetToBeComputed) {
  const Tensor one = doubles({2}, {1, 1});
  std::optional<Pullback> pull_back;
  {
    const Tensor x = doubles({2}, {1, 2}) + 1.0;
    const Tensor wrt[] = {x};
    pull_back = vjp([&] { return std::vector{x * ops::stop_gradient(x + 3.0) * x}; }, wrt).pullback;
  }
  Window::of_thread().flush();
  EXPECT_EQ((*pull_back)(std::vector{one})[0].to_vector<double>(), (std::vector<double>{20, 36}));
}

TEST(Vjp, CotangentsHaveTheTypesOfTheResults) {
  const Tensor x = doubles({2}, {1, 2});
  const Tensor wrt[] = {x};
  const Pullback pull_back = vjp([&] { return std::vector{x * x}; }, wrt).pullback;
  const auto another_shape = [&] { pull_back(std::vector{doubles({3}, {1, 1, 1})}); };
  EXPECT_THAT(another_shape,
              testing::ThrowsMessage<Error>(testing::HasSubstr("f64[2] like it, got f64[3]")));
  const auto another_number = [&] { pull_back({}); };
  EXPECT_THAT(another_number,
              testing::ThrowsMessage<Error>(testing::HasSubstr("returned 1 tensors")));
}

TEST(Grad, StopsWhereItIsTold) {
  const Tensor x = doubles({2}, {1, 2});
  const Tensor wrt[] = {x};
  EXPECT_EQ(grad([&] { return ops::sum(x * ops::stop_gradient(x)); }, wrt)[0].to_vector<double>(),
            (std::vector<double>{1, 2}));
}

TEST(Grad, ThroughAVarianceMatchesItsFormula) {
  const Tensor x = doubles({4}, {1, 2, 4, 9});
  const Tensor wrt[] = {x};
  const auto gradient = grad([&] { return ops::var(x); }, wrt)[0].to_vector<double>();
  for (int i = 0; i < 4; ++i) {
    const double element = std::vector<double>{1, 2, 4, 9}[static_cast<size_t>(i)];
    EXPECT_NEAR(gradient[static_cast<size_t>(i)], 2 * (element - 4) / 4, 1e-12);
  }
}

TEST(Grad, OfAFunctionWithAGradientOfItsOwn) {
  const Tensor x = doubles({2}, {1, 2});
  const Tensor wrt[] = {x};
  const auto gradient = grad(
      [&] {
        return ops::sum(custom_gradient(
            {x}, [](const std::vector<Tensor>& o) { return std::vector{o[0] * 2.0}; },
            [](const std::vector<Tensor>&, const std::vector<Tensor>&,
               const std::vector<Tensor>& cotangents) {
              return std::vector{cotangents[0] * 100.0};
            })[0]);
      },
      wrt);
  EXPECT_EQ(gradient[0].to_vector<double>(), (std::vector<double>{100, 100}));
}

TEST(Grad, OfACompositeSharesItsForwardBody) {
  // The maximum of each row, the exponentials and their sum are computed once, in one kernel.
  const Tensor x = Tensor::from_vector<float>({64, 100}, std::vector<float>(6400, 1));
  const Tensor wrt[] = {x};
  const auto step = [&] {
    const auto both =
        value_and_grad([&] { return std::vector{ops::sum(ops::gelu(x) * 3.0)}; }, wrt);
    const int64_t before = counters().launches;
    both.gradients[0].wait();
    return counters().launches - before;
  };
  step();
  EXPECT_LE(step(), 2);
}

TEST(Grad, NumbersOfTheUserStayOutOfTheKey) {
  const Tensor x = doubles({2}, {-1, 2});
  const Tensor wrt[] = {x};
  const auto slope = [&](double alpha) {
    return grad([&] { return ops::sum(ops::leaky_relu(x, alpha) * alpha); }, wrt)[0]
        .to_vector<double>();
  };
  EXPECT_EQ(slope(0.5), (std::vector<double>{0.25, 0.5}));
  const int64_t graphs = counters().graphs;
  EXPECT_EQ(slope(0.25), (std::vector<double>{0.0625, 0.25}));
  EXPECT_EQ(counters().graphs, graphs);
}

TEST(Grad, NumbersOfAGradientOfOnesOwnStayOutOfTheKey) {
  const Tensor x = doubles({2}, {1, 2});
  const Tensor wrt[] = {x};
  const auto slope = [&](double scale) {
    return grad(
               [&] {
                 return ops::sum(custom_gradient(
                     {x}, [](const std::vector<Tensor>& o) { return o; },
                     [=](const std::vector<Tensor>&, const std::vector<Tensor>&,
                         const std::vector<Tensor>& g) { return std::vector{g[0] * scale}; })[0]);
               },
               wrt)[0]
        .to_vector<double>();
  };
  EXPECT_EQ(slope(3), (std::vector<double>{3, 3}));
  const int64_t graphs = counters().graphs;
  EXPECT_EQ(slope(4), (std::vector<double>{4, 4}));
  EXPECT_EQ(counters().graphs, graphs);
}

TEST(Grad, ANewBatchSizeUsesTheGraphOverSymbolicSizes) {
  const auto slope = [&](int64_t rows) {
    const Tensor x = Tensor::from_vector<double>(
        {rows, 3}, std::vector<double>(static_cast<size_t>(rows) * 3, 1));
    const Tensor wrt[] = {x};
    return grad([&] { return ops::mean(ops::softmax(x) * x); }, wrt)[0].to_vector<double>()[0];
  };
  for (int64_t rows : {4, 6})
    EXPECT_NEAR(slope(rows), 1.0 / 3 / static_cast<double>(rows) / 3, 1e-12);
  const int64_t graphs = counters().graphs;
  for (int64_t rows : {8, 5, 9}) {
    EXPECT_NEAR(slope(rows), 1.0 / 3 / static_cast<double>(rows) / 3, 1e-12);
  }
  EXPECT_EQ(counters().graphs, graphs);
}

}  // namespace
}  // namespace lamella
