// Loss scales: how they follow the gradients, and that a scale leaves no trace in a finite step.
#include "lamella/amp/loss_scale.h"

#include <cmath>
#include <limits>

#include "tests/errors.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lamella/ops/functions.h"

namespace lamella::amp {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Tensor number(float value) {
  return Tensor::from_vector<float>({}, {value});
}
Tensor truth(bool value) {
  return Tensor::scalar(DType::Bool, value);
}

// The scale after each step.
std::vector<double> scales(LossScaleUpdate& update, const std::vector<bool>& finite) {
  const Tensor scale = number(static_cast<float>(update.initial_scale()));
  std::vector<double> after;
  for (const bool each : finite) {
    update.adjust(scale, truth(each));
    after.push_back(scale.item());
  }
  return after;
}

TEST(AllFinite, LooksAtEveryElementOfEveryFloatTensor) {
  const Tensor good = Tensor::from_vector<float>({2}, {1, -1e38F});
  const Tensor whole = Tensor::from_vector<int32_t>({1}, {7});
  EXPECT_TRUE(all_finite({good, whole}).item());
  EXPECT_TRUE(all_finite({}).item());
  EXPECT_TRUE(all_finite({Tensor::from_vector<float>({0}, {})}).item());
  for (const float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_FALSE(all_finite({good, Tensor::from_vector<float>({3}, {0, bad, 0})}).item()) << bad;
    EXPECT_FALSE(all_finite({ops::cast(number(bad), DType::Float16), good}).item()) << bad;
  }
  EXPECT_FALSE(all_finite({ops::cast(number(65520), DType::Float16)}).item()) << "beyond float16";
  EXPECT_EQ(all_finite({good}).dtype(), DType::Bool);
  EXPECT_EQ(all_finite({good}).rank(), 0);
}

TEST(DynamicLossScale, GrowsAfterEveryWindowOfFiniteSteps) {
  DynamicLossScaleUpdate every(4, 2, 1);
  EXPECT_THAT(scales(every, {true, true, true}), ElementsAre(8, 16, 32));
  DynamicLossScaleUpdate third(4, 2, 3);
  EXPECT_THAT(scales(third, {true, true, true, true, true, true}), ElementsAre(4, 4, 8, 8, 8, 16));
}

TEST(DynamicLossScale, FallsAtOnceAndCountsAnew) {
  DynamicLossScaleUpdate update(64, 4, 2);
  EXPECT_THAT(scales(update, {true, false, true, true, false, false}),
              ElementsAre(64, 16, 16, 64, 16, 4));
}

TEST(DynamicLossScale, StaysBetweenOneAndTheLargestFloat) {
  DynamicLossScaleUpdate low(2, 4, 10);
  EXPECT_THAT(scales(low, {false, false, true}), ElementsAre(1, 1, 1));
  DynamicLossScaleUpdate high(std::ldexp(1.0, 126), 2, 1);
  EXPECT_THAT(scales(high, {true, true, true}),
              ElementsAre(std::ldexp(1.0, 127), std::ldexp(1.0, 127), std::ldexp(1.0, 127)));
}

TEST(FixedLossScale, NeverChanges) {
  FixedLossScaleUpdate update(128);
  EXPECT_THAT(scales(update, {true, false, true}), ElementsAre(128, 128, 128));
}

TEST(LossScale, IsCalledWithScaleAndOverflow) {
  DynamicLossScaleUpdate update(8, 2, 1);
  const Tensor scale = number(8);
  EXPECT_TRUE(update.construct({scale, truth(true)})[0].item());
  EXPECT_EQ(scale.item(), 4);
  EXPECT_FALSE(update.construct({scale, truth(false)})[0].item());
  EXPECT_EQ(scale.item(), 8);
}

TEST(LossScale, SaysWhatIsWrong) {
  const auto error = [](const auto& function) {
    const Error thrown = error_of(function);
    EXPECT_EQ(thrown.kind(), ErrorKind::Value);
    return thrown.message();
  };
  for (const double bad : {0.5, 0.0, -4.0, 1e39, std::nan("")}) {
    EXPECT_THAT(error([&] { FixedLossScaleUpdate update(bad); }), HasSubstr("at least 1")) << bad;
  }
  EXPECT_THAT(error([] { DynamicLossScaleUpdate update(4, 1); }), HasSubstr("scale_factor"));
  EXPECT_THAT(error([] { DynamicLossScaleUpdate update(4, 2, 0); }), HasSubstr("scale_window"));
  EXPECT_THAT(error([] {
                DynamicLossScaleUpdate(4).construct(nn::Tensors{number(4), number(4), number(4)});
              }),
              HasSubstr("overflow"));
}

}  // namespace
}  // namespace lamella::amp
