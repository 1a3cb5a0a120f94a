// Gradients against closed forms and finite differences.
#include "lamella/transform/grad.h"

#include <gtest/gtest.h>

#include "lamella/ops/functions.h"
#include "lamella/ops/tensor_operators.h"

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

}  // namespace
}  // namespace lamella
