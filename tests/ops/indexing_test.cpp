// Indexing: NumPy's results, gradients that add up over repeats, and bounds that are checked.
#include <numeric>

#include "tests/errors.h"
#include "tests/ops/gradients.h"
#include <gmock/gmock.h>

#include "lamella/ops/index.h"
#include "lamella/runtime/counters.h"

namespace lamella::test {
namespace {

using testing::HasSubstr;
using Floats = std::vector<float>;

Tensor counted(const Shape& shape) {
  Floats elements(static_cast<size_t>(element_count(shape).value()));
  std::iota(elements.begin(), elements.end(), 0.0F);
  return Tensor::from_vector<float>(shape, elements);
}

Tensor mask(const Shape& shape, const std::vector<int64_t>& bits) {
  return ops::cast(integers(shape, bits), DType::Bool);
}

TEST(Index, IntegersSlicesAndNewAxes) {
  const Tensor x = counted({3, 4});
  EXPECT_EQ(ops::index(x, {1}).to_vector<float>(), (Floats{4, 5, 6, 7}));
  EXPECT_EQ(ops::index(x, {-1, 2}).item(), 10);
  EXPECT_EQ(ops::index(x, {Slice{1, {}, {}}, Slice{{}, {}, 2}}).to_vector<float>(),
            (Floats{4, 6, 8, 10}));
  EXPECT_EQ(ops::index(x, {Slice{{}, {}, -1}, Slice{2, 0, -1}}).to_vector<float>(),
            (Floats{10, 9, 6, 5, 2, 1}));
  EXPECT_EQ(ops::index(x, {Slice{2, 1, {}}}).shape(), (Shape{0, 4}));
  EXPECT_EQ(ops::index(x, {Index::new_axis(), Index::ellipsis(), 0}).shape(), (Shape{1, 3}));
  EXPECT_EQ(ops::index(x, {Index::ellipsis(), -1}).to_vector<float>(), (Floats{3, 7, 11}));
}

TEST(Index, TensorsOfPositions) {
  const Tensor x = counted({3, 4, 2});
  const Tensor rows = integers({2}, {2, -3}), columns = integers({2}, {1, 3});
  EXPECT_EQ(ops::index(x, {rows, columns}).to_vector<float>(), (Floats{18, 19, 6, 7}));
  const Tensor narrow_rows = ops::cast(integers({2}, {2, 0}), DType::UInt8);
  EXPECT_EQ(ops::index(x, {narrow_rows, 0, 0}).to_vector<float>(), (Floats{16, 0}));
  EXPECT_EQ(ops::index(x, {Slice{}, columns, 1}).to_vector<float>(),
            (Floats{3, 7, 11, 15, 19, 23}));
  // Something between the two: their axis comes first.
  const Tensor apart = ops::index(x, {rows, Slice{0, 3, {}}, integers({2}, {0, 1})});
  EXPECT_EQ(apart.shape(), (Shape{2, 3}));
  EXPECT_EQ(apart.to_vector<float>(), (Floats{16, 18, 20, 1, 3, 5}));
  const Tensor spread = ops::index(x, {rows, Slice{}, Index::new_axis()});
  EXPECT_EQ(spread.shape(), (Shape{2, 4, 1, 2}));
  const Tensor grid = ops::index(x, {integers({2, 1}, {0, 1}), integers({2}, {2, 3}), 0});
  EXPECT_EQ(grid.to_vector<float>(), (Floats{4, 6, 12, 14}));
}

TEST(Index, Masks) {
  const Tensor x = counted({2, 3});
  const Tensor even = mask({2, 3}, {1, 0, 1, 0, 1, 0});
  EXPECT_EQ(ops::index(x, {even}).to_vector<float>(), (Floats{0, 2, 4}));
  EXPECT_EQ(ops::index(x, {mask({2}, {0, 1})}).to_vector<float>(), (Floats{3, 4, 5}));
  EXPECT_EQ(ops::index(x, {Slice{}, mask({3}, {1, 0, 1})}).to_vector<float>(),
            (Floats{0, 2, 3, 5}));
  EXPECT_EQ(ops::index(x, {mask({2, 3}, {0, 0, 0, 0, 0, 0})}).shape(), (Shape{0}));
  EXPECT_EQ(ops::index_update(x, {even}, 1.0, ops::Update::Add).to_vector<float>(),
            (Floats{1, 1, 3, 3, 5, 5}));
  EXPECT_EQ(ops::index_update(x, {even}, floats({3}, {7, 8, 9})).to_vector<float>(),
            (Floats{7, 1, 8, 3, 9, 5}));
  EXPECT_EQ(ops::index_update(x, {mask({2}, {0, 1})}, floats({3}, {7, 8, 9})).to_vector<float>(),
            (Floats{0, 1, 2, 7, 8, 9}));
}

TEST(Index, WhatDoesNotFitIsRefusedByTheIndex) {
  const Tensor x = counted({2, 4}), two = integers({2}, {0, 1}), three = integers({3}, {0, 1, 1});
  EXPECT_THAT(message_of([&] { ops::index(x, {two, three}); }), HasSubstr("[index] shapes"));
  EXPECT_THAT(message_of([&] { ops::index_update(x, {two, three}, 1.0); }),
              HasSubstr("[index] shapes"));
  for (const Tensor& value : {floats({3}, {1, 2, 3}), x}) {
    EXPECT_THAT(message_of([&] { ops::index_update(x, {1}, value); }), HasSubstr("[index_update]"));
  }
}

TEST(Index, Writes) {
  const Tensor x = counted({3, 4});
  EXPECT_EQ(ops::index_update(x, {1}, -1.0).to_vector<float>(),
            (Floats{0, 1, 2, 3, -1, -1, -1, -1, 8, 9, 10, 11}));
  EXPECT_EQ(ops::index_update(x, {Slice{{}, {}, -2}, Slice{1, 3, {}}}, floats({2}, {-1, -2}))
                .to_vector<float>(),
            (Floats{0, -1, -2, 3, 4, 5, 6, 7, 8, -1, -2, 11}));
  EXPECT_EQ(ops::index_update(x, {Slice{2, 1, {}}}, -1.0).to_vector<float>(), x.to_vector<float>());
  const Tensor repeated = integers({3}, {1, 1, 0});
  const Tensor value = floats({3, 1}, {10, 20, 30});
  EXPECT_EQ(ops::index_update(x, {repeated}, value).to_vector<float>(),
            (Floats{30, 30, 30, 30, 20, 20, 20, 20, 8, 9, 10, 11}));
  EXPECT_EQ(ops::index_update(x, {repeated}, value, ops::Update::Add).to_vector<float>(),
            (Floats{30, 31, 32, 33, 34, 35, 36, 37, 8, 9, 10, 11}));
  EXPECT_EQ(
      ops::index_update(x, {Slice{1, {}, {}}, integers({2}, {0, -1})}, 5.0).to_vector<float>(),
      (Floats{0, 1, 2, 3, 5, 5, 6, 5, 5, 9, 10, 5}));
  EXPECT_EQ(ops::index_update(x, {repeated, integers({3}, {0, 0, 1})}, floats({3}, {7, 8, 9}))
                .to_vector<float>(),
            (Floats{0, 9, 2, 3, 8, 5, 6, 7, 8, 9, 10, 11}));
}

TEST(Index, ChangingIntegersMakesNoNewGraph) {
  const Tensor x = counted({5, 2});
  ops::index(x, {0}).wait();
  ops::index_update(x, {0}, 1.0).wait();
  const int64_t graphs = counters().graphs;
  for (int64_t i = 1; i < 5; ++i) {
    EXPECT_EQ(ops::index(x, {i}).to_vector<float>()[0], static_cast<float>(2 * i));
    ops::index_update(x, {i}, 1.0).wait();
  }
  EXPECT_EQ(counters().graphs, graphs);
}

TEST(Index, GradientsMatchFiniteDifferences) {
  const Tensor x = doubles({3, 4});
  const Tensor repeated = integers({3}, {1, 1, 0}),
               picks = mask({3, 4}, {1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 1});
  expect_gradients([&](const auto& o) { return ops::index(o[0], {repeated, Slice{{}, {}, -2}}); },
                   {x});
  expect_gradients([&](const auto& o) { return ops::index(o[0], {picks}); }, {x});
  expect_gradients(
      [&](const auto& o) { return ops::index(o[0], {repeated, Slice{}, Index::new_axis()}); }, {x});
  for (auto update :
       {ops::Update::Set, ops::Update::Add, ops::Update::Multiply, ops::Update::Maximum}) {
    expect_gradients(
        [&](const auto& o) { return ops::index_update(o[0], {repeated}, o[1], update); },
        {x, doubles({3, 4}, 5)});
    expect_gradients(
        [&](const auto& o) { return ops::index_update(o[0], {Slice{{}, {}, 2}, 1}, o[1], update); },
        {x, doubles({2}, 5)});
    expect_gradients([&](const auto& o) { return ops::index_update(o[0], {picks}, o[1], update); },
                     {x, doubles({4}, 5)});
  }
}

TEST(Index, IsCheckedAndNamed) {
  const Tensor x = counted({3, 4});
  expect_error(ErrorKind::Index, "index 3 is out of range for axis 0 of size 3",
               [&] { ops::index(x, {3}); });
  expect_error(ErrorKind::Index, "index -5 is out of range for axis 1 of size 4",
               [&] { ops::index(x, {0, -5}); });
  expect_error(ErrorKind::Index, "index -10000 is out of range for axis 1 of size 4",
               [&] { ops::index(x, {Slice{}, integers({1}, {-10000})}).wait(); });
  expect_error(ErrorKind::Index, "3 indices for the 2 axes", [&] { ops::index(x, {0, 0, 0}); });
  expect_error(ErrorKind::Index, "positions must be integers or bools, got f32[1]",
               [&] { ops::index(x, {floats({1}, {1})}); });
  expect_error(ErrorKind::Index, "only one ellipsis",
               [&] { ops::index(x, {Index::ellipsis(), Index::ellipsis()}); });
  expect_error(ErrorKind::Value, "step of a slice must not be 0",
               [&] { ops::index(x, {Slice{{}, {}, 0}}); });
  expect_error(ErrorKind::Index, "a mask of type bool[2] does not fit axis 0 of size 3",
               [&] { ops::index(x, {mask({2}, {1, 0})}); });
}

TEST(Gather, RefusesIndicesOutOfRangeAndWritesNothing) {
  const Tensor x = counted({7, 2});
  for (int64_t bad : {int64_t{-10000}, int64_t{-1}, int64_t{7}}) {
    const Tensor indices = integers({2}, {0, bad});
    const std::string said =
        "index " + std::to_string(bad) + " is out of range for axis 0 of size 7";
    expect_error(ErrorKind::Index, "[gather] " + said, [&] { ops::gather(x, indices).wait(); });
    expect_error(ErrorKind::Index, "[embedding] " + said,
                 [&] { ops::embedding(indices, x).wait(); });
    expect_error(ErrorKind::Index, "[index_select] " + said,
                 [&] { ops::index_select(x, indices, 0).wait(); });
    expect_error(ErrorKind::Index,
                 "[one_hot] index " + std::to_string(bad) + " is out of range for axis 1 of size 7",
                 [&] { ops::one_hot(indices, 1.0, 0.0, Shape{7}, DType::Float32).wait(); });
    expect_error(ErrorKind::Index, "[scatter] " + said, [&] {
      x.assign(ops::scatter(x, indices, counted({2, 2})));
      x.wait();
    });
    EXPECT_EQ(x.to_vector<float>(), counted({7, 2}).to_vector<float>());
  }
}

TEST(Gather, GradientsAddUpOverRepeats) {
  const Tensor indices = integers({2, 2}, {0, 2, 2, 1});
  const Tensor x = doubles({3, 4});
  expect_gradients([&](const auto& o) { return ops::gather(o[0], indices, 1); }, {x});
  expect_gradients([&](const auto& o) { return ops::embedding(indices, o[0]); }, {x});
  expect_second_gradients([&](const auto& o) { return ops::gather(o[0], indices, 0); }, {x});
  expect_gradients([&](const auto& o) { return ops::gather_elements(o[0], indices, 0); }, {x});
  expect_gradients(
      [&](const auto& o) { return ops::take_along_axis(o[0], integers({1, 2}, {-1, 0}), 1); }, {x});
  expect_gradients([&](const auto& o) { return ops::gather_nd(o[0], indices); },
                   {doubles({4, 3, 2})});
  for (const char* mode : {"set", "add", "mul", "max", "min"}) {
    expect_gradients([&](const auto& o) { return ops::scatter(o[0], indices, o[1], 0, mode); },
                     {x, doubles({2, 2, 4}, 5)});
    expect_gradients(
        [&](const auto& o) { return ops::scatter_elements(o[0], indices, o[1], 0, mode); },
        {x, doubles({2, 2}, 5)});
    expect_gradients([&](const auto& o) { return ops::scatter_nd(o[0], indices, o[1], mode); },
                     {x, doubles({2}, 5)});
  }
}

TEST(OneHot, TakesAnyAxisAndDtype) {
  const Tensor made = ops::one_hot(integers({3}, {0, 2, 1}), 5, -1, Shape{3}, DType::Int32, 0);
  EXPECT_EQ(made.to_vector<int32_t>(), (std::vector<int32_t>{5, -1, -1, -1, -1, 5, -1, 5, -1}));
}

}  // namespace
}  // namespace lamella::test
