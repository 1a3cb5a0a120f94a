// Softmax, its relatives and the losses over classes.
#include <limits>

#include "tests/launch_count.h"
#include "tests/ops/gradients.h"

namespace lamella::test {
namespace {

using testing_support::launches_of;

TEST(Softmax, MatchesItsFormulaAtEveryRowLength) {
  for (int64_t n : {1, 2, 15, 16, 17, 63, 64, 65, 1023, 1024, 1025}) {
    const Tensor x = ops::cast(doubles({3, n}), DType::Float32);
    const auto given = ops::softmax(x).to_vector<float>();
    const auto elements = x.to_vector<float>();
    for (size_t row = 0; row < 3; ++row) {
      double sum = 0;
      for (size_t i = 0; i < static_cast<size_t>(n); ++i)
        sum += std::exp(elements[row * static_cast<size_t>(n) + i]);
      for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
        const size_t at = row * static_cast<size_t>(n) + i;
        EXPECT_NEAR(given[at], std::exp(elements[at]) / sum, 2e-6) << n;
      }
    }
  }
}

TEST(Softmax, OfLargeNumbersDoesNotOverflow) {
  const Tensor x = floats({1, 3}, {1000, 1000, -1000});
  EXPECT_EQ(ops::softmax(x).to_vector<float>(), (std::vector<float>{0.5, 0.5, 0}));
  const auto logs = ops::log_softmax(x).to_vector<float>();
  EXPECT_NEAR(logs[0], -std::log(2.0), 1e-6);
  EXPECT_NEAR(logs[2], -2000 - std::log(2.0), 1e-3);
}

TEST(Softmax, IsOneKernelEachWay) {
  const Tensor x = ops::cast(doubles({64, 100}), DType::Float32);
  x.wait();
  EXPECT_EQ(launches_of([&] { ops::softmax(x).wait(); }), 1);
  EXPECT_EQ(launches_of([&] { ops::log_softmax(x).wait(); }), 1);
  EXPECT_EQ(launches_of([&] { ops::softmax_backward(x, x).wait(); }), 1);
  EXPECT_EQ(launches_of([&] { ops::log_softmax_backward(x, x).wait(); }), 1);
}

TEST(Softmax, ExponentialsOverTwoAxesSumToOne) {
  const Tensor x = Tensor::from_vector<float>({5, 1, 32, 32}, std::vector<float>(5 * 1024, 1));
  const Tensor powers = ops::exp(x);
  const Tensor shares = powers / ops::sum(powers, {2, 3}, true);
  for (float share : shares.to_vector<float>()) EXPECT_NEAR(share, 1.0 / 1024, 1e-9);
}

TEST(Softmax, DoesNotDependOnTheBatch) {
  const Tensor batch = ops::cast(doubles({64, 37}), DType::Float32);
  const Tensor one = ops::narrow(batch, 5, 0, {1});
  const auto alone = ops::softmax(one).to_vector<float>();
  const auto together = ops::softmax(batch).to_vector<float>();
  for (size_t i = 0; i < 37; ++i) EXPECT_EQ(alone[i], together[5 * 37 + i]);
}

TEST(Softmax, GradientsMatchFiniteDifferences) {
  const Tensor x = doubles({3, 5});
  for (int64_t axis : {0, 1}) {
    expect_gradients([axis](const auto& o) { return ops::softmax(o[0], axis); }, {x});
    expect_gradients([axis](const auto& o) { return ops::log_softmax(o[0], axis); }, {x});
    expect_gradients([axis](const auto& o) { return ops::logsumexp(o[0], {axis}); }, {x});
  }
  expect_second_gradients([](const auto& o) { return ops::softmax(o[0]); }, {x});
  expect_second_gradients([](const auto& o) { return ops::log_softmax(o[0]); }, {x});
  expect_gradients([](const auto& o) { return ops::softmax(o[0], 1); }, {doubles({2, 3, 4})});
}

// The definition, in double.
double cross_entropy(const std::vector<double>& row, size_t label) {
  double sum = 0;
  for (double x : row) sum += std::exp(x);
  return std::log(sum) - row[label];
}

TEST(CrossEntropy, PicksTheLabelsAndLeavesOutTheIgnored) {
  const Tensor logits = doubles({3, 4});
  const auto x = numbers(12);
  const auto row = [&](size_t i) {
    return std::vector<double>(x.begin() + static_cast<long>(4 * i),
                               x.begin() + static_cast<long>(4 * i + 4));
  };
  const double first = cross_entropy(row(0), 2), third = cross_entropy(row(2), 0);
  const Tensor labels = integers({3}, {2, -100, 0});
  EXPECT_NEAR(ops::cross_entropy(logits, labels).item(), (first + third) / 2, 1e-12);
  const auto each = ops::cross_entropy(logits, labels, {}, 1, -100, 0, "none").to_vector<double>();
  expect_near(each, {first, 0, third}, 1e-12);
  const Tensor weight = doubles({4}, std::vector<double>{3, 1, 0.5, 1});
  EXPECT_NEAR(ops::cross_entropy(logits, labels, weight).item(), (0.5 * first + 3 * third) / 3.5,
              1e-12);
  EXPECT_NEAR(ops::cross_entropy(logits, labels, weight, 1, -100, 0, "sum").item(),
              0.5 * first + 3 * third, 1e-12);
}

TEST(CrossEntropy, RefusesLabelsOutOfRange) {
  const Tensor logits = doubles({2, 4});
  for (int64_t bad : {int64_t{-10000}, int64_t{4}, int64_t{-1}}) {
    expect_error(
        ErrorKind::Index,
        "[cross_entropy] label " + std::to_string(bad) + " is out of range for axis 1 of size 4",
        [&] { ops::cross_entropy(logits, integers({2}, {1, bad})).wait(); });
  }
  expect_error(ErrorKind::Value, "[cross_entropy] labels must have shape [2]",
               [&] { ops::cross_entropy(logits, integers({3}, {1, 1, 1})); });
  expect_error(ErrorKind::Value, "reduction must be", [&] {
    ops::cross_entropy(logits, integers({2}, {1, 1}), {}, 1, -100, 0, "average");
  });
}

TEST(CrossEntropy, GradientsMatchFiniteDifferences) {
  const Tensor labels = integers({3}, {2, -100, 0}),
               weight = doubles({4}, std::vector<double>{3, 1, 0.5, 1});
  for (const char* reduction : {"mean", "sum", "none"}) {
    for (double smoothing : {0.0, 0.1}) {
      expect_gradients(
          [&](const auto& o) {
            return ops::cross_entropy(o[0], labels, o[1], 1, -100, smoothing, reduction);
          },
          {doubles({3, 4}), weight});
    }
  }
  const Tensor image_labels = integers({2, 3}, {0, 1, 2, 3, 3, 1});
  expect_gradients([&](const auto& o) { return ops::cross_entropy(o[0], image_labels); },
                   {doubles({2, 4, 3})});
  expect_gradients([&](const auto& o) { return ops::nll_loss(o[0], labels, o[1]); },
                   {doubles({3, 4}), weight});
  expect_gradients(
      [](const auto& o) { return ops::cross_entropy_with_probabilities(o[0], o[1], o[2], 1, 0.1); },
      {doubles({3, 4}), doubles({3, 4}, 5), weight});
}

TEST(CrossEntropy, TakesFewKernels) {
  const Tensor logits = ops::cast(doubles({128, 100}), DType::Float32);
  const Tensor labels = integers({128}, std::vector<int64_t>(128, 7));
  logits.wait();
  // Checking the labels, one row program, the sum.
  EXPECT_LE(launches_of([&] { ops::cross_entropy(logits, labels).wait(); }), 4);
  const Tensor wrt[] = {logits};
  EXPECT_LE(launches_of([&] {
              const auto both = value_and_grad(
                  [&] { return std::vector{ops::cross_entropy(logits, labels)}; }, wrt);
              both.gradients[0].wait();
            }),
            6);
}

TEST(Losses, GradientsMatchFiniteDifferences) {
  const Tensor x = doubles({3, 4}), y = doubles({3, 4}, 7);
  for (const char* reduction : {"mean", "none"}) {
    expect_gradients([&](const auto& o) { return ops::mse_loss(o[0], o[1], reduction); }, {x, y});
    expect_gradients([&](const auto& o) { return ops::l1_loss(o[0], o[1], reduction); }, {x, y});
    expect_gradients([&](const auto& o) { return ops::smooth_l1_loss(o[0], o[1], 0.5, reduction); },
                     {x, y});
    expect_gradients([&](const auto& o) { return ops::huber_loss(o[0], o[1], 0.5, reduction); },
                     {x, y});
    expect_gradients(
        [&](const auto& o) {
          return ops::binary_cross_entropy_with_logits(o[0], o[1], o[2], o[3], reduction);
        },
        {x, y, doubles({4}, 8), doubles({4}, 9)});
    expect_gradients(
        [&](const auto& o) {
          return ops::binary_cross_entropy(ops::sigmoid(o[0]), o[1], 1.0, reduction);
        },
        {x, y});
  }
}

TEST(Losses, AMeanSquaredErrorAtEqualOperandsHasGradientZero) {
  const Tensor a = floats({2}, {0, 0}), b = floats({2}, {0, 0});
  const Tensor wrt[] = {a};
  EXPECT_EQ(grad([&] { return ops::mse_loss(a, b, "sum"); }, wrt)[0].to_vector<float>(),
            (std::vector<float>{0, 0}));
}

}  // namespace
}  // namespace lamella::test
