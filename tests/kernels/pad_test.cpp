// Padding in every mode, and its gradient.
#include "tests/kernels/array.h"
#include <gmock/gmock.h>

#include "lamella/kernels/copy.h"

namespace lamella::kernels {
namespace {

using testing::HasSubstr;

constexpr PadMode kModes[] = {PadMode::Constant, PadMode::Reflect, PadMode::Replicate,
                              PadMode::Circular};

// The place of an axis of x that place `at` of the padded axis shows; -1 for the constant.
int64_t shown(PadMode mode, int64_t at, int64_t before, int64_t size) {
  int64_t from = at - before;
  if (from >= 0 && from < size) return from;
  switch (mode) {
    case PadMode::Constant:
      return -1;
    case PadMode::Reflect:
      return from < 0 ? -from : 2 * (size - 1) - from;
    case PadMode::Replicate:
      return from < 0 ? 0 : size - 1;
    default:
      return (from + size) % size;
  }
}

// The row-major number of the element of x that each element of out shows; -1 for the constant.
std::vector<int64_t> sources(PadMode mode, const Axes& x, const Axes& before, const Axes& out) {
  std::vector<int64_t> all;
  int64_t count = 1;
  for (int64_t size : out) count *= size;
  for (int64_t flat = 0; flat < count; ++flat) {
    int64_t rest = flat, source = 0, scale = 1;
    for (uint32_t axis = out.size(); axis-- > 0;) {
      const int64_t from = shown(mode, rest % out[axis], before[axis], x[axis]);
      rest /= out[axis];
      source = source < 0 || from < 0 ? -1 : source + from * scale;
      scale *= x[axis];
    }
    all.push_back(source);
  }
  return all;
}

struct Case {
  Axes x, before, after;
  bool constant_only = false;
};
const Case kCases[] = {
    {{5}, {2}, {3}},
    {{5}, {0}, {4}},
    {{4, 6}, {1, 2}, {3, 0}},
    {{2, 3, 5, 7}, {0, 0, 2, 3}, {0, 0, 1, 6}},
    {{1, 2}, {0, 1}, {0, 1}},
    {{2, 0, 3}, {1, 0, 2}, {1, 0, 0}},
    {{5}, {7}, {9}, true},
    {{6, 7}, {-2, 1}, {1, -3}, true},
    {{4}, {-3}, {-1}, true},
    {{0}, {2}, {1}, true},
    {{}, {}, {}},
};

TEST(Pad, ShowsWhatTheModeSays) {
  for (const Case& test : kCases) {
    Axes sizes = test.x;
    for (uint32_t i = 0; i < sizes.size(); ++i) sizes[i] += test.before[i] + test.after[i];
    for (PadMode mode : kModes) {
      if (mode != PadMode::Constant && test.constant_only) continue;
      for (DType dtype : kComputeDTypes) {
        Array x(dtype, test.x), out(dtype, sizes), element(dtype, {});
        x.randomize(1, 0, 100);
        element.set_flat(0, 1);
        pad(x, test.before, test.after, mode, element.view().data, out);
        const auto from = sources(mode, test.x, test.before, sizes);
        for (int64_t i = 0; i < out.count(); ++i) {
          const int64_t source = from[static_cast<size_t>(i)];
          ASSERT_EQ(out.flat(i), source < 0 ? 1 : x.flat(source)) << text(x.view()) << i;
        }
        if (!is_float(dtype)) continue;
        Array dy(dtype, sizes), dx(dtype, test.x);
        dy.randomize(2);
        std::vector<double> expected(static_cast<size_t>(dx.count()));
        for (int64_t i = 0; i < dy.count(); ++i) {
          const int64_t source = from[static_cast<size_t>(i)];
          if (source >= 0) expected[static_cast<size_t>(source)] += dy.flat(i);
        }
        pad_backward(dy, test.before, test.after, mode, dx);
        expect_near(dx, expected, 20, "gradient");
      }
    }
  }
}

TEST(Pad, ZeroIsTheDefault) {
  Array x(DType::BFloat16, {1}), out(DType::BFloat16, {3});
  x.set_flat(0, 5);
  pad(x, {1}, {1}, PadMode::Constant, nullptr, out);
  EXPECT_EQ(out.values(), (std::vector<double>{0, 5, 0}));
}

TEST(Pad, RefusesAmountsTheModeDoesNotAllow) {
  Array x(DType::Float32, {3}), six(DType::Float32, {6}), seven(DType::Float32, {7});
  EXPECT_THAT(
      message_of(ErrorKind::Value, [&] { pad(x, {3}, {0}, PadMode::Reflect, nullptr, six); }),
      HasSubstr("[pad] cannot add 3 and 0 elements to axis 0 of f32[3] in reflect mode"));
  pad(x, {3}, {0}, PadMode::Circular, nullptr, six);
  message_of(ErrorKind::Value, [&] { pad(x, {4}, {0}, PadMode::Circular, nullptr, seven); });
  message_of(ErrorKind::Value, [&] { pad(x, {4}, {0}, PadMode::Constant, nullptr, six); });
  message_of(ErrorKind::Value, [&] { pad(x, {1, 1}, {0}, PadMode::Constant, nullptr, six); });
}

}  // namespace
}  // namespace lamella::kernels
