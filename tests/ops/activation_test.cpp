// Activations: values at special points, gradients by finite differences.
#include <limits>

#include "tests/ops/gradients.h"

namespace lamella::test {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Activation, ReluAndClipKeepNaN) {
  const Tensor x = floats({4}, {kNaN, -kInfinity, -1, 7});
  const auto relu = ops::relu(x).to_vector<float>();
  EXPECT_TRUE(std::isnan(relu[0]));
  EXPECT_EQ(std::vector<float>(relu.begin() + 1, relu.end()), (std::vector<float>{0, 0, 7}));
  const auto clipped = ops::clip(x, -0.5, 6.0).to_vector<float>();
  EXPECT_TRUE(std::isnan(clipped[0]));
  EXPECT_EQ(clipped[1], -0.5F);
  EXPECT_EQ(clipped[3], 6);
}

TEST(Activation, MinimumAndMaximumGiveNaNInEitherOrder) {
  const Tensor x = floats({2}, {kNaN, 1}), y = floats({2}, {1, kNaN});
  for (const Tensor& z : {ops::minimum(x, y), ops::maximum(x, y)}) {
    for (float element : z.to_vector<float>()) EXPECT_TRUE(std::isnan(element));
  }
}

TEST(Activation, ClipBoundsMakeNoNewGraph) {
  const Tensor x = floats({3}, {-2, 0, 2});
  EXPECT_EQ(ops::clip(x, -1.0, 1.0).to_vector<float>(), (std::vector<float>{-1, 0, 1}));
  EXPECT_EQ(ops::clip(x, 0.5, 1.5).to_vector<float>(), (std::vector<float>{0.5F, 0.5F, 1.5F}));
  const Tensor integers = Tensor::from_vector<int32_t>({3}, {-5, 0, 5});
  EXPECT_EQ(ops::clip(integers, -1, 1).to_vector<int32_t>(), (std::vector<int32_t>{-1, 0, 1}));
}

TEST(Activation, GeluKeepsItsDigitsFarBelowZero) {
  const Tensor x = doubles({4}, std::vector<double>{-6, -1, 0, 3});
  const auto gelu = ops::gelu(x).to_vector<double>();
  for (size_t i = 0; i < 4; ++i) {
    const double at = std::vector<double>{-6, -1, 0, 3}[i];
    const double expected = 0.5 * at * std::erfc(-at / std::sqrt(2.0));
    EXPECT_NEAR(gelu[i], expected, 1e-13 * std::abs(expected));
  }
  const auto form = ops::gelu(x, true).to_vector<double>();
  for (size_t i = 0; i < 4; ++i) {
    const double at = std::vector<double>{-6, -1, 0, 3}[i];
    const double inner = std::sqrt(2 / M_PI) * (at + 0.044715 * at * at * at);
    EXPECT_NEAR(form[i], 0.5 * at * (1 + std::tanh(inner)), 1e-9);
  }
}

TEST(Activation, PowersOfTwoAreExactInFloat64) {
  const Tensor x = doubles({1}, std::vector<double>{10});
  EXPECT_EQ(ops::exp2(x).item(), 1024);
}

TEST(Activation, GradientsMatchFiniteDifferences) {
  const Tensor x = doubles({3, 5});
  using F = Tensor (*)(const Operand&);
  for (F f : std::initializer_list<F>{ops::relu, ops::relu6, ops::selu, ops::silu, ops::hardsigmoid,
                                      ops::hardswish, ops::mish, ops::logsigmoid, ops::softsign,
                                      ops::tanhshrink, ops::erfc, ops::asinh}) {
    expect_gradients([f](const auto& o) { return f(o[0]); }, {x});
  }
  for (bool form : {false, true}) {
    expect_gradients([form](const auto& o) { return ops::gelu(o[0], form); }, {x});
    expect_second_gradients([form](const auto& o) { return ops::gelu(o[0], form); }, {x}, 1e-4);
  }
  expect_gradients([](const auto& o) { return ops::leaky_relu(o[0], 0.2); }, {x});
  expect_gradients([](const auto& o) { return ops::elu(o[0], 0.7); }, {x});
  expect_gradients([](const auto& o) { return ops::celu(o[0], 0.7); }, {x});
  expect_gradients([](const auto& o) { return ops::softshrink(o[0], 0.03); }, {x});
  expect_gradients([](const auto& o) { return ops::prelu(o[0], o[1]); }, {x, doubles({5}, 3)});
  expect_gradients([](const auto& o) { return ops::glu(o[0], 0); }, {doubles({4, 3})});
  expect_gradients(
      [](const auto& o) { return ops::clip(o[0], o[1], o[2]); },
      {x, doubles({5}, std::vector<double>(5, -0.51)), doubles({1}, std::vector<double>{0.52})});
}

TEST(Activation, GradientsOfExponentialsStayFiniteFarAway) {
  const Tensor x = floats({4}, {-1000, -100, 100, 1000});
  const Tensor wrt[] = {x};
  const auto check = [&](const std::function<Tensor()>& f, const char* name) {
    for (float g : grad(f, wrt)[0].to_vector<float>()) EXPECT_TRUE(std::isfinite(g)) << name;
  };
  check([&] { return ops::sum(ops::elu(x, 1.0)); }, "elu");
  check([&] { return ops::sum(ops::selu(x)); }, "selu");
  check([&] { return ops::sum(ops::gelu(x)); }, "gelu");
  check([&] { return ops::sum(ops::gelu(x, true)); }, "gelu, tanh form");
  check([&] { return ops::sum(ops::silu(x)); }, "silu");
  check([&] { return ops::sum(ops::mish(x)); }, "mish");
  check([&] { return ops::sum(ops::logsigmoid(x)); }, "logsigmoid");
}

}  // namespace
}  // namespace lamella::test
