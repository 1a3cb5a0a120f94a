// Explanations: which launches, what is said of them, and that they leave no trace behind.
#include "lamella/profile/explanation.h"

#include "tests/errors.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lamella/ir/window.h"
#include "lamella/nn/activation.h"
#include "lamella/nn/container.h"
#include "lamella/nn/convolution.h"
#include "lamella/nn/dense.h"
#include "lamella/nn/pooling.h"
#include "lamella/nn/recurrent.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/tensor_operators.h"
#include "lamella/profile/recorder.h"

namespace lamella::profile {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Tensor numbers(const Shape& shape) {
  const auto count = static_cast<size_t>(element_count(shape).value());
  return Tensor::from_vector<float>(shape, std::vector<float>(count, 0.5F));
}

// A network of one convolution and two dense layers.
Ref<nn::SequentialCell> network() {
  return make_ref<nn::SequentialCell>(std::vector<Ref<nn::Cell>>{
      make_ref<nn::Conv2d>(1, 2, 3), make_ref<nn::Flatten>(), make_ref<nn::Dense>(32, 6),
      make_ref<nn::ReLU>(), make_ref<nn::Dense>(6, 4)});
}

std::vector<ExplainedLaunch> explain(const std::string& layer, int runs) {
  const auto net = network();
  const Tensor x = numbers({8, 1, 4, 4});
  Explainer explainer(layer);
  explainer.start();
  for (int i = 0; i < runs; ++i) (*net)(x).wait();
  explainer.stop();
  return explainer.launches();
}

TEST(Explanation, SaysOfAMatrixProductItsTilesItsWorkAndItsTraffic) {
  const std::vector<ExplainedLaunch> launches = explain("2", 3);
  ASSERT_EQ(launches.size(), 1u);
  const ExplainedLaunch& dense = launches[0];
  EXPECT_THAT(dense.layers, Contains("2"));
  EXPECT_EQ(dense.runs, 3);
  EXPECT_EQ(dense.flops, 2 * 8 * 32 * 6);
  EXPECT_EQ(dense.bytes, 4 * (8 * 32 + 32 * 6 + 6 + 8 * 6));
  ASSERT_EQ(dense.remarks.size(), 1u);
  EXPECT_THAT(dense.remarks[0], HasSubstr("matrix product of float32 [8,32] by [32,6]"));
  EXPECT_THAT(dense.remarks[0], HasSubstr("tiles of"));
  EXPECT_GT(dense.first_seconds, 0);
  EXPECT_GT(dense.later_seconds, 0);
}

TEST(Explanation, NamesTheLibrarysConvolution) {
  const std::vector<ExplainedLaunch> launches = explain("0", 1);
  std::string all;
  for (const ExplainedLaunch& launch : launches) {
    for (const std::string& remark : launch.remarks) all += remark;
  }
  EXPECT_THAT(all, HasSubstr("oneDNN:"));
  EXPECT_THAT(all, HasSubstr("convolution ("));
}

TEST(Explanation, OfAllLayersShowsTheTileProgramsAndKeepsTheNumberAskedFor) {
  const std::vector<ExplainedLaunch> launches = explain("", 2);
  ASSERT_GT(launches.size(), 2u);
  for (size_t i = 1; i < launches.size(); ++i)
    EXPECT_GE(launches[i - 1].total_seconds(), launches[i].total_seconds());
  const PeakRates peak = {.flops = 1e12, .bytes = 1e11};
  const std::string all = explanation(launches, peak, 100), first = explanation(launches, peak, 1);
  EXPECT_THAT(all, HasSubstr("program \""));
  EXPECT_THAT(all, Not(HasSubstr("that took less time")));
  EXPECT_THAT(first,
              HasSubstr(fmt::format("and {} launches that took less time", launches.size() - 1)));
}

TEST(Explanation, ALayerThatDoesNotRunIsNotShown) {
  EXPECT_TRUE(explain("7", 1).empty());
  EXPECT_TRUE(explain("2.weight", 1).empty());
  EXPECT_EQ(explanation({}, {}, 5), "Nothing ran.\n");
}

TEST(Explanation, BodiesOfLoopsAreLaunchesOfTheirOwn) {
  nn::LSTM lstm(3, 4);
  const Tensor x = numbers({6, 2, 3});
  Explainer explainer("");
  explainer.start();
  lstm.run(x).sequence.wait();
  explainer.stop();
  int64_t turns = 0;
  for (const ExplainedLaunch& launch : explainer.launches()) {
    turns = std::max(turns, launch.runs);
    EXPECT_LE(launch.remarks.size(), 2u);
  }
  EXPECT_EQ(turns, 6);
}

TEST(Explanation, AKernelOfOurOwnSaysOneThingOfItself) {
  const Tensor cotangent = ops::with_layout(numbers({16, 16, 10, 10}), 1);
  const Tensor weight = numbers({16, 6, 5, 5});
  Explainer explainer("");
  explainer.start();
  ops::with_layout(ops::convolution_backward_data(cotangent, weight, Shape{16, 6, 14, 14},
                                                  Axes{1, 1}, Axes{0, 0, 0, 0}, Axes{1, 1}, 1),
                   1)
      .wait();
  explainer.stop();
  size_t found = 0;
  for (const ExplainedLaunch& launch : explainer.launches()) {
    for (const std::string& remark : launch.remarks) found += remark.starts_with("own kernel");
    EXPECT_LE(launch.remarks.size(), 2u);
  }
  EXPECT_EQ(found, 1u);
}

TEST(Explanation, OneListensAtATime) {
  Explainer first(""), second("");
  first.start();
  EXPECT_THAT(message_of([&] { second.start(); }), HasSubstr("another explanation is running"));
  EXPECT_THAT(message_of([&] { start_recording(Memory::Ignored); }), HasSubstr("explanation"));
  first.stop();
  second.start();
  second.stop();
  start_recording(Memory::Ignored);
  EXPECT_THAT(message_of([&] { first.start(); }), HasSubstr("a profiler"));
  (void)stop_recording();
}

TEST(PeakRates, AreThoseOfAMachine) {
  const PeakRates peak = peak_rates();
  EXPECT_GT(peak.flops, 1e8);
  EXPECT_GT(peak.bytes, 1e8);
}

}  // namespace
}  // namespace lamella::profile
