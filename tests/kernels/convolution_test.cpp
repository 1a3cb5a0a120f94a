// Convolutions and their gradients against plain loops in double.
#include "lamella/kernels/convolution.h"

#include <span>

#include "tests/kernels/array.h"
#include <gmock/gmock.h>

namespace lamella::kernels {
namespace {

using testing::HasSubstr;

struct Case {
  std::string name;
  Axes x;
  int64_t out_channels;
  Spatial kernel;
  ConvolutionOptions options;

  Axes weight_sizes() const {
    Axes sizes = {out_channels, x[1] / options.groups};
    for (int64_t size : kernel) sizes.push_back(size);
    return sizes;
  }
  Axes y_sizes() const {
    Axes sizes = {x[0], out_channels};
    for (uint32_t i = 0; i < kernel.size(); ++i) {
      sizes.push_back(convolved_size(x[i + 2], kernel[i], options.stride[i],
                                     options.padding_before[i], options.padding_after[i],
                                     options.dilation[i]));
    }
    return sizes;
  }
};

const Case kCases[] = {
    {"plain", {2, 3, 6, 7}, 4, {3, 3}, {{1, 1}, {0, 0}, {0, 0}, {1, 1}, 1}},
    {"same", {2, 8, 9, 9}, 16, {3, 3}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 1}},
    {"one by one", {2, 16, 5, 5}, 32, {1, 1}, {{1, 1}, {0, 0}, {0, 0}, {1, 1}, 1}},
    {"one by one, stride 2", {2, 16, 7, 7}, 32, {1, 1}, {{2, 2}, {0, 0}, {0, 0}, {1, 1}, 1}},
    {"stride 2", {2, 3, 17, 17}, 64, {7, 7}, {{2, 2}, {3, 3}, {3, 3}, {1, 1}, 1}},
    {"asymmetric padding", {1, 3, 8, 8}, 5, {3, 3}, {{2, 2}, {0, 0}, {1, 1}, {1, 1}, 1}},
    {"odd padding", {1, 3, 5, 6}, 5, {2, 4}, {{1, 2}, {3, 0}, {0, 5}, {1, 1}, 1}},
    {"dilation", {2, 4, 11, 12}, 6, {3, 2}, {{1, 1}, {2, 1}, {2, 1}, {2, 3}, 1}},
    {"dilation and stride", {1, 16, 15, 15}, 16, {3, 3}, {{2, 2}, {2, 2}, {2, 2}, {2, 2}, 1}},
    {"groups", {2, 8, 6, 6}, 12, {3, 3}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 4}},
    {"wide groups", {1, 64, 6, 6}, 64, {3, 3}, {{2, 2}, {1, 1}, {1, 1}, {1, 1}, 2}},
    {"depthwise", {2, 16, 9, 9}, 16, {3, 3}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 16}},
    {"depthwise, stride 2", {2, 24, 9, 9}, 24, {5, 5}, {{2, 2}, {2, 2}, {2, 2}, {1, 1}, 24}},
    {"depthwise, 7 wide, dilated", {3, 19, 6, 8}, 19, {3, 7}, {{1, 1}, {1, 6}, {1, 6}, {1, 2}, 19}},
    {"depthwise, 5x5, wide", {2, 75, 12, 12}, 75, {5, 5}, {{1, 1}, {2, 2}, {2, 2}, {1, 1}, 75}},
    {"depthwise, dilated", {2, 70, 9, 9}, 70, {3, 3}, {{1, 1}, {2, 2}, {2, 2}, {2, 2}, 70}},
    {"depthwise, many images", {33, 16, 4, 5}, 16, {5, 5}, {{1, 2}, {1, 0}, {3, 4}, {1, 1}, 16}},
    {"depthwise, multiplier 2", {1, 6, 5, 5}, 12, {3, 3}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 6}},
    {"one channel", {3, 1, 12, 12}, 6, {5, 5}, {{1, 1}, {2, 2}, {2, 2}, {1, 1}, 1}},
    {"one output channel", {2, 8, 6, 6}, 1, {3, 3}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 1}},
    {"one pixel", {2, 5, 1, 1}, 7, {1, 1}, {{1, 1}, {0, 0}, {0, 0}, {1, 1}, 1}},
    {"only padding", {1, 2, 2, 2}, 3, {2, 2}, {{2, 2}, {2, 2}, {2, 2}, {1, 1}, 1}},
    {"last rows unread", {1, 3, 8, 9}, 4, {3, 3}, {{3, 4}, {0, 0}, {0, 0}, {1, 1}, 1}},
    {"no batch", {0, 3, 6, 6}, 4, {3, 3}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 1}},
    {"no input channels", {2, 0, 6, 6}, 4, {3, 3}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 1}},
    {"no output channels", {2, 3, 6, 6}, 0, {3, 3}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 1}},
    {"kernel past the input", {2, 3, 2, 2}, 4, {3, 3}, {{1, 1}, {0, 0}, {0, 0}, {1, 1}, 1}},
    {"sequence", {2, 4, 10}, 6, {3}, {{2}, {1}, {1}, {1}, 2}},
    {"volume", {1, 3, 5, 6, 4}, 4, {3, 2, 3}, {{1, 2, 1}, {1, 0, 1}, {1, 1, 0}, {1, 1, 1}, 1}},
};

// Where the data gradient is that of few channels and several images.
const Case kFewChannels[] = {
    {"few channels, many images", {9, 6, 8, 7}, 16, {5, 5}, {{1, 1}, {0, 0}, {0, 0}, {1, 1}, 1}},
    {"one channel, many images", {8, 1, 11, 9}, 17, {3, 4}, {{2, 3}, {1, 2}, {2, 0}, {1, 1}, 1}},
    {"eight channels, many images", {8, 8, 6, 6}, 16, {3, 3}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 1}},
    {"few channels, far strides", {8, 3, 9, 10}, 20, {2, 2}, {{3, 4}, {0, 1}, {1, 0}, {1, 1}, 1}},
    {"few channels, one row", {8, 4, 5, 5}, 16, {1, 3}, {{1, 1}, {0, 0}, {0, 0}, {1, 1}, 1}},
    {"few channels, wide", {8, 5, 9, 70}, 16, {4, 4}, {{1, 1}, {3, 3}, {0, 0}, {1, 1}, 1}},
};

// One product of the sum: row-major numbers of the elements of x, weight and y.
struct Product {
  int64_t x, weight, y;
};

std::vector<Product> products_of(const Case& test) {
  std::vector<Product> products;
  const Axes x_sizes = test.x, weight_sizes = test.weight_sizes(), y_sizes = test.y_sizes();
  const auto count = [](const Axes& sizes) {
    int64_t all = 1;
    for (int64_t size : sizes) all *= size;
    return all;
  };
  const Axes kernel(test.kernel.begin(), test.kernel.end());
  const int64_t group_in = test.x[1] / test.options.groups;
  const int64_t group_out = test.out_channels / test.options.groups;
  for (int64_t y = 0; y < count(y_sizes); ++y) {
    const auto place = unravel(y, y_sizes);
    const int64_t k = place[1];
    for (int64_t c = 0; c < group_in; ++c) {
      for (int64_t tap = 0; tap < count(kernel); ++tap) {
        const auto taps = unravel(tap, kernel);
        std::vector<int64_t> x = {place[0], k / group_out * group_in + c}, weight = {k, c};
        bool inside = true;
        for (uint32_t i = 0; i < kernel.size(); ++i) {
          weight.push_back(taps[i]);
          x.push_back(place[i + 2] * test.options.stride[i] - test.options.padding_before[i] +
                      taps[i] * test.options.dilation[i]);
          inside &= x.back() >= 0 && x.back() < x_sizes[i + 2];
        }
        if (inside) products.push_back({ravel(x, x_sizes), ravel(weight, weight_sizes), y});
      }
    }
  }
  return products;
}

constexpr size_t at(int64_t number) {
  return static_cast<size_t>(number);
}

struct Operands {
  Array x, weight, bias, y;
  Operands(const Case& test, DType dtype, bool x_last, bool y_last)
      : x(x_last
              ? Array::ordered(dtype, test.x, channels_last_order(static_cast<int>(test.x.size())))
              : Array(dtype, test.x)),
        weight(dtype, test.weight_sizes()),
        bias(dtype, {test.out_channels}),
        y(y_last ? Array::ordered(dtype, test.y_sizes(),
                                  channels_last_order(static_cast<int>(test.x.size())))
                 : Array(dtype, test.y_sizes())) {
    x.randomize(1), weight.randomize(2), bias.randomize(3), y.randomize(4);
  }
};

void for_each_form(std::span<const Case> cases,
                   const std::function<void(const Case&, const std::vector<Product>&, Operands&,
                                            const std::string&)>& body) {
  for (const Case& test : cases) {
    const auto products = products_of(test);
    for (DType dtype : kFloats) {
      for (int layouts = 0; layouts < 4; ++layouts) {
        Operands operands(test, dtype, (layouts & 1) != 0, (layouts & 2) != 0);
        body(test, products, operands,
             fmt::format("{}, {}, layouts {}", test.name, name(dtype), layouts));
      }
    }
  }
}

TEST(Convolution, ForwardMatchesPlainLoops) {
  for_each_form(kCases, [](const Case& test, const auto& products, Operands& o,
                           const std::string& what) {
    const auto x = o.x.values(), weight = o.weight.values(), y = o.y.values();
    for (const Array* bias : {static_cast<const Array*>(nullptr), &std::as_const(o.bias)}) {
      std::vector<double> expected(static_cast<size_t>(o.y.count()));
      const int64_t places = o.y.count() / std::max<int64_t>(1, test.x[0] * test.out_channels);
      for (size_t i = 0; i < expected.size(); ++i) {
        const int64_t k = static_cast<int64_t>(i) / places % test.out_channels;
        expected[i] = bias != nullptr ? bias->flat(k) : 0;
      }
      for (const Product& p : products) expected[at(p.y)] += x[at(p.x)] * weight[at(p.weight)];
      o.y.fill_with(NAN);
      const TensorView* bias_view = bias != nullptr ? &bias->view() : nullptr;
      const int64_t bytes = convolution_scratch_bytes(o.x, o.weight, bias_view, o.y, test.options);
      Ref<Allocation> scratch = guarded_pool().allocate((bytes + 63) / 64 * 64);
      convolution(o.x, o.weight, bias_view, o.y, test.options, {scratch->data(), bytes});
      expect_near(o.y, expected, 150, what);
    }
  });
}

TEST(Convolution, BackwardDataMatchesPlainLoops) {
  const auto check = [](const Case& test, const auto& products, Operands& o,
                        const std::string& what) {
    const auto x = o.x.values(), weight = o.weight.values(), y = o.y.values();
    std::vector<double> expected(static_cast<size_t>(o.x.count()));
    for (const Product& p : products) expected[at(p.x)] += y[at(p.y)] * weight[at(p.weight)];
    o.x.fill_with(NAN);
    const int64_t bytes = convolution_backward_data_scratch_bytes(o.y, o.weight, o.x, test.options);
    Ref<Allocation> scratch = guarded_pool().allocate((bytes + 63) / 64 * 64);
    convolution_backward_data(o.y, o.weight, o.x, test.options, {scratch->data(), bytes});
    expect_near(o.x, expected, 800, what);
  };
  for_each_form(kCases, check);
  for_each_form(kFewChannels, check);
}

TEST(Convolution, BackwardWeightsMatchesPlainLoops) {
  for_each_form(
      kCases, [](const Case& test, const auto& products, Operands& o, const std::string& what) {
        const auto x = o.x.values(), weight = o.weight.values(), y = o.y.values();
        std::vector<double> expected(static_cast<size_t>(o.weight.count()));
        for (const Product& p : products) expected[at(p.weight)] += x[at(p.x)] * y[at(p.y)];
        std::vector<double> expected_bias(static_cast<size_t>(test.out_channels));
        const int64_t places = o.y.count() / std::max<int64_t>(1, test.x[0] * test.out_channels);
        for (int64_t i = 0; i < o.y.count(); ++i) {
          expected_bias[static_cast<size_t>(i / places % test.out_channels)] += y[at(i)];
        }
        for (const TensorView* bias : {static_cast<const TensorView*>(nullptr), &o.bias.view()}) {
          o.weight.fill_with(NAN);
          o.bias.fill_with(NAN);
          const int64_t bytes =
              convolution_backward_weights_scratch_bytes(o.x, o.y, o.weight, bias, test.options);
          Ref<Allocation> scratch = guarded_pool().allocate((bytes + 63) / 64 * 64);
          convolution_backward_weights(o.x, o.y, o.weight, bias, test.options,
                                       {scratch->data(), bytes});
          expect_near(o.weight, expected, 300, what);
          if (bias != nullptr) expect_near(o.bias, expected_bias, 300, what + ", bias");
        }
      });
}

TEST(Convolution, TakesOtherStrides) {
  const Case& test = kCases[1];
  Operands o(test, DType::Float32, true, true);
  convolution(o.x, o.weight, &o.bias.view(), o.y, test.options);
  // The same numbers with the axes in an odd order.
  Array x = Array::ordered(DType::Float32, o.x.sizes(), {3, 1, 0, 2});
  Array weight = Array::ordered(DType::Float32, o.weight.sizes(), {3, 2, 1, 0});
  Array y = Array::ordered(DType::Float32, o.y.sizes(), {1, 0, 3, 2});
  for (int64_t i = 0; i < x.count(); ++i) x.set_flat(i, o.x.flat(i));
  for (int64_t i = 0; i < weight.count(); ++i) weight.set_flat(i, o.weight.flat(i));
  convolution(x, weight, &o.bias.view(), y, test.options);
  EXPECT_EQ(y.values(), o.y.values());
}

TEST(Convolution, RepeatsItsBits) {
  const Case test{"", {4, 32, 14, 14}, 64, {3, 3}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 1}};
  Operands o(test, DType::Float32, true, true);
  const auto run = [&] {
    convolution(o.x, o.weight, nullptr, o.y, test.options);
    Array dx(DType::Float32, test.x), dweight(DType::Float32, test.weight_sizes());
    convolution_backward_data(o.y, o.weight, dx, test.options);
    convolution_backward_weights(o.x, o.y, dweight, &o.bias.view(), test.options);
    std::vector<char> all = o.y.bytes();
    for (const Array* array : {&dx, &dweight, &o.bias}) {
      const auto bytes = array->bytes();
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
    return all;
  };
  const auto first = run();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(run(), first);
}

TEST(Convolution, OwnKernelsGiveTheSameBitsForAnyThreadCount) {
  const Case& test = kCases[7];
  Operands o(test, DType::Float64, true, false);
  expect_same_bits_for_any_thread_count(
      o.y, [&] { convolution(o.x, o.weight, nullptr, o.y, test.options); });
  expect_same_bits_for_any_thread_count(
      o.x, [&] { convolution_backward_data(o.y, o.weight, o.x, test.options); });
  expect_same_bits_for_any_thread_count(o.bias, [&] {
    convolution_backward_weights(o.x, o.y, o.weight, &o.bias.view(), test.options);
  });
}

TEST(Convolution, DepthwiseWeightGradientsHaveTheSameBitsForAnyThreadCount) {
  const Case test{"", {5, 40, 9, 9}, 40, {5, 5}, {{2, 2}, {2, 2}, {2, 2}, {1, 1}, 40}};
  for (DType dtype : {DType::Float32, DType::BFloat16, DType::Float16}) {
    Operands o(test, dtype, true, true);
    expect_same_bits_for_any_thread_count(
        o.weight, [&] { convolution_backward_weights(o.x, o.y, o.weight, nullptr, test.options); });
  }
}

TEST(Convolution, DataGradientsOfFewChannelsHaveTheSameBitsForAnyThreadCount) {
  const Case test{"", {11, 3, 9, 9}, 18, {5, 5}, {{1, 1}, {2, 2}, {2, 2}, {1, 1}, 1}};
  for (DType dtype : {DType::Float32, DType::BFloat16, DType::Float16}) {
    Operands o(test, dtype, true, true);
    expect_same_bits_for_any_thread_count(
        o.x, [&] { convolution_backward_data(o.y, o.weight, o.x, test.options); });
  }
}

TEST(Convolution, ANaNStaysWithinItsWindow) {
  for (const Case& test : kFewChannels) {
    Operands o(test, DType::Float32, true, true);
    for (const double odd : {static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
      o.y.randomize(4);
      o.y.set_flat(o.y.count() / 2, odd);
      std::vector<bool> touched(at(o.x.count()), false);
      for (const Product& p : products_of(test)) {
        if (p.y == o.y.count() / 2) touched[at(p.x)] = true;
      }
      convolution_backward_data(o.y, o.weight, o.x, test.options);
      for (int64_t i = 0; i < o.x.count(); ++i) {
        if (!touched[at(i)]) {
          ASSERT_TRUE(std::isfinite(o.x.flat(i))) << test.name << ", element " << i;
        }
      }
    }
  }
}

TEST(Convolution, RefusesWhatDoesNotFit) {
  Array x(DType::Float32, {8, 4, 32, 32}), weight(DType::Float32, {16, 3, 3, 3}),
      y(DType::Float32, {8, 16, 30, 30});
  const auto options = convolution_defaults(2);
  EXPECT_THAT(message_of(ErrorKind::Value, [&] { convolution(x, weight, nullptr, y, options); }),
              HasSubstr("[conv2d] weight has 3 input channels for 1 groups, but x has 4 "
                        "(x: f32[8,4,32,32], weight: f32[16,3,3,3])"));
  Array fitting(DType::Float32, {16, 4, 3, 3}), small(DType::Float32, {8, 16, 29, 30}),
      half(DType::Float16, {8, 16, 30, 30});
  EXPECT_THAT(
      message_of(ErrorKind::Value, [&] { convolution(x, fitting, nullptr, small, options); }),
      HasSubstr("[conv2d] y must have shape [8,16,30,30], got f32[8,16,29,30]"));
  message_of(ErrorKind::Type, [&] { convolution(x, fitting, nullptr, half, options); });
  auto wrong = options;
  wrong.stride = {0, 1};
  EXPECT_THAT(message_of(ErrorKind::Value, [&] { convolution(x, fitting, nullptr, y, wrong); }),
              HasSubstr("[conv2d] stride must be 2 numbers of at least 1, got [0,1]"));
  wrong = options;
  wrong.groups = 3;
  message_of(ErrorKind::Value, [&] { convolution(x, fitting, nullptr, y, wrong); });
}

}  // namespace
}  // namespace lamella::kernels
