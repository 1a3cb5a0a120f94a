// Running results against plain loops in the order that is promised.
#include "lamella/kernels/scan.h"

#include "tests/kernels/array.h"

namespace lamella::kernels {
namespace {

struct Case {
  Axes sizes;
  int axis;
};
const Case kCases[] = {{{7}, 0},         {{5, 9}, 1},      {{9, 5}, 0},    {{3, 30, 2}, 1},
                       {{0, 3}, 1},      {{3, 0}, 1},      {{4, 1}, 1},    {{9000}, 0},
                       {{2, 17'000}, 1}, {{17'000, 3}, 0}, {{4100, 5}, 0}, {{100, 70}, 0},
                       {{5, 4097}, 1}};

Axes reversed_order(const Axes& sizes) {
  Axes order;
  for (uint32_t i = sizes.size(); i-- > 0;) order.push_back(i);
  return order;
}

// The numbers, in row-major order, of the elements of each line, in the order of the scan.
std::vector<std::vector<int64_t>> lines_of(const Array& x, const ScanOptions& options) {
  const auto at = static_cast<size_t>(options.axis);
  Axes starts = x.sizes();
  starts[at] = 1;
  int64_t count = 1;
  for (int64_t size : starts) count *= size;
  std::vector<std::vector<int64_t>> lines;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<int64_t> place = unravel(i, starts), line;
    for (int64_t k = 0; k < x.sizes()[at]; ++k) {
      place[at] = options.direction == ScanDirection::Forward ? k : x.sizes()[at] - 1 - k;
      line.push_back(x.flat_of(place));
    }
    lines.push_back(line);
  }
  return lines;
}

void for_each_input(
    const std::function<void(const Case&, const Array&, const ScanOptions&)>& body) {
  for (const Case& test : kCases) {
    for (DType dtype : kFloats) {
      for (const bool reversed : {false, true}) {
        if (reversed && test.sizes.size() == 1) continue;
        Array x = reversed ? Array::ordered(dtype, test.sizes, reversed_order(test.sizes))
                           : Array(dtype, test.sizes);
        x.randomize(5, -1, 1);
        for (ScanDirection direction : {ScanDirection::Forward, ScanDirection::Backward}) {
          for (ScanExtent extent : {ScanExtent::Inclusive, ScanExtent::Exclusive}) {
            body(test, x, {test.axis, direction, extent});
          }
        }
      }
    }
  }
}

// The bits promised: in blocks, one after the other, in the accumulation dtype.
template <typename Sum>
std::vector<Sum> sums_of(const std::vector<Sum>& line, ScanExtent extent) {
  std::vector<Sum> sums;
  Sum base = 0, block = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const bool first_block = i < static_cast<size_t>(kScanBlock);
    if (i > 0 && i % static_cast<size_t>(kScanBlock) == 0) {
      base = i == static_cast<size_t>(kScanBlock) ? block : base + block;
      block = 0;
    }
    const Sum before = block;
    block += line[i];
    const Sum shown = extent == ScanExtent::Inclusive ? block : before;
    sums.push_back(first_block ? shown : base + shown);
  }
  return sums;
}

double rounded(double value, DType dtype) {
  uint64_t element = 0;
  store_double(&element, dtype, value);
  return load_double(&element, dtype);
}

template <typename Sum>
void expect_sums(const Array& x, const Array& out, const ScanOptions& options) {
  for (const std::vector<int64_t>& numbers : lines_of(x, options)) {
    std::vector<Sum> line;
    for (int64_t number : numbers) line.push_back(static_cast<Sum>(x.flat(number)));
    const std::vector<Sum> sums = sums_of(line, options.extent);
    for (size_t i = 0; i < sums.size(); ++i) {
      const double expected = rounded(static_cast<double>(sums[i]), out.view().dtype);
      ASSERT_EQ(out.flat(numbers[i]), expected) << text(x.view()) << " at " << i;
    }
  }
}

TEST(Cumsum, KeepsItsOrderToTheLastBit) {
  for_each_input([](const Case&, const Array& x, const ScanOptions& options) {
    Array out(x.view().dtype, x.sizes());
    cumsum(x, options, out);
    if (x.view().dtype == DType::Float64) {
      expect_sums<double>(x, out, options);
    } else {
      expect_sums<float>(x, out, options);
    }
  });
}

TEST(Cumsum, GivesTheSameForAnyThreadCount) {
  for (const Case& test : {Case{{100'000}, 0}, Case{{3, 40'000}, 1}, Case{{40'000, 5}, 0}}) {
    Array x(DType::Float32, test.sizes), out(DType::Float32, test.sizes);
    x.randomize(2);
    expect_same_bits_for_any_thread_count(out, [&] { cumsum(x, {.axis = test.axis}, out); });
  }
}

TEST(Cumsum, AddsIntegersUpInInt64) {
  for (DType dtype : {DType::Bool, DType::Int8, DType::UInt8, DType::Int16, DType::Int32}) {
    Array x(dtype, {3, 700}), out(DType::Int64, {3, 700});
    x.fill_with(dtype == DType::Bool ? 1 : 100);
    cumsum(x, {.axis = 1}, out);
    EXPECT_EQ(out.at({2, 699}), dtype == DType::Bool ? 700 : 70'000);
  }
}

TEST(Cumprod, MultipliesOneAfterTheOther) {
  for_each_input([](const Case&, const Array& x, const ScanOptions& options) {
    if (x.view().dtype != DType::Float64) return;
    Array out(x.view().dtype, x.sizes());
    cumprod(x, options, out);
    for (const auto& line : lines_of(x, options)) {
      double product = 1;
      for (int64_t number : line) {
        const double before = product;
        product *= x.flat(number);
        ASSERT_EQ(out.flat(number), options.extent == ScanExtent::Inclusive ? product : before);
      }
    }
  });
}

TEST(RunningExtremum, KeepsTheLastOfEqualOnesAndNaN) {
  Array x(DType::Float32, {7}, {1., 3, 2, 3, NAN, 5, NAN}), values(DType::Float32, {7}),
      positions(DType::Int64, {7});
  running_extremum(Extremum::Maximum, x, {.axis = 0}, values, positions);
  EXPECT_EQ(positions.values(), (std::vector<double>{0, 1, 1, 3, 4, 4, 6}));
  EXPECT_EQ(values.flat(3), 3);
  for (int64_t i = 4; i < 7; ++i) EXPECT_TRUE(std::isnan(values.flat(i)));
  running_extremum(Extremum::Minimum, x, {.axis = 0}, values, positions);
  EXPECT_EQ(positions.values(), (std::vector<double>{0, 0, 0, 0, 4, 4, 6}));
}

TEST(LogCumSumExp, NeitherOverflowsNorLosesSmallTerms) {
  Array x(DType::Float32, {4}, {-INFINITY, 1000, 1000, -1000}), out(DType::Float32, {4});
  logcumsumexp(x, {.axis = 0}, out);
  EXPECT_EQ(out.flat(0), -INFINITY);
  EXPECT_EQ(out.flat(1), 1000);
  EXPECT_NEAR(out.flat(2), 1000 + std::log(2), 1e-4);
  logcumsumexp(x, {.axis = 0, .direction = ScanDirection::Backward}, out);
  EXPECT_EQ(out.flat(3), -1000);
}

TEST(LinearRecurrence, IgnoresTheFirstFactor) {
  Array factor(DType::Float64, {4}, {NAN, 2, 0, -1}), addend(DType::Float64, {4}, {1., 1, 5, 1}),
      out(DType::Float64, {4});
  linear_recurrence(factor, addend, {.axis = 0}, out);
  EXPECT_EQ(out.values(), (std::vector<double>{1, 3, 5, -4}));
}

}  // namespace
}  // namespace lamella::kernels
