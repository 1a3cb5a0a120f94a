// Windows that do not overlap, channels last, against plain loops: ties, NaN, sizes that leave a
// rest.
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "lamella/kernels/pooling.h"

namespace lamella::kernels {
namespace {

struct Shape4 {
  int64_t n, c, h, w;
  int64_t count() const { return n * c * h * w; }
  TensorView channels_last(float* data) const {
    return {data, DType::Float32, Axes{n, c, h, w}, Axes{h * w * c, 1, w * c, c}};
  }
  TensorView row_major(float* data) const {
    return {data, DType::Float32, Axes{n, c, h, w}, Axes{c * h * w, h * w, w, 1}};
  }
  size_t at(int64_t i, int64_t j, int64_t k, int64_t l) const {
    return static_cast<size_t>(((i * h + k) * w + l) * c + j);
  }
};

TEST(DisjointPooling, MatchesPlainLoops) {
  std::mt19937 random(3);
  for (const Shape4 x : {Shape4{3, 6, 28, 28}, Shape4{2, 16, 10, 10}, Shape4{1, 1, 5, 7},
                         Shape4{2, 3, 2, 2}, Shape4{2, 40, 9, 4}}) {
    for (const int64_t kernel : {2, 3}) {
      const Shape4 y{x.n, x.c, x.h / kernel, x.w / kernel};
      if (y.h == 0 || y.w == 0) continue;
      std::vector<float> input(static_cast<size_t>(x.count())), gradient(input.size(), -1);
      for (float& element : input) {
        const auto draw = random() % 12;  // few values: many ties
        element = draw == 11 ? NAN : static_cast<float>(draw);
      }
      std::vector<float> output(static_cast<size_t>(y.count())), cotangent(output.size());
      for (size_t i = 0; i < cotangent.size(); ++i) cotangent[i] = static_cast<float>(i + 1);
      PoolingOptions options{.kernel = {kernel, kernel},
                             .stride = {kernel, kernel},
                             .padding_before = {0, 0},
                             .padding_after = {0, 0},
                             .dilation = {1, 1}};
      max_pool(x.channels_last(input.data()), y.channels_last(output.data()), options);
      max_pool_backward(x.channels_last(input.data()), y.row_major(cotangent.data()),
                        x.channels_last(gradient.data()), options);
      std::vector<float> expected(gradient.size(), 0);
      size_t next = 0;
      for (int64_t n = 0; n < y.n; ++n) {
        for (int64_t c = 0; c < y.c; ++c) {
          for (int64_t h = 0; h < y.h; ++h) {
            for (int64_t w = 0; w < y.w; ++w) {
              size_t best = x.at(n, c, h * kernel, w * kernel);
              for (int64_t i = 0; i < kernel; ++i) {
                for (int64_t j = 0; j < kernel; ++j) {
                  const size_t at = x.at(n, c, h * kernel + i, w * kernel + j);
                  const bool first_nan = std::isnan(input[at]) && !std::isnan(input[best]);
                  if (first_nan || input[at] > input[best]) best = at;
                }
              }
              const float got = output[y.at(n, c, h, w)];
              EXPECT_TRUE(got == input[best] || (std::isnan(got) && std::isnan(input[best])));
              expected[best] = cotangent[next++];
            }
          }
        }
      }
      EXPECT_EQ(gradient, expected);
    }
  }
}

}  // namespace
}  // namespace lamella::kernels
