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

// Where a function goes far to the left and to the right, with its slope.
struct Limits {
  const char* name;
  Tensor (*function)(const Tensor& x);
  double left, right, left_slope, right_slope;
};

constexpr double kForever = std::numeric_limits<double>::infinity();

const Limits kLimits[] = {
    {"relu", [](const Tensor& x) { return ops::relu(x); }, 0, kForever, 0, 1},
    {"relu6", [](const Tensor& x) { return ops::relu6(x); }, 0, 6, 0, 0},
    {"leaky_relu", [](const Tensor& x) { return ops::leaky_relu(x, 0.5); }, -kForever, kForever,
     0.5, 1},
    {"elu", [](const Tensor& x) { return ops::elu(x, 2.0); }, -2, kForever, 0, 1},
    {"celu", [](const Tensor& x) { return ops::celu(x, 2.0); }, -2, kForever, 0, 1},
    {"selu", [](const Tensor& x) { return ops::selu(x); }, -1.7580993408473766, kForever, 0,
     1.0507009873554805},
    {"gelu", [](const Tensor& x) { return ops::gelu(x); }, 0, kForever, 0, 1},
    {"gelu, tanh form", [](const Tensor& x) { return ops::gelu(x, true); }, 0, kForever, 0, 1},
    {"silu", [](const Tensor& x) { return ops::silu(x); }, 0, kForever, 0, 1},
    {"mish", [](const Tensor& x) { return ops::mish(x); }, 0, kForever, 0, 1},
    {"hardswish", [](const Tensor& x) { return ops::hardswish(x); }, 0, kForever, 0, 1},
    {"hardsigmoid", [](const Tensor& x) { return ops::hardsigmoid(x); }, 0, 1, 0, 0},
    {"sigmoid", [](const Tensor& x) { return ops::sigmoid(x); }, 0, 1, 0, 0},
    {"logsigmoid", [](const Tensor& x) { return ops::logsigmoid(x); }, -kForever, 0, 1, 0},
    {"softplus", [](const Tensor& x) { return ops::softplus(x); }, 0, kForever, 0, 1},
    {"softsign", [](const Tensor& x) { return ops::softsign(x); }, -1, 1, 0, 0},
    {"tanh", [](const Tensor& x) { return ops::tanh(x); }, -1, 1, 0, 0},
    {"tanhshrink", [](const Tensor& x) { return ops::tanhshrink(x); }, -kForever, kForever, 1, 1},
    {"hardshrink", [](const Tensor& x) { return ops::hardshrink(x, 0.5); }, -kForever, kForever, 1,
     1},
    {"softshrink", [](const Tensor& x) { return ops::softshrink(x, 0.5); }, -kForever, kForever, 1,
     1},
    {"threshold", [](const Tensor& x) { return ops::threshold(x, 0.5, 3.0); }, 3, kForever, 0, 1},
    {"erf", [](const Tensor& x) { return ops::erf(x); }, -1, 1, 0, 0},
    {"erfc", [](const Tensor& x) { return ops::erfc(x); }, 2, 0, 0, 0},
    {"gaussian", [](const Tensor& x) { return ops::gaussian(x); }, 0, 0, 0, 0},
};

template <typename T>
void expect_limits(const Limits& each, const Tensor& ends) {
  SCOPED_TRACE(each.name);
  const auto near = [](T actual, double expected) {
    EXPECT_TRUE(actual == static_cast<T>(expected) || std::abs(actual - expected) < 1e-6)
        << actual << ", not " << expected;
  };
  const Tensor wrt[] = {ends};
  const auto slope = [&] { return grad([&] { return ops::sum(each.function(ends)); }, wrt)[0]; };
  const auto value = each.function(ends).template to_vector<T>();
  near(value[0], each.left);
  near(value[1], each.right);
  const auto first = slope().template to_vector<T>();
  near(first[0], each.left_slope);
  near(first[1], each.right_slope);
  for (T second : grad([&] { return ops::sum(slope()); }, wrt)[0].template to_vector<T>()) {
    near(second, 0);
  }
}

TEST(Activation, AtInfinityValuesAndSlopesAreTheLimits) {
  for (const Limits& each : kLimits) {
    expect_limits<float>(each, floats({2}, {-kInfinity, kInfinity}));
    expect_limits<double>(each, doubles({2}, std::vector<double>{-kForever, kForever}));
  }
}

TEST(Activation, NaNStaysNaN) {
  const Tensor x = floats({1}, {kNaN});
  for (const Limits& each : kLimits) {
    EXPECT_TRUE(std::isnan(each.function(x).item())) << each.name;
  }
}

TEST(Activation, ALearntSlopeBelowZeroGetsNothingFromAnInfiniteElementAbove) {
  const Tensor x = floats({2}, {kInfinity, -3}), slope = floats({1}, {0.25F});
  const Tensor wrt[] = {slope};
  EXPECT_EQ(grad([&] { return ops::sum(ops::prelu(x, slope)); }, wrt)[0].item(), -3);
  EXPECT_EQ(grad([&] { return ops::sum(ops::leaky_relu(x, slope)); }, wrt)[0].item(), -3);
}

}  // namespace
}  // namespace lamella::test
