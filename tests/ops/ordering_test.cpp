// What orders elements agrees on NaN and on ties, in values, positions and gradients.
#include "tests/ops/gradients.h"

namespace lamella::test {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// x in every float dtype.
void for_each_float(const Shape& shape, const std::vector<double>& elements,
                    const std::function<void(const Tensor&)>& body) {
  for (DType dtype : {DType::Float16, DType::BFloat16, DType::Float32, DType::Float64}) {
    SCOPED_TRACE(name(dtype));
    body(ops::cast(doubles(shape, elements), dtype));
  }
}

// The gradient of the sum of f in x.
std::vector<float> slopes(const Tensor& x, const std::function<Tensor()>& f) {
  const std::vector<Tensor> at{x};
  return grad([&] { return ops::sum(f()); }, at)[0].to_vector<float>();
}

std::vector<int64_t> positions(const Tensor& x) {
  return x.to_vector<int64_t>();
}

TEST(Ordering, NaNIsTheLargestOfAll) {
  for_each_float({5}, {1, kNaN, 3, kNaN, -2}, [](const Tensor& x) {
    EXPECT_EQ(positions(ops::sort(x)[1]), (std::vector<int64_t>{4, 0, 2, 1, 3}));
    EXPECT_EQ(positions(ops::sort(x, -1, true)[1]), (std::vector<int64_t>{1, 3, 2, 0, 4}));
    EXPECT_EQ(positions(ops::argsort(x)), (std::vector<int64_t>{4, 0, 2, 1, 3}));
    EXPECT_EQ(positions(ops::topk(x, Shape{3})[1]), (std::vector<int64_t>{1, 3, 2}));
    EXPECT_EQ(positions(ops::topk(x, Shape{3}, -1, false)[1]), (std::vector<int64_t>{4, 0, 2}));
    EXPECT_EQ(ops::argmax(x).item(), 1);
    EXPECT_EQ(ops::median(x)[1].item(), 1);
    EXPECT_TRUE(std::isnan(ops::median(x)[0].item()));
    EXPECT_TRUE(std::isnan(ops::max(x).item()));
    EXPECT_EQ(positions(ops::cummax(x, 0)[1]), (std::vector<int64_t>{0, 1, 1, 3, 3}));
    EXPECT_EQ(ops::search_sorted(ops::sort(x)[0], x).to_vector<int64_t>(),
              (std::vector<int64_t>{1, 3, 2, 3, 0}));
  });
}

TEST(Ordering, NaNIsFoundByWhatLooksForTheSmallestToo) {
  for_each_float({4}, {1, kNaN, 3, kNaN}, [](const Tensor& x) {
    EXPECT_TRUE(std::isnan(ops::min(x).item()));
    EXPECT_EQ(ops::argmin(x).item(), 1);
    EXPECT_TRUE(std::isnan(ops::cast(ops::cummin(x, 0)[0], DType::Float64).to_vector<double>()[2]));
  });
}

TEST(Ordering, OfEqualElementsTheFirstComesFirst) {
  const Tensor x = floats({6}, {2, 1, 2, 0, 1, -0.0F});
  EXPECT_EQ(positions(ops::sort(x)[1]), (std::vector<int64_t>{3, 5, 1, 4, 0, 2}));
  EXPECT_EQ(positions(ops::sort(x, 0, true)[1]), (std::vector<int64_t>{0, 2, 1, 4, 3, 5}));
  EXPECT_EQ(positions(ops::topk(x, Shape{3})[1]), (std::vector<int64_t>{0, 2, 1}));
  EXPECT_EQ(ops::median(x)[1].item(), 1);
}

TEST(Ordering, GradientsGoWhereTheElementsCameFrom) {
  const Tensor x = floats({2, 5}, {1, 2, 6, 4, 5, 9, 5, 6, 7, 8});
  const auto of = [&](const std::function<Tensor()>& f) { return slopes(x, f); };
  EXPECT_EQ(of([&] { return ops::topk(x, Shape{2})[0]; }),
            (std::vector<float>{0, 0, 1, 0, 1, 1, 0, 0, 0, 1}));
  EXPECT_EQ(of([&] { return ops::median(x)[0]; }),
            (std::vector<float>{0, 0, 0, 1, 0, 0, 0, 0, 1, 0}));
  const Tensor weights = floats({5}, {1, 2, 3, 4, 5});
  EXPECT_EQ(of([&] { return ops::sort(x)[0] * weights; }),
            (std::vector<float>{1, 2, 5, 3, 4, 5, 1, 2, 3, 4}));
  EXPECT_EQ(of([&] { return ops::cummax(x, 1)[0]; }),
            (std::vector<float>{1, 1, 3, 0, 0, 5, 0, 0, 0, 0}));
}

TEST(Ordering, TiesGetTheGradientOnce) {
  const Tensor x = floats({4}, {3, 3, 3, 1});
  const auto of = [&](const std::function<Tensor()>& f) { return slopes(x, f); };
  EXPECT_EQ(of([&] { return ops::topk(x, Shape{2})[0]; }), (std::vector<float>{1, 1, 0, 0}));
  EXPECT_EQ(of([&] { return ops::median(x)[0]; }), (std::vector<float>{1, 0, 0, 0}));
  const Tensor single = floats({3}, {2, 2, 2});
  EXPECT_NEAR(slopes(single, [&] { return ops::max(single); })[0], 1.0 / 3, 1e-6);
}

TEST(Kinks, HaveFiniteGradients) {
  const Tensor zero = floats({2}, {0, 0});
  const auto of = [&](const std::function<Tensor()>& f) { return slopes(zero, f); };
  const std::vector<float> none{0, 0};
  EXPECT_EQ(of([&] { return ops::square(zero - floats({2}, {0, 0})); }), none);
  for (double order : {1.0, 2.0, 3.0, 0.5, HUGE_VAL}) {
    EXPECT_EQ(of([&] { return ops::norm(zero, order); }), none) << order;
  }
  EXPECT_EQ(of([&] { return ops::pow(zero, 2.0); }), none);
  EXPECT_EQ(of([&] { return ops::abs(zero); }), none);
  EXPECT_EQ(of([&] { return ops::cumprod(zero, 0); }), (std::vector<float>{1, 0}));
}

TEST(Ordering, IsCheckedAndNamed) {
  const Tensor x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_error(ErrorKind::Value, "[topk] k must be one number from 0 to 3, the size of axis 1",
               [&] { ops::topk(x, Shape{4}); });
  expect_error(ErrorKind::Value, "[sort]", [&] { ops::sort(x, 2); });
  expect_error(ErrorKind::Value, "[median] axis 0 has no elements",
               [&] { ops::median(floats({0, 2}, {}), 0); });
  expect_error(ErrorKind::Value, "[search_sorted] sequence must have 1 axis",
               [&] { ops::search_sorted(x, floats({3}, {1, 2, 3})); });
}

TEST(Cumulative, SecondGradientsExist) {
  expect_second_gradients([](const auto& o) { return ops::cumprod(o[0], 1); }, {doubles({2, 4})});
  expect_second_gradients([](const auto& o) { return ops::cumsum(o[0], 0); }, {doubles({3, 2})});
  expect_second_gradients([](const auto& o) { return ops::linear_recurrence(o[0], o[1], 0); },
                          {doubles({4}), doubles({4}, 2)});
  // A zero among the factors: nothing is divided by it.
  expect_gradients([](const auto& o) { return ops::cumprod(o[0], 0); },
                   {doubles({5}, {2, 0, 3, 0, 4})});
}

}  // namespace
}  // namespace lamella::test
