// Random programs give the same bits wherever the window is cut, alone and fused, and for one
// thread and two.
#include <cmath>
#include <cstring>
#include <random>

#include "tests/thread_count.h"
#include "tests/window_limits.h"
#include <gtest/gtest.h>

#include "lamella/base/parallel.h"
#include "lamella/ir/tensor.h"
#include "lamella/ir/window.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/tensor_operators.h"
#include "lamella/transform/grad.h"

namespace lamella {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes bytes_of(const Tensor& tensor) {
  const Buffer buffer = tensor.data();
  const auto* first = static_cast<const uint8_t*>(buffer.data());
  return Bytes(first, first + element_count(tensor.shape()).value() * size_of(tensor.dtype()));
}

// What a program computes with: few rows, or so many that for two threads programs run by blocks.
struct Kind {
  DType dtype;
  int64_t rows;
};

// One random program over tensors of a few shapes that broadcast to each other.
class Program {
 public:
  Program(uint32_t seed, Kind kind) : random_(seed), kind_(kind) {}

  std::vector<Tensor> run(int64_t window, bool read_now_and_then) {
    const testing_support::ScopedWindowLimits limits({.fixed = window});
    std::mt19937 reads(99);
    std::vector<Tensor> values;
    const Dim rows = kind_.rows;
    for (const Shape& shape : {Shape{rows, 67}, Shape{67}, Shape{rows, 1}, Shape{rows, 67}}) {
      std::vector<float> elements;
      const int64_t count = element_count(shape).value();
      for (int64_t i = 0; i < count; ++i) {
        elements.push_back(std::uniform_real_distribution<float>(-2, 2)(random_));
      }
      values.push_back(ops::cast(Tensor::from_vector<float>(shape, elements), kind_.dtype));
    }
    for (int step = 0; step < 40; ++step) {
      values.push_back(next(values));
      if (read_now_and_then && reads() % 9 == 0) (void)bytes_of(values[reads() % values.size()]);
    }
    return values;
  }

 private:
  Tensor pick(const std::vector<Tensor>& values) {
    // Recent values more often: long chains are what fuses.
    const size_t recent = random_() % 3 == 0 ? values.size() : std::min<size_t>(values.size(), 6);
    return values[values.size() - 1 - random_() % recent];
  }

  Tensor next(const std::vector<Tensor>& values) {
    const Tensor x = pick(values);
    switch (random_() % 16) {
      case 0:
        return x + pick(values);
      case 1:
        return x * pick(values);
      case 2:
        return ops::tanh(x) - pick(values);
      case 3:
        return ops::exp(-ops::abs(x));
      case 4:
        return x * 0.75 + 0.125;
      case 5:
        return ops::sigmoid(x);
      case 6:
        return ops::where(ops::greater(x, 0), x, pick(values));
      case 7:
        return ops::maximum(x, pick(values));
      case 8:
        return ops::broadcast_to(ops::mean(x, {-1}, true), x.shape());
      case 9:
        return ops::sum(x, {-1}, true);
      case 10:
        return x.rank() == 2 ? ops::sum(x, {0}) : x * x;
      case 11:
        return ops::max(x, {-1}, true) - x;
      case 12:
        return ops::tanh(ops::transpose(ops::transpose(x) * 2.0));
      case 13:
        return ops::reshape(ops::reshape(x, Shape{-1}) * 0.5, x.shape());
      case 14:
        return x - ops::mean(x);
      default: {
        if (x.rank() != 2 || !x.shape()[1].is(67)) return x + 1.0;
        const Tensor products = ops::matmul(x, ops::transpose(x)) * 0.1;
        return ops::tanh(ops::mean(products, {1}, true)) + x;
      }
    }
  }

  std::mt19937 random_;
  Kind kind_;
};

class RandomPrograms : public testing::TestWithParam<Kind> {
  const testing_support::ScopedThreadCount threads_{2};
};

TEST_P(RandomPrograms, GiveTheSameBitsForEveryWindow) {
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    std::vector<Bytes> expected;
    for (const Tensor& value : Program(seed, GetParam()).run(1, false))
      expected.push_back(bytes_of(value));
    for (const int64_t window : {7, 64, 0}) {
      for (const bool reads : {false, true}) {
        const std::vector<Tensor> values = Program(seed, GetParam()).run(window, reads);
        for (size_t i = 0; i < values.size(); ++i) {
          ASSERT_EQ(bytes_of(values[i]), expected[i])
              << "seed " << seed << " window " << window << " reads " << reads << " value " << i;
        }
      }
    }
  }
}

TEST_P(RandomPrograms, OnlyTheLastValueKept) {
  for (uint32_t seed = 100; seed <= 115; ++seed) {
    const Bytes expected = bytes_of(Program(seed, GetParam()).run(1, false).back());
    EXPECT_EQ(bytes_of(Program(seed, GetParam()).run(0, false).back()), expected)
        << "seed " << seed;
  }
}

// Copies of one kernel whose temporaries take turns in the arena must not run side by side.
TEST(Launches, OfOneKernelKeepToTheArenasTurns) {
  std::vector<double> x(180), y(240);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i) * 0.01 - 1;
  for (size_t i = 0; i < y.size(); ++i) y[i] = std::cos(static_cast<double>(i));
  const auto strided = [](const Tensor& tensor) {
    return ops::narrow(ops::repeat_interleave(tensor, 2, -1), int64_t{0}, -1,
                       Shape{tensor.size(-1)}, 2);
  };
  const auto product = [&](bool views) {
    // Made anew each time: memory that nobody else holds is donated.
    const auto operand = [&](const Shape& shape, const std::vector<double>& elements) {
      const Tensor tensor = Tensor::from_vector<double>(shape, elements);
      return views ? strided(tensor) : tensor;
    };
    return bytes_of(ops::convolution_backward_weights(operand({2, 3, 6, 5}, x),
                                                      operand({2, 4, 6, 5}, y), Shape{4, 3, 3, 3},
                                                      Axes{1, 1}, Axes{1, 1, 1, 1}, Axes{1, 1}, 1));
  };
  const Bytes expected = product(false);
  for (int i = 0; i < 50; ++i) ASSERT_EQ(product(true), expected) << "turn " << i;
}

INSTANTIATE_TEST_SUITE_P(Kinds, RandomPrograms,
                         testing::Values(Kind{DType::Float32, 5}, Kind{DType::BFloat16, 5},
                                         Kind{DType::Float32, 300}),
                         [](const auto& instance) {
                           return fmt::format("{}_{}_rows", name(instance.param.dtype),
                                              instance.param.rows);
                         });

}  // namespace
}  // namespace lamella
