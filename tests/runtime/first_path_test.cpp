// The first path through every layer: operations recorded, fused, compiled, run and read.
#include "tests/errors.h"
#include <gtest/gtest.h>

#include "lamella/ir/tensor.h"
#include "lamella/ir/window.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/tensor_operators.h"
#include "lamella/runtime/counters.h"

namespace lamella {
namespace {

Tensor floats(const Shape& shape, const std::vector<float>& elements) {
  return Tensor::from_vector<float>(shape, elements);
}

TEST(FirstPath, AddsMultipliesAndSums) {
  const Tensor x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor y = floats({3}, {10, 20, 30});
  const Tensor z = (x + y) * 2.0;
  EXPECT_EQ(z.to_vector<float>(), (std::vector<float>{22, 44, 66, 28, 50, 72}));
  EXPECT_EQ(ops::sum(z).item(), 282);
  EXPECT_EQ(ops::sum(z, {0}).to_vector<float>(), (std::vector<float>{50, 94, 138}));
  EXPECT_EQ(ops::sum(z, {1}).to_vector<float>(), (std::vector<float>{132, 150}));
}

TEST(FirstPath, MultipliesMatrices) {
  const Tensor x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor product = ops::matmul(x, ops::transpose(x));
  EXPECT_EQ(product.to_vector<float>(), (std::vector<float>{14, 32, 32, 77}));
}

TEST(FirstPath, AWindowOfNoLengthIsRefused) {
  Window& window = Window::of_thread();
  const WindowLimits before = window.limits();
  for (int64_t fixed : {int64_t{-1}, WindowLimits::kMostFixed + 1}) {
    EXPECT_EQ(error_of([&] { window.set_limits({.fixed = fixed}); }).kind(), ErrorKind::Value);
  }
  EXPECT_EQ(window.limits().fixed, before.fixed);
}

TEST(FirstPath, ASecondRunFindsItsGraph) {
  const Tensor x = floats({4}, {1, 2, 3, 4});
  const auto step = [&](double rate) { return (x * rate + 1.0).to_vector<float>(); };
  step(0.5);
  const int64_t graphs = counters().graphs;
  EXPECT_EQ(step(2), (std::vector<float>{3, 5, 7, 9}));
  EXPECT_EQ(counters().graphs, graphs);
}

TEST(FirstPath, WritesReplaceValuesAndOldReadersKeepTheirs) {
  const Tensor x = floats({2}, {1, 2});
  const Tensor alias = x;
  const Tensor doubled = x * 2.0;
  x.assign(x + 10.0);
  EXPECT_EQ(doubled.to_vector<float>(), (std::vector<float>{2, 4}));
  EXPECT_EQ(alias.to_vector<float>(), (std::vector<float>{11, 12}));
}

TEST(FirstPath, ShapeErrorsNameTheCallersLine) {
  const Tensor x = floats({2}, {1, 2}), y = floats({3}, {1, 2, 3});
  const int line = __LINE__ + 2;
  try {
    (void)(x + y);
    FAIL() << "adding shapes [2] and [3] must fail";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Value);
    EXPECT_EQ(error.location().line, line);
    EXPECT_NE(std::string(error.what()).find("first_path_test.cpp"), std::string::npos);
  }
}

}  // namespace
}  // namespace lamella
