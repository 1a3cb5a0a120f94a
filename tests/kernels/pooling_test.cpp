// Pooling against plain loops in double, and values known from elsewhere.
#include "lamella/kernels/pooling.h"

#include "tests/kernels/array.h"
#include <gmock/gmock.h>

namespace lamella::kernels {
namespace {

using testing::HasSubstr;

struct Case {
  std::string name;
  Axes x;
  PoolingOptions options;
  Rounding rounding = Rounding::Floor;

  Axes y_sizes() const {
    Axes sizes = {x[0], x[1]};
    for (uint32_t i = 0; i < options.kernel.size(); ++i) {
      sizes.push_back(pooled_size(x[i + 2], options.kernel[i], options.stride[i],
                                  options.padding_before[i], options.padding_after[i],
                                  options.dilation[i], rounding));
    }
    return sizes;
  }
};

const Case kCases[] = {
    {"2x2", {2, 3, 6, 8}, {{2, 2}, {2, 2}, {0, 0}, {0, 0}, {1, 1}}},
    {"3x3 stride 2 padding 1", {2, 20, 9, 9}, {{3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}}},
    {"overlapping", {1, 17, 7, 6}, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}},
    {"ceil", {2, 5, 7, 8}, {{3, 2}, {2, 3}, {0, 1}, {0, 1}, {1, 1}}, Rounding::Ceil},
    {"ceil with padding", {1, 2, 4, 4}, {{3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}}, Rounding::Ceil},
    {"asymmetric", {1, 4, 5, 7}, {{3, 4}, {2, 1}, {1, 0}, {0, 3}, {1, 1}}},
    {"kernel of the whole", {3, 40, 5, 4}, {{5, 4}, {1, 1}, {0, 0}, {0, 0}, {1, 1}}},
    {"stride past the kernel", {1, 3, 9, 10}, {{2, 2}, {3, 4}, {0, 0}, {0, 0}, {1, 1}}},
    {"one pixel", {2, 3, 1, 1}, {{1, 1}, {1, 1}, {0, 0}, {0, 0}, {1, 1}}},
    {"large padding", {1, 3, 3, 3}, {{4, 4}, {1, 1}, {3, 3}, {3, 3}, {1, 1}}},
    {"no batch", {0, 3, 6, 6}, {{2, 2}, {2, 2}, {0, 0}, {0, 0}, {1, 1}}},
    {"no channels", {2, 0, 6, 6}, {{2, 2}, {2, 2}, {0, 0}, {0, 0}, {1, 1}}},
    {"kernel past the input", {2, 3, 2, 2}, {{3, 3}, {1, 1}, {0, 0}, {0, 0}, {1, 1}}},
    {"wide rows", {1, 2, 3, 700}, {{2, 3}, {1, 2}, {0, 1}, {0, 1}, {1, 1}}},
    {"many channels", {1, 600, 3, 4}, {{2, 2}, {1, 1}, {0, 0}, {0, 0}, {1, 1}}},
    {"sequence", {2, 3, 11}, {{3}, {2}, {1}, {1}, {1}}},
    {"volume", {1, 5, 4, 5, 6}, {{2, 3, 2}, {2, 1, 2}, {0, 1, 0}, {1, 1, 0}, {1, 1, 1}}},
    {"dilation", {1, 5, 9, 9}, {{3, 2}, {2, 1}, {2, 1}, {2, 1}, {2, 3}}},
};

struct Window {
  int64_t y;                    // the row-major number of its result
  int64_t padded;               // elements that lie in x or its padding
  std::vector<int64_t> inside;  // row-major numbers of those in x, in the window's order
};

std::vector<Window> windows_of(const Case& test) {
  std::vector<Window> windows;
  const Axes y_sizes = test.y_sizes();
  const Axes kernel(test.options.kernel.begin(), test.options.kernel.end());
  int64_t taps = 1, count = 1;
  for (int64_t size : kernel) taps *= size;
  for (int64_t size : y_sizes) count *= size;
  for (int64_t y = 0; y < count; ++y) {
    const auto place = unravel(y, y_sizes);
    Window window{.y = y, .padded = 0, .inside = {}};
    for (int64_t number = 0; number < taps; ++number) {
      const auto tap = unravel(number, kernel);
      std::vector<int64_t> x = {place[0], place[1]};
      bool inside = true, in_padding = true;
      for (uint32_t i = 0; i < kernel.size(); ++i) {
        x.push_back(place[i + 2] * test.options.stride[i] - test.options.padding_before[i] +
                    tap[i] * test.options.dilation[i]);
        inside &= x.back() >= 0 && x.back() < test.x[i + 2];
        in_padding &= x.back() < test.x[i + 2] + test.options.padding_after[i];
      }
      window.padded += in_padding ? 1 : 0;
      if (inside) window.inside.push_back(ravel(x, test.x));
    }
    windows.push_back(std::move(window));
  }
  return windows;
}

struct Operands {
  Array x, y, dx;
  Operands(const Case& test, DType dtype, int layouts)
      : x(make(dtype, test.x, layouts & 1)),
        y(make(dtype, test.y_sizes(), layouts & 2)),
        dx(make(dtype, test.x, layouts & 4)) {
    x.randomize(1), y.randomize(2), dx.fill_with(NAN);
  }
  static Array make(DType dtype, const Axes& sizes, int last) {
    const int rank = static_cast<int>(sizes.size());
    return last != 0 ? Array::ordered(dtype, sizes, channels_last_order(rank))
                     : Array(dtype, sizes);
  }
};

void for_each_form(const std::function<void(const Case&, const std::vector<Window>&, Operands&,
                                            const std::string&)>& body) {
  for (const Case& test : kCases) {
    const auto windows = windows_of(test);
    for (DType dtype : kFloats) {
      for (int layouts = 0; layouts < 8; ++layouts) {
        Operands operands(test, dtype, layouts);
        body(test, windows, operands,
             fmt::format("{}, {}, layouts {}", test.name, name(dtype), layouts));
      }
    }
  }
}

// Few distinct values, so that windows hold ties, and a NaN here and there.
void fill_with_ties(Array& x) {
  x.randomize(5, 0, 3);
  for (int64_t i = 0; i < x.count(); ++i) x.set_flat(i, std::floor(x.flat(i)));
  for (int64_t i = 7; i < x.count(); i += 31) x.set_flat(i, NAN);
}

constexpr size_t at(int64_t number) {
  return static_cast<size_t>(number);
}

int64_t first_maximum(const std::vector<double>& x, const Window& window) {
  int64_t best = -1;
  for (int64_t i : window.inside) {
    if (best >= 0 && std::isnan(x[at(best)])) break;
    if (best < 0 || x[at(i)] > x[at(best)] || std::isnan(x[at(i)])) best = i;
  }
  return best;
}

TEST(MaxPool, TakesTheFirstMaximumAndPropagatesNan) {
  for_each_form([](const Case& test, const auto& windows, Operands& o, const std::string& what) {
    fill_with_ties(o.x);
    std::vector<double> expected, expected_places;
    const int64_t places = [&] {
      int64_t count = 1;
      for (uint32_t i = 2; i < test.x.size(); ++i) count *= test.x[i];
      return count;
    }();
    const auto x = o.x.values();
    for (const Window& window : windows) {
      const int64_t best = first_maximum(x, window);
      expected.push_back(best < 0 ? -INFINITY : x[at(best)]);
      expected_places.push_back(best < 0 ? -1 : static_cast<double>(best % places));
    }
    max_pool(o.x, o.y, test.options);
    expect_near(o.y, expected, 0, what);
    for (DType index : {DType::Int32, DType::Int64}) {
      Array indices(index, o.y.sizes());
      o.y.fill_with(5);
      max_pool_with_indices(o.x, o.y, indices, test.options);
      expect_near(o.y, expected, 0, what);
      expect_near(indices, expected_places, 0, what + " indices");
    }
  });
}

TEST(MaxPool, GradientGoesToTheFirstMaximum) {
  for_each_form([](const Case& test, const auto& windows, Operands& o, const std::string& what) {
    fill_with_ties(o.x);
    std::vector<double> expected(static_cast<size_t>(o.x.count()));
    const auto x = o.x.values(), dy = o.y.values();
    for (const Window& window : windows) {
      const int64_t best = first_maximum(x, window);
      if (best >= 0) expected[at(best)] += dy[at(window.y)];
    }
    max_pool_backward(o.x, o.y, o.dx, test.options);
    expect_near(o.dx, expected, 10, what);
  });
}

TEST(AveragePool, DividesByTheChosenCount) {
  for_each_form([](const Case& test, const auto& windows, Operands& o, const std::string& what) {
    if (test.name == "dilation") return;
    const auto x = o.x.values(), dy = o.y.values();
    for (const AverageOptions& average :
         {AverageOptions{true, {}}, AverageOptions{false, {}}, AverageOptions{true, 7}}) {
      std::vector<double> expected, expected_gradient(static_cast<size_t>(o.x.count()));
      for (const Window& window : windows) {
        const int64_t elements =
            average.count_include_pad ? window.padded : static_cast<int64_t>(window.inside.size());
        const double divisor = static_cast<double>(average.divisor_override.value_or(elements));
        double sum = 0;
        for (int64_t i : window.inside) {
          sum += x[at(i)];
          expected_gradient[at(i)] += dy[at(window.y)] / divisor;
        }
        expected.push_back(window.inside.empty() ? 0 : sum / divisor);
      }
      average_pool_backward(o.y, o.dx, test.options, average);
      expect_near(o.dx, expected_gradient, 30, what + " gradient");
      Array y(o.x.view().dtype, o.y.sizes());
      average_pool(o.x, y, test.options, average);
      expect_near(y, expected, 10, what);
    }
  });
}

TEST(AveragePool, KnownValues) {
  Array x(DType::Float32, {1, 1, 4, 4}), y(DType::Float32, {1, 1, 3, 3});
  for (int64_t i = 0; i < 16; ++i) x.set_flat(i, static_cast<double>(i + 1));
  const PoolingOptions options{{3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}};
  ASSERT_EQ(pooled_size(4, 3, 2, 1, 1, 1, Rounding::Ceil), 3);
  average_pool(x, y, options, {.count_include_pad = true});
  expect_near(y, {14. / 9, 10. / 3, 2, 19. / 3, 11, 6, 4.5, 7.5, 4}, 1, "include padding");
  average_pool(x, y, options, {.count_include_pad = false});
  expect_near(y, {3.5, 5, 6, 9.5, 11, 12, 13.5, 15, 16}, 1, "exclude padding");
}

TEST(Pooling, SizesRoundAsAsked) {
  EXPECT_EQ(pooled_size(7, 2, 2, 0, 0, 1, Rounding::Floor), 3);
  EXPECT_EQ(pooled_size(7, 2, 2, 0, 0, 1, Rounding::Ceil), 4);
  // The fourth window would begin in the padding behind.
  EXPECT_EQ(pooled_size(5, 1, 2, 1, 1, 1, Rounding::Ceil), 3);
  EXPECT_EQ(pooled_size(4, 2, 3, 1, 1, 1, Rounding::Ceil), 2);
  EXPECT_EQ(pooled_size(2, 3, 1, 0, 0, 1, Rounding::Floor), 0);
  EXPECT_EQ(pooled_size(0, 1, 1, 0, 0, 1, Rounding::Floor), 0);
  EXPECT_EQ(pooled_size(9, 3, 1, 0, 0, 4, Rounding::Floor), 1);
}

TEST(Pooling, GivesTheSameBitsForAnyThreadCount) {
  for (int layouts : {0, 7}) {
    for (DType dtype : kFloats) {
      const Case& test = kCases[1];
      Operands o(test, dtype, layouts);
      expect_same_bits_for_any_thread_count(o.y, [&] { max_pool(o.x, o.y, test.options); });
      expect_same_bits_for_any_thread_count(
          o.dx, [&] { max_pool_backward(o.x, o.y, o.dx, test.options); });
      expect_same_bits_for_any_thread_count(
          o.dx, [&] { average_pool_backward(o.y, o.dx, test.options, {}); });
      expect_same_bits_for_any_thread_count(o.y, [&] { average_pool(o.x, o.y, test.options, {}); });
    }
  }
}

TEST(Pooling, RefusesWhatDoesNotFit) {
  Array x(DType::Float32, {1, 2, 4, 4}), y(DType::Float32, {1, 2, 3, 2});
  const PoolingOptions options{{2, 2}, {2, 2}, {0, 0}, {0, 0}, {1, 1}};
  EXPECT_THAT(message_of(ErrorKind::Value, [&] { max_pool(x, y, options); }),
              HasSubstr("[max_pool2d] y must have shape [1,2,2,2], or [1,2,2,2] rounded up, got "
                        "f32[1,2,3,2]"));
  Array integers(DType::Int32, {1, 2, 4, 4}), result(DType::Int32, {1, 2, 2, 2}),
      fitting(DType::Float32, {1, 2, 2, 2});
  message_of(ErrorKind::Type, [&] { max_pool(integers, result, options); });
  PoolingOptions wrong = options;
  wrong.kernel = {2};
  EXPECT_THAT(message_of(ErrorKind::Value, [&] { average_pool(x, fitting, wrong, {}); }),
              HasSubstr("[avg_pool2d] kernel must be 2 numbers of at least 1, got [2]"));
  message_of(ErrorKind::Value, [&] { average_pool(x, fitting, options, {.divisor_override = 0}); });
}

}  // namespace
}  // namespace lamella::kernels
