// Schedules against their formulas.
#include "lamella/optim/learning_rate.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lamella::optim {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::Pointwise;

void expect_rates(const Rates& rates, const std::vector<double>& expected) {
  EXPECT_THAT(rates, Pointwise(DoubleNear(1e-12), expected));
}

TEST(Schedule, Lists) {
  expect_rates(piecewise_constant_lr({2, 5}, {0.1, 0.05}), {0.1, 0.1, 0.05, 0.05, 0.05});
  expect_rates(exponential_decay_lr(0.1, 0.9, {6, 2}, 1), {0.1, 0.1, 0.09, 0.09, 0.081, 0.081});
  expect_rates(natural_exp_decay_lr(0.1, 0.9, {4, 2}, 2),
               {0.1, 0.1, 0.1 * std::exp(-0.9), 0.1 * std::exp(-0.9)});
  expect_rates(inverse_decay_lr(0.1, 0.5, {4, 1}, 1, Decay::Stairs),
               {0.1, 0.1 / 1.5, 0.1 / 2, 0.1 / 2.5});
  expect_rates(cosine_decay_lr(0.01, 0.1, {6, 2}, 2), {0.1, 0.1, 0.055, 0.055, 0.01, 0.01});
  expect_rates(polynomial_decay_lr(0.1, 0.01, {6, 2}, 2, 0.5),
               {0.1, 0.1, 0.09 * std::sqrt(0.5) + 0.01, 0.09 * std::sqrt(0.5) + 0.01, 0.01, 0.01});
  expect_rates(warmup_lr(0.1, {6, 2}, 2), {0, 0, 0.05, 0.05, 0.1, 0.1});
  EXPECT_THROW(piecewise_constant_lr({2, 2}, {0.1, 0.05}), Error);
  EXPECT_THROW(piecewise_constant_lr({2}, {0.1, 0.05}), Error);
}

TEST(Schedule, Objects) {
  EXPECT_DOUBLE_EQ(ExponentialDecayLR(0.1, 0.5, 4).rate(2), 0.1 * std::sqrt(0.5));
  EXPECT_DOUBLE_EQ(ExponentialDecayLR(0.1, 0.5, 4, Decay::Stairs).rate(7), 0.05);
  EXPECT_DOUBLE_EQ(NaturalExpDecayLR(0.1, 0.5, 4, Decay::Stairs).rate(6), 0.1 * std::exp(-2));
  EXPECT_DOUBLE_EQ(InverseDecayLR(0.1, 0.5, 2).rate(2), 0.1 / 1.5);
  EXPECT_NEAR(CosineDecayLR(0.01, 0.1, 4).rate(2), 0.055, 1e-15);
  EXPECT_NEAR(CosineDecayLR(0.01, 0.1, 4).rate(100), 0.01, 1e-15);
  EXPECT_DOUBLE_EQ(PolynomialDecayLR(0.1, 0.0, 10, 1).rate(5), 0.05);
  EXPECT_DOUBLE_EQ(PolynomialDecayLR(0.1, 0.0, 10, 1).rate(15), 0.0);
  // Stretched to 20 steps.
  EXPECT_DOUBLE_EQ(PolynomialDecayLR(0.1, 0.0, 10, 1, AfterDecay::Stretch).rate(15), 0.025);
  EXPECT_DOUBLE_EQ(WarmUpLR(0.1, 10).rate(5), 0.05);
  EXPECT_DOUBLE_EQ(WarmUpLR(0.1, 10).rate(15), 0.1);
  EXPECT_THROW(WarmUpLR(0.1, 0), Error);
  EXPECT_THROW(CosineDecayLR(0.1, 0.1, 5), Error);
}

TEST(Schedule, IsACellFromStepToRate) {
  WarmUpLR schedule(0.5, 10);
  const Tensor rate = schedule(Tensor::from_vector<int32_t>({}, {5}));
  EXPECT_EQ(rate.dtype(), DType::Float32);
  EXPECT_EQ(rate.item(), 0.25);
}

}  // namespace
}  // namespace lamella::optim
