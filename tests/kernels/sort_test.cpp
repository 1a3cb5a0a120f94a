// Sorting, the first k and medians against std::stable_sort, NaN last, for every dtype and stride.
#include "lamella/kernels/sort.h"

#include <numeric>

#include "tests/kernels/array.h"

namespace lamella::kernels {
namespace {

struct Case {
  Axes sizes;
  int axis;
};
const Case kCases[] = {{{7}, 0},       {{5, 9}, 1},   {{9, 5}, 0},      {{3, 300, 2}, 1},
                       {{1}, 0},       {{0, 3}, 1},   {{3, 0}, 1},      {{4, 1}, 1},
                       {{2, 257}, 1},  {{66'000}, 0}, {{2, 66'000}, 1}, {{600, 8}, 1},
                       {{2, 2, 64}, 2}};

// Few distinct values, both zeros, infinities and NaN.
void fill(Array& x, uint32_t seed) {
  x.randomize(seed, -20, 20);
  if (x.view().dtype == DType::Bool) return;
  for (int64_t i = 0; i < x.count(); ++i) x.set_flat(i, std::floor(std::fabs(x.flat(i))));
  if (!is_float(x.view().dtype)) return;
  for (int64_t i = 3; i < x.count(); i += 11) x.set_flat(i, -x.flat(i));
  for (int64_t i = 5; i < x.count(); i += 37) x.set_flat(i, i % 2 == 0 ? NAN : -NAN);
  for (int64_t i = 6; i < x.count(); i += 41) x.set_flat(i, i % 2 == 0 ? INFINITY : -INFINITY);
  for (int64_t i = 1; i < x.count(); i += 13) x.set_flat(i, i % 2 == 0 ? 0.0 : -0.0);
}

bool less(double a, double b) {
  return std::isnan(b) ? !std::isnan(a) : a < b;
}

// The positions of a line's elements in order.
std::vector<int64_t> order_of(const std::vector<double>& line, SortOrder order) {
  std::vector<int64_t> positions(line.size());
  std::iota(positions.begin(), positions.end(), 0);
  std::stable_sort(positions.begin(), positions.end(), [&](int64_t a, int64_t b) {
    const double x = line[static_cast<size_t>(a)], y = line[static_cast<size_t>(b)];
    return order == SortOrder::Ascending ? less(x, y) : less(y, x);
  });
  return positions;
}

// Calls body(the line's elements, the place of its element 0) for each line of x along an axis.
void for_each_line(
    const Array& x, int axis,
    const std::function<void(const std::vector<double>&, std::vector<int64_t>)>& body) {
  Axes starts = x.sizes();
  starts[static_cast<size_t>(axis)] = 1;
  int64_t lines = 1;
  for (int64_t size : starts) lines *= size;
  for (int64_t i = 0; i < lines; ++i) {
    std::vector<int64_t> place = unravel(i, starts);
    const std::vector<int64_t> start = place;
    std::vector<double> line;
    for (int64_t k = 0; k < x.sizes()[static_cast<size_t>(axis)]; ++k) {
      place[static_cast<size_t>(axis)] = k;
      line.push_back(x.at(place));
    }
    body(line, start);
  }
}

void expect_line(const Array& x, const Array& values, const Array& positions, int axis,
                 std::vector<int64_t> place, const std::vector<int64_t>& expected) {
  const auto at = static_cast<size_t>(axis);
  for (int64_t k = 0; k < values.sizes()[at]; ++k) {
    place[at] = k;
    const auto position = static_cast<int64_t>(positions.at(place));
    ASSERT_EQ(position, expected[static_cast<size_t>(k)]) << text(x.view()) << " at " << k;
    std::vector<int64_t> source = place;
    source[at] = position;
    const double value = values.at(place), origin = x.at(source);
    ASSERT_TRUE(value == origin || (std::isnan(value) && std::isnan(origin)));
    ASSERT_EQ(std::signbit(value), std::signbit(origin));
  }
}

Axes reversed_order(const Axes& sizes) {
  Axes order;
  for (uint32_t i = sizes.size(); i-- > 0;) order.push_back(i);
  return order;
}

void for_each_input(const std::function<void(const Case&, const Array&)>& body) {
  for (const Case& test : kCases) {
    for (DType dtype : kComputeDTypes) {
      const bool is_long = test.sizes[static_cast<size_t>(test.axis)] > 1000;
      if (is_long && size_of(dtype) < 4) continue;
      for (const bool reversed : {false, true}) {
        if (reversed && (is_long || test.sizes.size() == 1)) continue;
        Array x = reversed ? Array::ordered(dtype, test.sizes, reversed_order(test.sizes))
                           : Array(dtype, test.sizes);
        fill(x, 7);
        body(test, x);
      }
    }
  }
}

TEST(Sort, IsStableWithNaNLast) {
  for_each_input([](const Case& test, const Array& x) {
    for (SortOrder order : {SortOrder::Ascending, SortOrder::Descending}) {
      Array values(x.view().dtype, test.sizes), positions(DType::Int64, test.sizes);
      sort(x, test.axis, order, values, positions);
      for_each_line(x, test.axis, [&](const auto& line, auto place) {
        expect_line(x, values, positions, test.axis, place, order_of(line, order));
      });
    }
  });
}

TEST(TopK, TakesTheFirstOfTheOrder) {
  for_each_input([](const Case& test, const Array& x) {
    const int64_t n = test.sizes[static_cast<size_t>(test.axis)];
    for (int64_t k : {int64_t{0}, int64_t{1}, n / 3, n}) {
      if (k > n) continue;
      Axes sizes = test.sizes;
      sizes[static_cast<size_t>(test.axis)] = k;
      for (SortOrder order : {SortOrder::Ascending, SortOrder::Descending}) {
        Array values(x.view().dtype, sizes), positions(DType::Int64, sizes);
        top_k(x, test.axis, order, values, positions);
        for_each_line(x, test.axis, [&](const auto& line, auto place) {
          expect_line(x, values, positions, test.axis, place, order_of(line, order));
        });
      }
    }
  });
}

TEST(Median, IsTheLowerMiddleOrTheFirstNaN) {
  for_each_input([](const Case& test, const Array& x) {
    if (test.sizes[static_cast<size_t>(test.axis)] == 0) return;
    Axes sizes = test.sizes;
    sizes[static_cast<size_t>(test.axis)] = 1;
    Array values(x.view().dtype, sizes), positions(DType::Int64, sizes);
    median(x, test.axis, values, positions);
    for_each_line(x, test.axis, [&](const auto& line, auto place) {
      const auto nan =
          std::find_if(line.begin(), line.end(), [](double e) { return std::isnan(e); });
      const int64_t expected = nan != line.end()
                                   ? nan - line.begin()
                                   : order_of(line, SortOrder::Ascending)[(line.size() - 1) / 2];
      expect_line(x, values, positions, test.axis, place, {expected});
    });
  });
}

TEST(Sort, GivesTheSameForAnyThreadCount) {
  for (const Axes& sizes : {Axes{200'000}, Axes{40, 3000}}) {
    Array x(DType::Float32, sizes), values(DType::Float32, sizes), positions(DType::Int64, sizes);
    fill(x, 3);
    const int axis = static_cast<int>(sizes.size()) - 1;
    const auto run = [&] { sort(x, axis, SortOrder::Descending, values, positions); };
    expect_same_bits_for_any_thread_count(positions, run);
    Axes few = sizes;
    few.back() = 10;
    Array best(DType::Float32, few), places(DType::Int64, few);
    const auto pick = [&] { top_k(x, axis, SortOrder::Descending, best, places); };
    expect_same_bits_for_any_thread_count(places, pick);
  }
}

}  // namespace
}  // namespace lamella::kernels
