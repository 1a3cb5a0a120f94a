// Layers and losses against closed forms, and values computed with NumPy.
#include <cmath>

#include "tests/errors.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lamella/ir/window.h"
#include "lamella/nn/convolution.h"
#include "lamella/nn/dropout.h"
#include "lamella/nn/initializer.h"
#include "lamella/nn/loss.h"
#include "lamella/nn/normalization.h"
#include "lamella/nn/pooling.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/random.h"

namespace lamella::nn {
namespace {

using testing::Each;
using testing::FloatNear;
using testing::Pointwise;

Tensor floats(const Shape& shape, const std::vector<float>& elements) {
  return Tensor::from_vector<float>(shape, elements);
}
Tensor ramp(const Shape& shape) {
  std::vector<float> elements(static_cast<size_t>(element_count(shape).value()));
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<float>(i + 1);
  return floats(shape, elements);
}
void expect_near(const Tensor& tensor, const std::vector<float>& expected) {
  EXPECT_THAT(tensor.to_vector<float>(), Pointwise(FloatNear(2e-6f), expected));
}

TEST(Dense, MultipliesByTheTransposedWeight) {
  Dense dense(3, 2,
              {.weight_init = floats({2, 3}, {1, 2, 3, 4, 5, 6}),
               .bias_init = floats({2}, {10, 20}),
               .activation = "relu"});
  expect_near(dense(floats({1, 3}, {1, 0, -1})), {8, 18});
  expect_near(dense(floats({1, 3}, {-9, 0, 0})), {1, 0});
  EXPECT_THROW(Dense(0, 2), Error);
}

TEST(Conv2d, PadsAsItsModeSays) {
  const Tensor x = ramp({1, 1, 4, 4});
  const Initial ones = "ones";
  Conv2d same(1, 1, 3, {.stride = 2, .weight_init = ones});
  expect_near(same(x), {54, 45, 72, 54});  // the odd zero goes behind
  Conv2d valid(1, 1, 3, {.pad_mode = PadMode::Valid, .weight_init = ones});
  expect_near(valid(x), {54, 63, 90, 99});
  Conv2d pad(1, 1, 3, {.stride = 2, .pad_mode = PadMode::Pad, .padding = 1, .weight_init = ones});
  expect_near(pad(x), {14, 30, 57, 99});
  EXPECT_THROW(Conv2d(1, 1, 3, {.padding = 1}), Error);
  EXPECT_THROW(Conv2d(3, 4, 3, {.group = 2}), Error);
}

TEST(Conv2dTranspose, SpreadsEachElementOverItsKernel) {
  const Tensor x = ramp({1, 1, 2, 2});
  Conv2dTranspose valid(1, 1, 2, {.stride = 2, .pad_mode = PadMode::Valid, .weight_init = "ones"});
  expect_near(valid(x), {1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4});
  Conv2dTranspose same(1, 1, 3, {.stride = 2, .weight_init = "ones"});
  EXPECT_EQ(same(x).shape(), (Shape{1, 1, 4, 4}));
  Conv2dTranspose sparse(1, 1, 1, {.stride = 2, .weight_init = "ones"});
  expect_near(sparse(x), {1, 0, 2, 0, 0, 0, 0, 0, 3, 0, 4, 0, 0, 0, 0, 0});
}

TEST(BatchNorm, MovesItsStatisticsInTrainingOnly) {
  BatchNorm1d norm(1, {.eps = 0, .momentum = 0.9});
  const Tensor x = floats({4, 1}, {1, 2, 3, 6});  // mean 3, variance 3.5, unbiased 14 / 3
  norm.set_train();
  const float deviation = std::sqrt(3.5f);
  expect_near(norm(x), {-2 / deviation, -1 / deviation, 0, 3 / deviation});
  expect_near(norm.moving_mean()->tensor(), {0.3f});
  expect_near(norm.moving_variance()->tensor(), {0.9f + 1.4f / 3});
  norm.set_train(false);
  const float moving = std::sqrt(0.9f + 1.4f / 3);
  expect_near(norm(x), {0.7f / moving, 1.7f / moving, 2.7f / moving, 5.7f / moving});
  expect_near(norm.moving_mean()->tensor(), {0.3f});
  EXPECT_THROW(norm(ramp({1, 1, 2, 2})), Error);
  EXPECT_THROW(norm(ramp({2, 3})), Error);
}

TEST(LayerNorm, NormalisesEachRow) {
  LayerNorm norm({4}, {.epsilon = 0});
  const float deviation = std::sqrt(3.5f);
  expect_near(norm(floats({1, 4}, {1, 2, 3, 6})),
              {-2 / deviation, -1 / deviation, 0, 3 / deviation});
}

TEST(Dropout, IsOffOutsideTrainingAndScalesInside) {
  set_seed(1);
  Dropout dropout(DropProbability::of_keeping(0.75));
  const Tensor ones = filled({DType::Float32, Layout::RowMajor, {10000}}, 1);
  EXPECT_THAT(dropout(ones).to_vector<float>(), Each(1.0f));
  dropout.set_train();
  int kept = 0;
  for (float element : dropout(ones).to_vector<float>()) {
    EXPECT_TRUE(element == 0 || std::fabs(element - 4.0f / 3) < 1e-6f);
    kept += element != 0;
  }
  EXPECT_NEAR(kept, 7500, 150);
  EXPECT_THROW(Dropout(DropProbability::of_dropping(1.5)), Error);
}

TEST(Pooling, TakesTheLargestAndTheMean) {
  const Tensor x = ramp({1, 1, 4, 4});
  MaxPool2d largest(2, 2);
  expect_near(largest(x), {6, 8, 14, 16});
  AvgPool2d mean(2, 2);
  expect_near(mean(x), {3.5, 5.5, 11.5, 13.5});
  AvgPool2d edges(3, 2, {.pad_mode = PadMode::Pad, .padding = 1, .end = PoolEnd::Ceil});
  expect_near(edges(x), {1.5555556f, 3.3333333f, 2, 6.3333333f, 11, 6, 4.5, 7.5, 4});
}

TEST(Flatten, JoinsAllAxesButTheFirst) {
  Flatten flatten;
  EXPECT_EQ(flatten(ramp({2, 3, 4})).shape(), (Shape{2, 12}));
  EXPECT_EQ(Flatten(0, 1)(ramp({2, 3, 4})).shape(), (Shape{6, 4}));
}

TEST(Embedding, PicksRowsAndChecksTheirNumbers) {
  Embedding embedding(3, 2, {.table_init = ramp({3, 2}), .padding_index = 1});
  const Tensor picked = embedding(Tensor::from_vector<int32_t>({3}, {2, 0, 1}));
  expect_near(picked, {5, 6, 1, 2, 0, 0});
  try {
    embedding(Tensor::from_vector<int32_t>({1}, {3})).wait();
    FAIL() << "row 3 of 3 does not exist";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Index);
  }
}

TEST(Loss, FloatsAreNoNumbersOfClasses) {
  const Tensor scores = floats({2, 3}, {0, 1, 2, 3, 4, 5}), labels = floats({2}, {0, 1.9F});
  const auto refused = [&](LossBase&& loss, const Tensor& targets, ErrorKind kind) {
    EXPECT_EQ(error_of([&] { loss(scores, targets).wait(); }).kind(), kind);
  };
  refused(CrossEntropyLoss(), labels, ErrorKind::Type);
  refused(NLLLoss(), labels, ErrorKind::Type);
  refused(SoftmaxCrossEntropyWithLogits(Labels::Classes), labels, ErrorKind::Type);
  refused(SoftmaxCrossEntropyWithLogits(Labels::Classes), scores, ErrorKind::Type);
  // Of the scores' rank they are probabilities, one for each class.
  refused(CrossEntropyLoss(), floats({2, 2}, {0, 1, 1, 0}), ErrorKind::Value);
}

TEST(Loss, CrossEntropyInItsForms) {
  const Tensor logits = floats({2, 3}, {1, 2, 3, 1, 1, 1});
  const Tensor classes = Tensor::from_vector<int32_t>({2}, {2, 0});
  const Tensor one_hot = floats({2, 3}, {0, 0, 1, 1, 0, 0});
  const float first = 0.40760597f, second = 1.0986123f;
  expect_near(SoftmaxCrossEntropyWithLogits(Labels::Classes)(logits, classes), {first, second});
  expect_near(SoftmaxCrossEntropyWithLogits()(logits, one_hot), {first, second});
  expect_near(SoftmaxCrossEntropyWithLogits(Labels::Classes, Reduction::Mean)(logits, classes),
              {(first + second) / 2});
  expect_near(CrossEntropyLoss()(logits, classes), {(first + second) / 2});
  const Tensor ignored = Tensor::from_vector<int32_t>({2}, {2, -100});
  expect_near(CrossEntropyLoss()(logits, ignored), {first});
  // Only CrossEntropyLoss has a label that stands for "ignore".
  EXPECT_THROW(SoftmaxCrossEntropyWithLogits(Labels::Classes)(logits, ignored).wait(), Error);
}

TEST(Loss, Regressions) {
  const Tensor x = floats({4}, {0, 1, 2, 4}), y = floats({4}, {0, 0.5f, 4, 4});
  expect_near(MSELoss()(x, y), {4.25f / 4});
  expect_near(L1Loss(Reduction::Sum)(x, y), {2.5f});
  expect_near(SmoothL1Loss()(x, y), {0, 0.125f, 1.5f, 0});
  expect_near(BCEWithLogitsLoss()(floats({2}, {0, 2}), floats({2}, {1, 0})),
              {(0.6931472f + 2.1269281f) / 2});
}

TEST(Loss, OfProbabilitiesAndRobust) {
  const Tensor logs = floats({2, 2}, {-1, -2, -3, -4});
  expect_near(NLLLoss()(logs, Tensor::from_vector<int32_t>({2}, {1, 0})), {2.5f});
  expect_near(BCELoss()(floats({2}, {0.5f, 0.25f}), floats({2}, {1, 0})),
              {(0.6931472f + 0.2876821f) / 2});
  const Tensor x = floats({2}, {0.5f, 3}), zeros = floats({2}, {0, 0});
  expect_near(HuberLoss(Reduction::None)(x, zeros), {0.125f, 2.5f});
  expect_near(RMSELoss()(x, zeros), {std::sqrt(9.25f / 2)});
}

TEST(GroupNorm, NormalisesGroupsOfChannels) {
  GroupNorm norm(1, 2, {.eps = 0});
  const float deviation = std::sqrt(3.5f);
  expect_near(norm(floats({1, 2, 2}, {1, 2, 3, 6})),
              {-2 / deviation, -1 / deviation, 0, 3 / deviation});
  EXPECT_THROW(GroupNorm(2, 3), Error);
}

TEST(Initializer, DrawsWithinItsBounds) {
  set_seed(3);
  const auto extremes = [](const Tensor& drawn) {
    const auto elements = drawn.to_vector<float>();
    return std::pair(*std::min_element(elements.begin(), elements.end()),
                     *std::max_element(elements.begin(), elements.end()));
  };
  const Shape shape{64, 32, 3, 3};
  EXPECT_EQ(fans_of(shape).in, 288);
  EXPECT_EQ(fans_of(shape).out, 576);
  const auto [low, high] = extremes(default_weight().make(shape, DType::Float32, "weight"));
  const double bound = 1 / std::sqrt(288.0);  // slope sqrt(5): sqrt(3) sqrt(2/6) / sqrt(fan_in)
  EXPECT_GE(low, -bound);
  EXPECT_LT(high, bound);
  EXPECT_NEAR(high, bound, 1e-4);
  const auto [truncated_low, truncated_high] =
      extremes(TruncatedNormal(0.5)({100000}, DType::Float32));
  EXPECT_GE(truncated_low, -1.0f);
  EXPECT_LE(truncated_high, 1.0f);
  EXPECT_NEAR(truncated_high, 1.0f, 1e-2);
}

TEST(Initializer, HasTheMomentsItSays) {
  set_seed(4);
  const auto deviation = [](const Tensor& drawn) { return ops::std(drawn).item(); };
  EXPECT_NEAR(deviation(Normal(0.3)({100000}, DType::Float32)), 0.3, 0.005);
  EXPECT_NEAR(deviation(HeNormal()({400, 250}, DType::Float32)), std::sqrt(2 / 250.0), 0.002);
  EXPECT_NEAR(deviation(XavierNormal()({400, 250}, DType::Float32)), std::sqrt(2 / 650.0), 0.002);
  EXPECT_NEAR(deviation(XavierUniform()({400, 250}, DType::Float32)), std::sqrt(2 / 650.0), 0.002);
  // A normal of deviation 1 cut at 2 has deviation 0.8796.
  EXPECT_NEAR(deviation(TruncatedNormal(1)({100000}, DType::Float32)), 0.8796, 0.01);
}

TEST(Initializer, DrawsInTheDtypeAskedForWhichIsAFloats) {
  for (const char* name : {"normal", "uniform", "truncatednormal", "xavier_uniform",
                           "xavier_normal", "he_uniform", "he_normal", "ones"}) {
    for (DType dtype : {DType::Float16, DType::BFloat16, DType::Float32, DType::Float64}) {
      EXPECT_EQ(Initial(name).make({2, 3}, dtype, "weight").dtype(), dtype) << name;
    }
  }
  const Error refused = error_of([] { HeUniform()({2, 3}, DType::Int32); });
  EXPECT_EQ(refused.kind(), ErrorKind::Type);
  EXPECT_THAT(refused.what(), testing::HasSubstr("[HeUniform] dtype must be float16"));
}

TEST(Initializer, SameSeedSameBits) {
  const auto drawn = [] {
    set_seed(9);
    return Dense(5, 4).weight()->tensor().to_vector<float>();
  };
  EXPECT_EQ(drawn(), drawn());
  EXPECT_THROW(Initial("no_such"), Error);
}

}  // namespace
}  // namespace lamella::nn
