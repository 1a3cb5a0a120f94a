// Programs of rows and of columns that run in turn on each block of rows: when they do, and that it
// changes no bit.
#include <cmath>

#include "tests/launch_count.h"
#include "tests/thread_count.h"
#include "tests/window_limits.h"
#include <gtest/gtest.h>

#include "lamella/ops/functions.h"
#include "lamella/ops/tensor_operators.h"
#include "lamella/transform/grad.h"

namespace lamella {
namespace {

using testing_support::launches_of;
using testing_support::ScopedWindowLimits;

constexpr int64_t kRows = 64 * 64 + 37, kColumns = 70;

Tensor waves(const Shape& shape) {
  std::vector<float> elements(static_cast<size_t>(element_count(shape).value()));
  for (size_t i = 0; i < elements.size(); ++i)
    elements[i] = std::sin(static_cast<float>(i) * 0.37F) * 3;
  return Tensor::from_vector<float>(shape, elements);
}

using Results = std::vector<std::vector<float>>;
using Function = std::function<std::vector<Tensor>()>;

Results results_of(const Function& function, int64_t window) {
  const ScopedWindowLimits limits({.fixed = window});
  Results results;
  const std::vector<Tensor> tensors = function();
  for (const Tensor& tensor : tensors) results.push_back(tensor.to_vector<float>());
  return results;
}

// Every operation by itself and all of them in one window.
void expect_same_bits(const Function& function) {
  const Results alone = results_of(function, 1), together = results_of(function, 0);
  for (size_t i = 0; i < alone.size(); ++i) EXPECT_EQ(alone[i], together[i]) << "result " << i;
}

// Steps run by blocks where there are enough for all threads.
class Blocks : public testing::Test {
  const testing_support::ScopedThreadCount threads_{2};
};

int64_t launches(const Function& function) {
  return launches_of([&] { (void)results_of(function, 0); });
}

TEST_F(Blocks, LayerNormWithItsGradientsIsOneLaunch) {
  const Tensor x = waves({kRows, kColumns}), scale = waves({kColumns}), shift = waves({kColumns});
  const Tensor cotangent = waves({kRows, kColumns});
  const Function step = [&] {
    const std::vector<Tensor> wrt = {x, scale, shift};
    const ValueAndGradients all = value_and_grad(
        [&] { return std::vector{ops::layer_norm(x, scale, shift)}; }, wrt, cotangent);
    std::vector<Tensor> results = all.values;
    results.insert(results.end(), all.gradients.begin(), all.gradients.end());
    return results;
  };
  EXPECT_EQ(launches(step), 1);
  expect_same_bits(step);
}

TEST_F(Blocks, ColumnsOfWhatTheRowsWroteAreSummedInTheSameLaunch) {
  const Tensor x = waves({kRows, kColumns});
  const Function sums = [&] {
    const Tensor y = ops::softmax(x);
    return std::vector{y, ops::sum(y, {0}), ops::max(x, {0})};
  };
  EXPECT_EQ(launches(sums), 1);
  expect_same_bits(sums);
}

TEST_F(Blocks, OtherRowsThanTheBlocksOwnWaitForTheEnd) {
  const Tensor x = waves({kRows, kColumns});
  for (const int64_t axis : {0, 1}) {
    const Function sums = [&] {
      const Tensor y = ops::softmax(x);
      return std::vector{y, ops::sum(ops::flip(y, {axis}) * x, {0})};
    };
    EXPECT_GE(launches(sums), 2) << "axis " << axis;
    expect_same_bits(sums);
  }
}

TEST_F(Blocks, TheRowsOfAnotherShapeWaitForTheEnd) {
  // As many elements in other rows.
  const Tensor x = waves({kRows, 2, kColumns});
  const Function sums = [&] {
    const Tensor y = ops::softmax(x);
    return std::vector{y, ops::sum(ops::reshape(y, Shape{kRows * kColumns, 2}), {0}),
                       ops::sum(ops::reshape(y, Shape{kRows, 2 * kColumns}), {0})};
  };
  expect_same_bits(sums);
}

TEST_F(Blocks, TheSumOfAllColumnsReadsWhatABlockMadeOfItsRows) {
  const Tensor x = waves({kRows, kColumns}), y = waves({kRows, kColumns});
  const Function sums = [&] {
    const Tensor largest = ops::max(x, {1}, true);
    return std::vector{largest, ops::sum((y - largest) * x, {0})};
  };
  EXPECT_EQ(launches(sums), 1);
  expect_same_bits(sums);
}

TEST_F(Blocks, TemporariesOfBothProgramsKeepToThemselves) {
  // The second sum's results lie where the first step's temporaries did, if it may.
  const Tensor x = waves({kRows, kColumns}), w = waves({kColumns});
  const Function sums = [&] {
    const Tensor first = ops::exp(x * 0.25);
    const Tensor y = ops::matmul(ops::softmax(first), ops::reshape(w, Shape{kColumns, 1}));
    const Tensor z = ops::softmax(y * x);
    const Tensor total = ops::sum(z * x, {0});
    return std::vector{ops::sum(z, {1}), ops::exp(total), total + w};
  };
  expect_same_bits(sums);
}

}  // namespace
}  // namespace lamella
