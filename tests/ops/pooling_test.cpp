// Pooling: edges, both memory orders, gradients.
#include <numeric>

#include "tests/ops/gradients.h"

namespace lamella::test {
namespace {

Tensor counted(const Shape& shape) {
  std::vector<float> elements(static_cast<size_t>(element_count(shape).value()));
  std::iota(elements.begin(), elements.end(), 1.0F);
  return Tensor::from_vector<float>(shape, elements);
}

TEST(Pooling, AveragesAtTheEdgesCountPaddingButNotWhatCeilAdds) {
  const Tensor y = ops::avg_pool(counted({1, 1, 4, 4}), {3, 3}, {2, 2}, {1, 1, 1, 1}, true, true);
  expect_near(widened(y), {1.5555556, 3.3333333, 2, 6.3333333, 11, 6, 4.5, 7.5, 4}, 1e-6);
}

TEST(Pooling, MaximaGoToTheFirstAndKeepNaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = floats({1, 1, 2, 4}, {1, 1, 2, nan, 0, 1, 3, 3});
  const Tensor y = ops::max_pool(x, {2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1});
  const auto values = y.to_vector<float>();
  EXPECT_EQ(values[0], 1);
  EXPECT_TRUE(std::isnan(values[1]));
  const Tensor wrt[] = {x};
  const auto g =
      grad([&] { return ops::sum(ops::max_pool(x, {2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1})); }, wrt)[0]
          .to_vector<float>();
  EXPECT_EQ(g, (std::vector<float>{1, 0, 0, 1, 0, 0, 0, 0}));
}

TEST(Pooling, LiesAsItsOperandAndIsTheSameInBothOrders) {
  const Tensor x = counted({2, 3, 6, 5}), last = ops::with_layout(x, 1);
  const Tensor a = ops::max_pool(x, {3, 2}, {2, 2}, {1, 1, 0, 1}, {1, 1}),
               b = ops::max_pool(last, {3, 2}, {2, 2}, {1, 1, 0, 1}, {1, 1});
  EXPECT_EQ(a.type().layout, Layout::RowMajor);
  EXPECT_EQ(b.type().layout, Layout::ChannelsLast);
  EXPECT_EQ(a.to_vector<float>(), b.to_vector<float>());
  EXPECT_EQ(ops::avg_pool(x, {3, 2}, {2, 2}, {1, 1, 0, 1}).to_vector<float>(),
            ops::avg_pool(last, {3, 2}, {2, 2}, {1, 1, 0, 1}).to_vector<float>());
  EXPECT_EQ(ops::global_avg_pool(x).to_vector<float>(),
            ops::global_avg_pool(last).to_vector<float>());
}

TEST(Pooling, GradientsMatchFiniteDifferencesToSecondOrder) {
  const std::vector<Tensor> image = {doubles({2, 2, 5, 4})};
  const auto max = [](const auto& o) {
    return ops::max_pool(o[0], {3, 2}, {2, 1}, {1, 1, 0, 1}, {1, 1});
  };
  expect_gradients(max, image);
  expect_second_gradients(max, image, 1e-4);
  for (bool ceil : {false, true}) {
    for (bool pad : {false, true}) {
      const auto average = [=](const auto& o) {
        return ops::avg_pool(o[0], {3, 2}, {2, 2}, {1, 1, 0, 1}, ceil, pad);
      };
      expect_gradients(average, image);
      expect_second_gradients(average, image, 1e-4);
    }
  }
  expect_gradients(
      [](const auto& o) { return ops::max_pool_with_indices(o[0], {2}, {2}, {0, 0}, {1})[0]; },
      {doubles({2, 2, 6})});
  expect_gradients([](const auto& o) { return ops::global_avg_pool(o[0]); }, image);
  expect_gradients([](const auto& o) { return ops::adaptive_avg_pool(o[0], {3, 2}); }, image);
}

TEST(Pooling, NamesWhatDoesNotFit) {
  expect_error(ErrorKind::Value, "[max_pool] kernel takes 2 numbers of at least 1",
               [] { ops::max_pool(counted({1, 1, 4, 4}), {3}, {2, 2}, {0, 0, 0, 0}, {1, 1}); });
  expect_error(ErrorKind::Value,
               "[avg_pool] the kernel reaches over 5 elements of axis 2, which has 4",
               [] { ops::avg_pool(counted({1, 1, 4, 4}), {5, 5}, {2, 2}, {0, 0, 0, 0}); });
}

}  // namespace
}  // namespace lamella::test
