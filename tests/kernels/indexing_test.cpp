// Gathers and scatters against plain loops; out of range indices write nothing.
#include "lamella/kernels/indexing.h"

#include "tests/kernels/array.h"
#include <gmock/gmock.h>

namespace lamella::kernels {
namespace {

using testing::HasSubstr;

Axes gathered(const Axes& x, int axis, const Axes& indices) {
  Axes sizes;
  for (int i = 0; i < axis; ++i) sizes.push_back(x[static_cast<size_t>(i)]);
  for (int64_t size : indices) sizes.push_back(size);
  for (uint32_t i = static_cast<uint32_t>(axis) + 1; i < x.size(); ++i) sizes.push_back(x[i]);
  return sizes;
}

// The place in x that element `flat` of the gathered tensor names.
int64_t source(const Array& x, int axis, const Array& indices, const Array& out, int64_t flat) {
  const auto place = unravel(flat, out.sizes());
  const auto at = static_cast<std::ptrdiff_t>(axis);
  const auto rank = static_cast<std::ptrdiff_t>(indices.sizes().size());
  const std::vector<int64_t> index_place(place.begin() + at, place.begin() + at + rank);
  int64_t index = static_cast<int64_t>(indices.at(index_place));
  if (index < 0) index += x.sizes()[static_cast<size_t>(axis)];
  std::vector<int64_t> read(place.begin(), place.begin() + at);
  read.push_back(index);
  read.insert(read.end(), place.begin() + at + rank, place.end());
  return x.flat_of(read);
}

struct Case {
  Axes x;
  int axis;
  Axes indices;
};
const Case kCases[] = {
    {{7, 5}, 0, {4}},       {{7, 5}, 1, {3, 2}},  {{7}, 0, {}},           {{7}, 0, {40}},
    {{4, 6, 5}, 1, {9}},    {{4, 6, 5}, 2, {3}},  {{4, 6, 5}, 0, {2, 3}}, {{3, 1000}, 0, {50}},
    {{2, 3, 4, 5}, 2, {2}}, {{7, 0}, 0, {3}},     {{7, 5}, 0, {0}},       {{1, 1}, 0, {1}},
    {{50, 8}, 0, {4, 300}}, {{5, 2, 3}, 0, {64}},
};

Array random_indices(DType dtype, const Axes& sizes, int64_t size, bool negative) {
  Array indices(dtype, sizes);
  indices.randomize(9, negative ? -static_cast<double>(size) : 0, static_cast<double>(size));
  return indices;
}

const Axes reversed_order(const Axes& sizes) {
  Axes order;
  for (uint32_t i = sizes.size(); i-- > 0;) order.push_back(i);
  return order;
}

void for_each_form(
    const std::function<void(const Case&, DType, const Array& indices, bool reversed)>& body) {
  for (const Case& test : kCases) {
    const int64_t size = test.x[static_cast<size_t>(test.axis)];
    for (DType dtype : kComputeDTypes) {
      for (DType index : {DType::Int32, DType::Int64}) {
        for (bool reversed : {false, true}) {
          body(test, dtype, random_indices(index, test.indices, size, reversed), reversed);
        }
      }
    }
  }
}

Array make(DType dtype, const Axes& sizes, bool reversed) {
  return reversed ? Array::ordered(dtype, sizes, reversed_order(sizes)) : Array(dtype, sizes);
}

TEST(Gather, ReadsWhatTheIndicesName) {
  for_each_form([](const Case& test, DType dtype, const Array& indices, bool reversed) {
    Array x = make(dtype, test.x, reversed);
    x.randomize(1, 0, 100);
    Array out = make(dtype, gathered(test.x, test.axis, test.indices), !reversed);
    out.fill_with(1);
    gather(
        x, indices, out,
        {.axis = test.axis, .negative = reversed ? NegativeIndex::FromEnd : NegativeIndex::Error});
    for (int64_t i = 0; i < out.count(); ++i) {
      ASSERT_EQ(out.flat(i), x.flat(source(x, test.axis, indices, out, i)))
          << text(x.view()) << text(indices.view());
    }
  });
}

double combine(ScatterMode mode, double a, double b) {
  switch (mode) {
    case ScatterMode::Set:
      return b;
    case ScatterMode::Add:
      return a + b;
    case ScatterMode::Multiply:
      return a * b;
    case ScatterMode::Minimum:
      return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b);
    default:
      return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b);
  }
}

constexpr ScatterMode kModes[] = {ScatterMode::Set, ScatterMode::Add, ScatterMode::Multiply,
                                  ScatterMode::Minimum, ScatterMode::Maximum};

TEST(Scatter, CombinesUpdatesInOrder) {
  for_each_form([](const Case& test, DType dtype, const Array& indices, bool reversed) {
    for (ScatterMode mode : kModes) {
      if (dtype == DType::Bool && mode != ScatterMode::Set) continue;
      const bool small = !is_float(dtype) && mode == ScatterMode::Multiply;
      Array out = make(dtype, test.x, reversed);
      out.randomize(1, small ? 1 : 0, small ? 2 : 3);
      Array updates = make(dtype, gathered(test.x, test.axis, test.indices), !reversed);
      updates.randomize(2, small ? 1 : 0.5, small ? 2 : 1.5);
      std::vector<double> expected = out.values();
      for (int64_t i = 0; i < updates.count(); ++i) {
        double& to = expected[static_cast<size_t>(source(out, test.axis, indices, updates, i))];
        to = combine(mode, to, updates.flat(i));
      }
      scatter(mode, indices, updates, out,
              {.axis = test.axis,
               .negative = reversed ? NegativeIndex::FromEnd : NegativeIndex::Error,
               .operation = "scatter"});
      expect_near(out, expected, 3000, "scatter");
    }
  });
}

TEST(Scatter, KeepsNan) {
  for (DType dtype : kFloats) {
    Array indices(DType::Int64, {3}, {0., 0, 1}), updates(dtype, {3}, {NAN, 1, 2});
    for (ScatterMode mode : {ScatterMode::Minimum, ScatterMode::Maximum}) {
      Array out(dtype, {2}, {5., NAN});
      scatter(mode, indices, updates, out, {});
      EXPECT_TRUE(std::isnan(out.flat(0)) && std::isnan(out.flat(1)));
    }
  }
}

TEST(Scatter, SixteenBitSumsRoundOnce) {
  Array indices(DType::Int32, {256}), updates(DType::BFloat16, {256}), out(DType::BFloat16, {1});
  indices.fill_with(0), updates.fill_with(1.0 / 256), out.fill_with(256);
  scatter(ScatterMode::Add, indices, updates, out, {});
  EXPECT_EQ(out.flat(0), 256);  // 257 rounds to even
  out.fill_with(1);
  scatter(ScatterMode::Add, indices, updates, out, {});
  EXPECT_EQ(out.flat(0), 2);
}

struct ElementsCase {
  Axes x, indices, updates;
  int axis;
};
const ElementsCase kElementsCases[] = {
    {{4, 5}, {3, 5}, {3, 5}, 0}, {{4, 5}, {4, 9}, {4, 9}, 1},          {{4, 5}, {2, 3}, {3, 4}, 1},
    {{7}, {100}, {100}, 0},      {{3, 4, 5}, {3, 2, 5}, {3, 2, 5}, 1}, {{3, 4}, {0, 4}, {0, 4}, 0},
    {{1}, {1}, {1}, 0},          {{64, 64}, {64, 64}, {64, 64}, 0},
};

TEST(GatherElements, ReadsWhatTheIndicesName) {
  for (const ElementsCase& test : kElementsCases) {
    for (DType dtype : kComputeDTypes) {
      for (bool reversed : {false, true}) {
        const int64_t size = test.x[static_cast<size_t>(test.axis)];
        Array x = make(dtype, test.x, reversed), out = make(dtype, test.indices, !reversed);
        x.randomize(1, 0, 100);
        Array indices = random_indices(DType::Int64, test.indices, size, reversed);
        gather_elements(x, indices, out, {.axis = test.axis, .negative = NegativeIndex::FromEnd});
        for (int64_t i = 0; i < out.count(); ++i) {
          auto place = unravel(i, out.sizes());
          int64_t index = static_cast<int64_t>(indices.flat(i));
          place[static_cast<size_t>(test.axis)] = index < 0 ? index + size : index;
          ASSERT_EQ(out.flat(i), x.at(place));
        }
      }
    }
  }
}

TEST(ScatterElements, CombinesUpdatesInOrder) {
  for (const ElementsCase& test : kElementsCases) {
    for (DType dtype : kFloats) {
      for (ScatterMode mode : kModes) {
        const int64_t size = test.x[static_cast<size_t>(test.axis)];
        Array out(dtype, test.x), updates(dtype, test.updates);
        out.randomize(1), updates.randomize(2, 0.5, 1.5);
        Array indices = random_indices(DType::Int32, test.indices, size, true);
        std::vector<double> expected = out.values();
        for (int64_t i = 0; i < indices.count(); ++i) {
          auto place = unravel(i, test.indices);
          const double update = updates.at(place);
          int64_t index = static_cast<int64_t>(indices.flat(i));
          place[static_cast<size_t>(test.axis)] = index < 0 ? index + size : index;
          double& to = expected[static_cast<size_t>(out.flat_of(place))];
          to = combine(mode, to, update);
        }
        scatter_elements(mode, indices, updates, out,
                         {.axis = test.axis, .negative = NegativeIndex::FromEnd});
        expect_near(out, expected, 100, "scatter_elements");
      }
    }
  }
}

TEST(Indexing, RefusesIndicesOutOfRangeAndWritesNothing) {
  for (DType index : {DType::Int32, DType::Int64}) {
    for (double wrong : {-10000., 7., -1., 2147483647.}) {
      Array x(DType::Float32, {7, 3}), gathered_rows(DType::Float32, {4, 3});
      x.randomize(1), gathered_rows.randomize(2);
      Array indices(index, {4}, {0., 6, wrong, -20000});
      const auto rows_before = gathered_rows.bytes(), x_before = x.bytes();
      EXPECT_THAT(message_of(ErrorKind::Index, [&] { gather(x, indices, gathered_rows, {}); }),
                  HasSubstr(fmt::format("[gather] index {} is out of range for axis 0 of size 7",
                                        static_cast<int64_t>(wrong))));
      EXPECT_EQ(gathered_rows.bytes(), rows_before);
      EXPECT_THAT(message_of(ErrorKind::Index,
                             [&] {
                               scatter(ScatterMode::Add, indices, gathered_rows, x,
                                       {.operation = "scatter_add"});
                             }),
                  HasSubstr(fmt::format("[scatter_add] index {} is out of", wrong)));
      Array wide(index, {4, 3});
      wide.fill_with(0);
      wide.set_flat(7, wrong);
      message_of(ErrorKind::Index, [&] { gather_elements(x, wide, gathered_rows, {}); });
      message_of(ErrorKind::Index,
                 [&] { scatter_elements(ScatterMode::Set, wide, gathered_rows, x, {}); });
      EXPECT_EQ(gathered_rows.bytes(), rows_before);
      EXPECT_EQ(x.bytes(), x_before);
    }
  }
  // With negative indices allowed: -8 is out of range, -7 is not.
  Array x(DType::Float32, {7}), out(DType::Float32, {1});
  x.randomize(1);
  const IndexingOptions options{.negative = NegativeIndex::FromEnd};
  message_of(ErrorKind::Index, [&] { gather(x, Array(DType::Int32, {1}, {-8.}), out, options); });
  gather(x, Array(DType::Int32, {1}, {-7.}), out, options);
  EXPECT_EQ(out.flat(0), x.flat(0));
  // Nothing can be named in an empty axis.
  Array none(DType::Float32, {0});
  message_of(ErrorKind::Index, [&] { gather(none, Array(DType::Int32, {1}, {0.}), out, options); });
}

TEST(Indexing, NamesTheFirstWrongIndexForAnyThreadCount) {
  Array x(DType::Float32, {10}), indices(DType::Int32, {200000}), out(DType::Float32, {200000});
  indices.fill_with(1);
  for (int64_t at : {199999, 150000, 120000}) indices.set_flat(at, static_cast<double>(at));
  for (int threads : {1, 2, 3}) {
    set_thread_count(threads);
    EXPECT_THAT(message_of(ErrorKind::Index, [&] { gather(x, indices, out, {}); }),
                HasSubstr("index 120000 "));
  }
  set_thread_count(2);
}

TEST(Indexing, GivesTheSameBitsForAnyThreadCount) {
  for (DType dtype : {DType::Float32, DType::BFloat16}) {
    for (const auto& [x, count] :
         {std::pair<Axes, int64_t>{{37}, 100000}, {{1000, 3}, 50000}, {{11, 700}, 500}}) {
      Array indices = random_indices(DType::Int32, {count}, x[0], false);
      Array updates(dtype, gathered(x, 0, {count})), out(dtype, x);
      updates.randomize(4);
      expect_same_bits_for_any_thread_count(out, [&] {
        out.fill_with(0);
        scatter(ScatterMode::Add, indices, updates, out, {});
      });
      expect_same_bits_for_any_thread_count(
          out, [&] { scatter(ScatterMode::Set, indices, updates, out, {}); });
    }
  }
}

TEST(Indexing, RefusesWhatDoesNotFit) {
  Array x(DType::Float32, {7, 3}), indices(DType::Int32, {4}), out(DType::Float32, {4, 2}),
      wrong_dtype(DType::Int32, {4, 3}), fitting(DType::Float32, {4, 3});
  indices.fill_with(0);
  EXPECT_THAT(message_of(ErrorKind::Value, [&] { gather(x, indices, out, {}); }),
              HasSubstr("[gather] out must have shape [4,3], got f32[4,2]"));
  message_of(ErrorKind::Type, [&] { gather(x, indices, wrong_dtype, {}); });
  Array by_float(DType::Float32, {7, 3, 3});
  message_of(ErrorKind::Type, [&] { gather(x, x, by_float, {}); });
  message_of(ErrorKind::Value, [&] { gather(x, indices, fitting, {.axis = 2}); });
  Array flags(DType::Bool, {7}), flag_updates(DType::Bool, {4});
  message_of(ErrorKind::Type, [&] { scatter(ScatterMode::Add, indices, flag_updates, flags, {}); });
}

}  // namespace
}  // namespace lamella::kernels
