// Normalisation: values, gradients of every order, both memory orders, number of kernels.
#include "tests/launch_count.h"
#include "tests/ops/gradients.h"

namespace lamella::test {
namespace {

using testing_support::launches_of;

TEST(LayerNorm, HasMeanZeroAndVarianceOne) {
  const Tensor x = doubles({4, 33});
  const Tensor ones = doubles({33}, std::vector<double>(33, 1)),
               zeros = doubles({33}, std::vector<double>(33, 0));
  const Tensor y = ops::layer_norm(x, ones, zeros, -1, 0);
  for (double mean : ops::mean(y, {1}).to_vector<double>()) EXPECT_NEAR(mean, 0, 1e-12);
  for (double variance : ops::var(y, {1}).to_vector<double>()) EXPECT_NEAR(variance, 1, 1e-12);
}

TEST(LayerNorm, IsOneKernelForwardAndOneBackwardForX) {
  const Tensor x = ops::cast(doubles({64, 128}), DType::Float32);
  const Tensor weight = ops::cast(doubles({128}), DType::Float32),
               bias = ops::cast(doubles({128}, 2), DType::Float32);
  x.wait();
  weight.wait();
  bias.wait();
  EXPECT_EQ(launches_of([&] { ops::layer_norm(x, weight, bias).wait(); }), 1);
  EXPECT_EQ(launches_of([&] { ops::layer_norm_backward(x, weight, x, -1, 1e-5).wait(); }), 1);
}

TEST(LayerNorm, GradientsMatchFiniteDifferences) {
  const auto norm = [](const auto& o) { return ops::layer_norm(o[0], o[1], o[2]); };
  expect_gradients(norm, {doubles({3, 5}), doubles({5}, 2), doubles({5}, 3)});
  expect_second_gradients(norm, {doubles({2, 4}), doubles({4}, 2), doubles({4}, 3)}, 1e-4);
  expect_gradients([](const auto& o) { return ops::layer_norm(o[0], o[1], o[2], 1); },
                   {doubles({2, 3, 4}), doubles({3, 4}, 2), doubles({3, 4}, 3)});
  expect_gradients([](const auto& o) { return ops::rms_norm(o[0], o[1]); },
                   {doubles({3, 5}), doubles({5}, 2)});
  expect_gradients([](const auto& o) { return ops::group_norm(o[0], o[1], o[2], 2); },
                   {doubles({2, 4, 3}), doubles({4}, 2), doubles({4}, 3)});
}

TEST(LayerNorm, NamesWhatDoesNotFit) {
  expect_error(ErrorKind::Value, "[layer_norm] weight must have shape [5]",
               [] { ops::layer_norm(doubles({3, 5}), doubles({3}), doubles({5})); });
}

TEST(BatchNorm, GivesStatisticsOfEachChannel) {
  const Tensor x = doubles({4, 3, 2, 5});
  const auto results = ops::batch_norm(x, doubles({3}, std::vector<double>{1, 2, 3}),
                                       doubles({3}, std::vector<double>{0, 0, 1}), 0.0);
  expect_near(widened(results[1]), widened(ops::mean(x, {0, 2, 3})), 1e-12);
  expect_near(widened(results[2]), widened(ops::var(x, {0, 2, 3})), 1e-12);
  expect_near(widened(ops::mean(results[0], {0, 2, 3})), {0, 0, 1}, 1e-12);
  expect_near(widened(ops::std(results[0], {0, 2, 3})), {1, 2, 3}, 1e-12);
}

TEST(BatchNorm, KeepsItsDigitsFarFromZero) {
  const Tensor x = ops::cast(doubles({64, 2, 8}) + 1000.0, DType::Float32);
  const auto results = ops::batch_norm(x, floats({2}, {1, 1}), floats({2}, {0, 0}));
  expect_near(widened(results[2]), widened(ops::var(ops::cast(x, DType::Float64), {0, 2})), 1e-4);
}

TEST(BatchNorm, IsTheSameInBothMemoryOrders) {
  for (const Shape& shape : {Shape{4, 3, 5}, Shape{2, 3, 4, 5}, Shape{2, 3, 2, 3, 4}}) {
    const Tensor x = doubles(shape), weight = doubles({3}, 2), bias = doubles({3}, 3);
    const Tensor last = ops::with_layout(x, 1);
    const auto rows = ops::batch_norm(x, weight, bias),
               channels = ops::batch_norm(last, weight, bias);
    EXPECT_EQ(channels[0].type().layout, Layout::ChannelsLast);
    for (size_t i = 0; i < 3; ++i) expect_near(widened(rows[i]), widened(channels[i]), 1e-12);
    const auto slope = [&](const Tensor& at) {
      const Tensor wrt[] = {at};
      return grad(
          [&] { return ops::sum(ops::batch_norm(at, weight, bias)[0] * doubles(shape, 4)); },
          wrt)[0];
    };
    expect_near(widened(slope(x)), widened(slope(last)), 1e-12);
  }
}

TEST(BatchNorm, GradientsMatchFiniteDifferences) {
  const auto norm = [](size_t result) {
    return [result](const std::vector<Tensor>& o) {
      return ops::batch_norm(o[0], o[1], o[2])[result];
    };
  };
  const std::vector<Tensor> flat = {doubles({4, 3}), doubles({3}, 2), doubles({3}, 3)};
  const std::vector<Tensor> image = {doubles({2, 2, 2, 3}), doubles({2}, 2), doubles({2}, 3)};
  for (size_t result : {size_t{0}, size_t{1}, size_t{2}}) expect_gradients(norm(result), flat);
  expect_gradients(norm(0), image);
  expect_second_gradients(norm(0), flat, 1e-4);
  expect_gradients(
      [](const auto& o) {
        return ops::batch_norm_inference(o[0], o[1], o[2], o[3], ops::square(o[4]));
      },
      {doubles({4, 3}), doubles({3}, 2), doubles({3}, 3), doubles({3}, 4), doubles({3}, 5)});
}

TEST(BatchNorm, OfHalfPrecisionKeepsStatisticsInFloat32) {
  const Tensor x = ops::cast(doubles({8, 3}), DType::Float16);
  const auto results = ops::batch_norm(x, floats({3}, {1, 1, 1}), floats({3}, {0, 0, 0}));
  EXPECT_EQ(results[0].dtype(), DType::Float16);
  EXPECT_EQ(results[1].dtype(), DType::Float32);
  expect_near(widened(results[1]), widened(ops::mean(ops::cast(x, DType::Float64), {0})), 1e-6);
}

TEST(BatchNorm, ReadsItsOperandOnceForTheStatisticsAndOnceMore) {
  const Tensor x = ops::cast(ops::with_layout(doubles({8, 16, 5, 5}), 1), DType::Float32);
  const Tensor weight = ops::cast(doubles({16}), DType::Float32);
  x.wait();
  weight.wait();
  // Both moments, what follows from them for each channel, the result.
  EXPECT_LE(launches_of([&] { ops::batch_norm(x, weight, weight)[0].wait(); }), 3);
  EXPECT_LE(
      launches_of([&] { ops::batch_norm_backward(x, weight, weight, weight, x, 1e-5)[0].wait(); }),
      3);
}

TEST(BatchNorm, OfNothingIsNaN) {
  const auto results = ops::batch_norm(doubles({0, 3, 2}), doubles({3}, 1), doubles({3}, 1));
  for (double mean : results[1].to_vector<double>()) EXPECT_TRUE(std::isnan(mean));
}

}  // namespace
}  // namespace lamella::test
