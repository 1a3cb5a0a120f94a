// Strided copies, filling, joining and cutting against plain loops.
#include "lamella/kernels/copy.h"

#include <algorithm>
#include <numeric>

#include "tests/kernels/array.h"
#include <gmock/gmock.h>

#include "lamella/kernels/convert.h"

namespace lamella::kernels {
namespace {

using testing::HasSubstr;

const Axes kShapes[] = {{},           {1},           {7},       {0},
                        {3, 0, 2},    {40, 70},      {33, 64},  {100, 3},
                        {3, 100},     {2, 3, 4},     {5, 1, 6}, {2, 33, 35},
                        {2, 8, 9, 3}, {3, 2, 1, 70}, {64, 64},  {2, 2, 2, 2, 3},
                        {1000, 37}};

TEST(Copy, MovesBetweenAllAxisOrders) {
  for (DType dtype : {DType::Bool, DType::Float16, DType::Float32, DType::Int64}) {
    for (const Axes& sizes : kShapes) {
      Axes order;
      for (uint32_t i = 0; i < sizes.size(); ++i) order.push_back(i);
      do {
        Array from(dtype, sizes);
        from.randomize(1, 0, 100);
        Array to = Array::ordered(dtype, sizes, order);
        copy(from, to);
        ASSERT_EQ(to.values(), from.values()) << text(from.view());
        Array back(dtype, sizes);
        copy(to, back);
        ASSERT_EQ(back.bytes(), from.bytes()) << text(from.view());
      } while (std::next_permutation(order.begin(), order.end()));
    }
  }
}

TEST(Copy, ReadsRepeatedReversedAndSteppedElements) {
  Array x(DType::Int32, {4, 6});
  std::vector<double> numbers(24);
  std::iota(numbers.begin(), numbers.end(), 0);
  for (int64_t i = 0; i < 24; ++i) x.set_flat(i, numbers[static_cast<size_t>(i)]);
  TensorView view = moved(x, 5);
  view.sizes = {2, 3, 3};
  view.strides = {6, 0, -2};
  Array out(DType::Int32, {2, 3, 3});
  copy(view, out);
  EXPECT_EQ(out.values(),
            (std::vector<double>{5, 3, 1, 5, 3, 1, 5, 3, 1, 11, 9, 7, 11, 9, 7, 11, 9, 7}));
  // Written into every second column.
  TensorView columns = x;
  columns.sizes = {4, 3};
  columns.strides = {6, 2};
  Array fresh(DType::Int32, {4, 3});
  fresh.fill_with(-1);
  copy(fresh, columns);
  EXPECT_EQ(x.at({1, 2}), -1);
  EXPECT_EQ(x.at({1, 3}), 9);
}

TEST(Copy, IsTheSameForAnyThreadCount) {
  Array from(DType::Float32, {300, 500}), to(DType::Float32, {500, 300});
  from.randomize(1);
  TensorView transposed = from;
  std::swap(transposed.sizes[0], transposed.sizes[1]);
  std::swap(transposed.strides[0], transposed.strides[1]);
  expect_same_bits_for_any_thread_count(to, [&] { copy(transposed, to); });
  EXPECT_EQ(to.at({499, 299}), from.at({299, 499}));
}

TEST(Copy, RefusesWhatDoesNotFit) {
  Array a(DType::Float32, {2, 3}), b(DType::Float32, {3, 2}), c(DType::Int32, {2, 3});
  EXPECT_THAT(message_of(ErrorKind::Value, [&] { copy(a, b); }),
              HasSubstr("[copy] to must have shape [2,3], got f32[3,2]"));
  EXPECT_THAT(message_of(ErrorKind::Type, [&] { copy(a, c); }),
              HasSubstr("must have one dtype, got float32 and int32"));
}

TEST(Fill, WritesOneElementEverywhere) {
  for (DType dtype : kComputeDTypes) {
    for (const Axes& sizes : kShapes) {
      Array out(dtype, sizes), one(dtype, {});
      one.set_flat(0, 1);
      fill(out, one.view().data);
      EXPECT_EQ(out.values(), std::vector<double>(static_cast<size_t>(out.count()), 1));
      fill_zero(out);
      EXPECT_EQ(out.values(), std::vector<double>(static_cast<size_t>(out.count()), 0));
    }
  }
}

TEST(Concat, JoinsAndSplitCutsAgain) {
  for (int axis : {0, 1, 2}) {
    std::vector<Array> parts, cut;
    std::vector<TensorView> part_views, cut_views;
    Axes whole_sizes = {3, 4, 5};
    whole_sizes[static_cast<size_t>(axis)] = 0;
    for (int64_t size : {2, 0, 1, 30}) {
      Axes sizes = {3, 4, 5};
      sizes[static_cast<size_t>(axis)] = size;
      whole_sizes[static_cast<size_t>(axis)] += size;
      parts.push_back(size == 30 ? Array::ordered(DType::Float32, sizes, {2, 0, 1})
                                 : Array(DType::Float32, sizes));
      parts.back().randomize(static_cast<uint32_t>(size));
      part_views.push_back(parts.back().view());
      cut.emplace_back(DType::Float32, sizes);
      cut_views.push_back(cut.back().view());
    }
    Array whole(DType::Float32, whole_sizes);
    concat(part_views, axis, whole);
    std::vector<int64_t> last = {2, 3, 4};
    last[static_cast<size_t>(axis)] = 32;
    std::vector<int64_t> last_of_part = {2, 3, 4};
    last_of_part[static_cast<size_t>(axis)] = 29;
    EXPECT_EQ(whole.at(last), parts.back().at(last_of_part));
    split(whole, axis, cut_views);
    for (size_t i = 0; i < parts.size(); ++i) EXPECT_EQ(cut[i].values(), parts[i].values());
  }
}

TEST(Concat, RefusesWhatDoesNotFit) {
  Array a(DType::Float32, {2, 3}), b(DType::Float32, {2, 4}), out(DType::Float32, {2, 8});
  const TensorView parts[] = {a, b};
  EXPECT_THAT(message_of(ErrorKind::Value, [&] { concat(parts, 1, out); }),
              HasSubstr("[concat] the parts have 7 elements along axis 1, the whole has 8"));
  message_of(ErrorKind::Value, [&] { concat(parts, 0, out); });
  message_of(ErrorKind::Value, [&] { concat(parts, 2, out); });
}

TEST(Convert, MatchesTheScalarConversions) {
  // Every 16-bit pattern, widened and narrowed again.
  for (DType half : {DType::Float16, DType::BFloat16}) {
    Array from(half, {65536}), wide(DType::Float32, {65536}), back(half, {65536});
    for (uint32_t i = 0; i < 65536; ++i) store_as(from.place(i), static_cast<uint16_t>(i));
    convert(from, wide);
    convert(wide, back);
    for (uint32_t i = 0; i < 65536; ++i) {
      const float expected = half == DType::Float16
                                 ? float_from_float16_bits(static_cast<uint16_t>(i))
                                 : float_from_bfloat16_bits(static_cast<uint16_t>(i));
      const float actual = wide.view().as<float>()[i];
      ASSERT_TRUE(std::isnan(expected)
                      ? std::isnan(actual)
                      : std::bit_cast<uint32_t>(actual) == std::bit_cast<uint32_t>(expected))
          << i;
      if (!std::isnan(expected)) {
        ASSERT_EQ(back.view().as<uint16_t>()[i], i);
      }
    }
  }
  // Floats of every exponent, near ties, and the special ones, narrowed.
  std::mt19937 random(7);
  Array wide(DType::Float32, {100000});
  for (int64_t i = 0; i < wide.count(); ++i) {
    uint32_t bits = static_cast<uint32_t>(random());
    if (i % 3 == 0) bits &= 0xFFFFF000u;
    if (i % 3 == 1) bits = (bits & 0xFFFF0000u) | 0x8000u;
    store_as(wide.place(i), bits);
  }
  for (DType half : {DType::Float16, DType::BFloat16}) {
    Array narrow(half, {100000});
    convert(wide, narrow);
    for (int64_t i = 0; i < wide.count(); ++i) {
      const float value = wide.view().as<float>()[i];
      const uint16_t expected =
          half == DType::Float16 ? float16_bits_from_float(value) : bfloat16_bits_from_float(value);
      ASSERT_EQ(narrow.view().as<uint16_t>()[i], expected) << value;
    }
  }
}

TEST(Convert, TakesAnyStrides) {
  Array from = Array::ordered(DType::BFloat16, {5, 6, 7}, {2, 0, 1});
  from.randomize(1);
  Array to(DType::Float32, {5, 6, 7});
  convert(from, to);
  EXPECT_EQ(to.values(), from.values());
}

}  // namespace
}  // namespace lamella::kernels
