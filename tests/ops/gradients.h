// Gradients against central differences in float64.
#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "lamella/base/philox.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/tensor_operators.h"
#include "lamella/transform/grad.h"

namespace lamella::test {

// Reproducible numbers in (-1.5, 1.5), none within 0.05 of 0 and no two alike.
inline std::vector<double> numbers(int64_t count, uint64_t seed = 1) {
  std::vector<double> made;
  for (int64_t i = 0; i < count; ++i) {
    const auto words = philox_at(seed, 0, static_cast<uint64_t>(i));
    const double magnitude = 0.05 + 1.45 * uniform_from_bits(words[0]);
    made.push_back(words[1] & 1 ? magnitude : -magnitude);
  }
  return made;
}

inline Tensor doubles(const Shape& shape, uint64_t seed = 1) {
  return Tensor::from_vector<double>(shape, numbers(element_count(shape).value(), seed));
}

inline Tensor doubles(const Shape& shape, const std::vector<double>& elements) {
  return Tensor::from_vector<double>(shape, elements);
}
inline Tensor floats(const Shape& shape, const std::vector<float>& elements) {
  return Tensor::from_vector<float>(shape, elements);
}
inline Tensor integers(const Shape& shape, const std::vector<int64_t>& elements) {
  return Tensor::from_vector<int64_t>(shape, elements);
}

using Function = std::function<Tensor(const std::vector<Tensor>&)>;

// Checks the gradient of `function` in each of `operands` (float64), every result element weighted
// differently.
inline void expect_gradients(const Function& function, const std::vector<Tensor>& operands,
                             double tolerance = 1e-6) {
  const Shape shape = function(operands).shape();
  const Tensor weights = doubles(shape, 99);
  const auto scalar = [&](const std::vector<Tensor>& at) {
    return ops::sum(function(at) * weights);
  };
  const auto gradients = grad([&] { return scalar(operands); }, operands);
  for (size_t o = 0; o < operands.size(); ++o) {
    const auto analytic = gradients[o].to_vector<double>();
    const auto origin = operands[o].to_vector<double>();
    ASSERT_EQ(analytic.size(), origin.size());
    for (size_t i = 0; i < origin.size(); ++i) {
      const double step = 1e-5;
      std::vector<Tensor> at = operands;
      auto moved = origin;
      moved[i] = origin[i] + step;
      at[o] = doubles(operands[o].shape(), moved);
      const double above = scalar(at).item();
      moved[i] = origin[i] - step;
      at[o] = doubles(operands[o].shape(), moved);
      const double below = scalar(at).item();
      const double expected = (above - below) / (2 * step);
      EXPECT_NEAR(analytic[i], expected, tolerance * std::max(1.0, std::abs(expected)))
          << "operand " << o << " element " << i;
    }
  }
}

// The gradient itself is a function with gradients.
inline void expect_second_gradients(const Function& function, const std::vector<Tensor>& operands,
                                    double tolerance = 1e-5) {
  expect_gradients(
      [&](const std::vector<Tensor>& at) {
        const auto first = grad([&] { return ops::sum(ops::square(function(at))); }, at);
        Tensor total = ops::sum(ops::square(first[0]));
        for (size_t i = 1; i < first.size(); ++i) total = total + ops::sum(ops::square(first[i]));
        return total;
      },
      operands, tolerance);
}

// The error a call raises: its kind and whether the message holds `part`.
template <typename Call>
void expect_error(ErrorKind kind, const std::string& part, Call&& call) {
  try {
    call();
    FAIL() << "no error; expected one that says " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(error.message().find(part), std::string::npos) << error.message();
  }
}

inline void expect_near(const std::vector<double>& given, const std::vector<double>& expected,
                        double tolerance) {
  ASSERT_EQ(given.size(), expected.size());
  for (size_t i = 0; i < given.size(); ++i) EXPECT_NEAR(given[i], expected[i], tolerance) << i;
}
inline std::vector<double> widened(const Tensor& x) {
  return ops::cast(x, DType::Float64).to_vector<double>();
}

}  // namespace lamella::test
