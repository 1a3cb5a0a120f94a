// Moving elements and making tensors.
#include "tests/ops/gradients.h"

namespace lamella::test {
namespace {

using Floats = std::vector<float>;

TEST(Rearrange, PadsInEveryMode) {
  const Tensor x = floats({3}, {1, 2, 3});
  EXPECT_EQ(ops::pad(x, 9.0, {1}, {2}).to_vector<float>(), (Floats{9, 1, 2, 3, 9, 9}));
  EXPECT_EQ(ops::pad(x, 0.0, {2}, {1}, "reflect").to_vector<float>(), (Floats{3, 2, 1, 2, 3, 2}));
  EXPECT_EQ(ops::pad(x, 0.0, {2}, {1}, "replicate").to_vector<float>(), (Floats{1, 1, 1, 2, 3, 3}));
  EXPECT_EQ(ops::pad(x, 0.0, {-1}, {1}).to_vector<float>(), (Floats{2, 3, 0}));
  expect_error(ErrorKind::Value, "[pad] cannot add 3 and 0 elements to axis 0 in 'reflect' mode",
               [&] { ops::pad(x, 0.0, {3}, {0}, "reflect"); });
  for (const char* mode : {"constant", "reflect", "replicate", "circular"}) {
    expect_gradients([mode](const auto& o) { return ops::pad(o[0], 0.0, {1, 2}, {2, 0}, mode); },
                     {doubles({3, 4})});
  }
}

TEST(Rearrange, RepeatsTurnsAndShifts) {
  const Tensor x = floats({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(ops::tile(x, {1, 2}).to_vector<float>(), (Floats{1, 2, 1, 2, 3, 4, 3, 4}));
  EXPECT_EQ(ops::tile(x, {2, 1, 1}).shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(ops::flip(x, {1}).to_vector<float>(), (Floats{2, 1, 4, 3}));
  EXPECT_EQ(ops::flip(x).to_vector<float>(), (Floats{4, 3, 2, 1}));
  EXPECT_EQ(ops::roll(x, {1}, {0}).to_vector<float>(), (Floats{3, 4, 1, 2}));
  EXPECT_EQ(ops::repeat_interleave(x, 2, 1).to_vector<float>(), (Floats{1, 1, 2, 2, 3, 3, 4, 4}));
  EXPECT_EQ(ops::moveaxis(x, 0, 1).to_vector<float>(), (Floats{1, 3, 2, 4}));
  EXPECT_EQ(ops::flatten(floats({2, 1, 2}, {1, 2, 3, 4})).shape(), (Shape{2, 2}));
  const Tensor y = doubles({3, 4});
  expect_gradients([](const auto& o) { return ops::tile(o[0], {2, 3}); }, {y});
  expect_gradients([](const auto& o) { return ops::flip(o[0], {0}); }, {y});
  expect_gradients([](const auto& o) { return ops::roll(o[0], {1, -2}, {0, 1}); }, {y});
  expect_gradients([](const auto& o) { return ops::repeat_interleave(o[0], 3, 0); }, {y});
  expect_gradients([](const auto& o) { return ops::swapaxes(o[0], 0, 1); }, {y});
}

TEST(Rearrange, SplitsIntoManyParts) {
  const Tensor x = doubles({20, 2});
  const auto slices = ops::unstack(x, 0);
  ASSERT_EQ(slices.size(), 20U);
  EXPECT_EQ(slices[19].to_vector<double>()[1], x.to_vector<double>()[39]);
  const auto parts = ops::split(x, Shape{5, 15}, 0);
  EXPECT_EQ(parts[1].shape(), (Shape{15, 2}));
  expect_gradients([](const auto& o) { return ops::split(o[0], Shape{5, 15}, 0)[0]; }, {x});
  expect_gradients([](const auto& o) { return ops::unstack(o[0], 1)[1]; }, {x});
  expect_error(ErrorKind::Value, "[split] sizes [5,14] add up to 19, but axis 0 has 20",
               [&] { ops::split(x, Shape{5, 14}, 0); });
}

TEST(Creation, MakesRangesAndTriangles) {
  EXPECT_EQ(ops::arange(1.5, -0.5, Shape{4}, DType::Float32).to_vector<float>(),
            (Floats{1.5, 1, 0.5, 0}));
  EXPECT_EQ(ops::arange(3, 2, Shape{3}, DType::Int64).to_vector<int64_t>(),
            (std::vector<int64_t>{3, 5, 7}));
  EXPECT_EQ(ops::linspace(0.0, 1.0, Shape{5}, DType::Float32).to_vector<float>(),
            (Floats{0, 0.25, 0.5, 0.75, 1}));
  EXPECT_EQ(ops::eye(Shape{2, 3}, DType::Float32, 1).to_vector<float>(),
            (Floats{0, 1, 0, 0, 0, 1}));
  EXPECT_EQ(ops::full(7, Shape{2}, DType::Float32).to_vector<float>(), (Floats{7, 7}));
  const Tensor x = floats({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(ops::tril(x).to_vector<float>(), (Floats{1, 0, 3, 4}));
  EXPECT_EQ(ops::triu(x, 1).to_vector<float>(), (Floats{0, 2, 0, 0}));
  expect_gradients([](const auto& o) { return ops::tril(o[0]); }, {doubles({3, 3})});
}

}  // namespace
}  // namespace lamella::test
