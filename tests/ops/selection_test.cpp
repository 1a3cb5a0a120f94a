// Sizes that depend on data: what masks pick, unique elements; and splits of any number of parts.
#include "lamella/ops/selection.h"

#include "tests/ops/gradients.h"

#include "lamella/runtime/counters.h"

namespace lamella::test {
namespace {

using Floats = std::vector<float>;
using Integers = std::vector<int64_t>;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

TEST(Nonzero, ListsPlacesInOrder) {
  const Tensor x = floats({2, 3}, {0, 1, 0, kNaN, 0, -2});
  const Tensor places = ops::nonzero(x);
  EXPECT_EQ(places.shape(), (Shape{3, 2}));
  EXPECT_EQ(places.to_vector<int64_t>(), (Integers{0, 1, 1, 0, 1, 2}));
  EXPECT_EQ(ops::nonzero_by_axis(x)[1].to_vector<int64_t>(), (Integers{1, 0, 2}));
  EXPECT_EQ(ops::nonzero(floats({2}, {0, 0})).shape(), (Shape{0, 1}));
  EXPECT_EQ(ops::nonzero(floats({0, 3}, {})).shape(), (Shape{0, 2}));
  EXPECT_EQ(ops::nonzero(floats({}, {4})).shape(), (Shape{1, 0}));
}

TEST(Nonzero, SeesStridedMasksInRowMajorOrder) {
  const Tensor x = ops::transpose(floats({3, 2}, {1, 0, 0, 1, 1, 0}), Axes{1, 0});
  EXPECT_EQ(ops::nonzero(x).to_vector<int64_t>(), (Integers{0, 0, 0, 2, 1, 1}));
}

TEST(Nonzero, OfManyElementsIsThatOfFew) {
  const Tensor numbers = ops::element_numbers(Shape{200'000});
  const Tensor mask = ops::equal(ops::mod(numbers, 3), 0);
  const Integers picked = ops::picked(mask).to_vector<int64_t>();
  ASSERT_EQ(picked.size(), 66'667U);
  for (size_t i = 0; i < picked.size(); ++i) ASSERT_EQ(picked[i], static_cast<int64_t>(3 * i));
}

TEST(MaskedSelect, BroadcastsAndHasAGradient) {
  const Tensor x = floats({2, 2}, {1, 2, 3, 4});
  const Tensor mask = ops::cast(integers({2}, {1, 0}), DType::Bool);
  EXPECT_EQ(ops::masked_select(x, mask).to_vector<float>(), (Floats{1, 3}));
  const Tensor every = ops::cast(integers({3, 1}, {1, 0, 1}), DType::Bool);
  EXPECT_EQ(ops::masked_select(floats({2}, {5, 6}), every).to_vector<float>(),
            (Floats{5, 6, 5, 6}));
  expect_gradients([&](const auto& o) { return ops::masked_select(o[0], ops::greater(o[0], 0.0)); },
                   {doubles({3, 4})});
  expect_error(ErrorKind::Type, "mask must be bool", [&] { ops::masked_select(x, x); });
}

TEST(Unique, SortsAndKeepsOneNaN) {
  const Tensor x = floats({2, 4}, {3, kNaN, 1, 3, -0.0F, 1, kNaN, 0});
  const ops::Unique unique = ops::unique(x);
  const Floats values = unique.values.to_vector<float>();
  ASSERT_EQ(values.size(), 4U);
  EXPECT_EQ((Floats{values[0], values[1], values[2]}), (Floats{0, 1, 3}));
  EXPECT_TRUE(std::isnan(values[3]));
  EXPECT_EQ(unique.inverse.shape(), x.shape());
  EXPECT_EQ(unique.inverse.to_vector<int64_t>(), (Integers{2, 3, 1, 2, 0, 1, 3, 0}));
  EXPECT_EQ(unique.counts.to_vector<int64_t>(), (Integers{2, 2, 2, 2}));
}

TEST(Unique, OfFewElements) {
  for (int64_t size : {0, 1, 2}) {
    const Tensor x = ops::broadcast_to(Tensor::scalar(DType::Int32, 7), Shape{size});
    const ops::Unique unique = ops::unique(x);
    const int64_t expected = size == 0 ? 0 : 1;
    EXPECT_EQ(unique.values.shape(), (Shape{expected}));
    EXPECT_EQ(unique.inverse.to_vector<int64_t>(), Integers(static_cast<size_t>(size), 0));
    EXPECT_EQ(unique.counts.to_vector<int64_t>(), size == 0 ? Integers{} : Integers{size});
    EXPECT_EQ(ops::unique_consecutive(x).values.shape(), (Shape{expected}));
  }
}

TEST(Unique, ConsecutiveKeepsTheOrder) {
  const ops::Unique unique = ops::unique_consecutive(integers({7}, {1, 1, 2, 2, 3, 1, 1}));
  EXPECT_EQ(unique.values.to_vector<int64_t>(), (Integers{1, 2, 3, 1}));
  EXPECT_EQ(unique.inverse.to_vector<int64_t>(), (Integers{0, 0, 1, 1, 2, 3, 3}));
  EXPECT_EQ(unique.counts.to_vector<int64_t>(), (Integers{2, 2, 1, 2}));
}

TEST(Selection, ChangingCountsMakeFewGraphs) {
  const auto run = [](int64_t count) {
    std::vector<float> elements(50, 0.0F);
    for (int64_t i = 0; i < count; ++i) elements[static_cast<size_t>(i)] = 1;
    const Tensor x = floats({50}, elements);
    EXPECT_EQ(ops::nonzero(x).shape()[0], Dim(count));
    ops::sum(ops::masked_select(x, ops::greater(x, 0.5))).wait();
  };
  run(3), run(7), run(9);
  const int64_t graphs = counters().graphs;
  for (int64_t count = 10; count < 40; ++count) run(count);
  EXPECT_LE(counters().graphs, graphs + 2);
}

TEST(SplitInto, CutsAnyNumberOfUnequalParts) {
  std::vector<Dim> sizes;
  int64_t total = 0;
  for (int64_t i = 0; i < 70; ++i) {
    sizes.emplace_back(i % 4);
    total += i % 4;
  }
  const Tensor x = doubles({2, total});
  const std::vector<Tensor> parts = ops::split_into(x, sizes, 1);
  ASSERT_EQ(parts.size(), sizes.size());
  int64_t start = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(parts[i].shape(), (Shape{2, sizes[i]}));
    const Tensor same = ops::narrow(x, start, 1, Shape{sizes[i]});
    EXPECT_EQ(parts[i].to_vector<double>(), same.to_vector<double>());
    start += sizes[i].value();
  }
  expect_gradients(
      [&](const auto& o) {
        const auto cut = ops::split_into(o[0], sizes, 1);
        return ops::square(cut[7]) + ops::sum(cut[66]) * ops::sum(cut[3]);
      },
      {x});
  expect_error(ErrorKind::Value, "add up to", [&] { ops::split_into(x, {3}, 1); });
  sizes.emplace_back(1);
  expect_error(ErrorKind::Value, "add up to", [&] { ops::split_into(x, sizes, 1); });
}

}  // namespace
}  // namespace lamella::test
