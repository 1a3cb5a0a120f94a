// Convolution against its definition, and all its gradients.
#include "tests/ops/gradients.h"

namespace lamella::test {
namespace {

// The definition, element by element.
std::vector<double> convolved(const Tensor& x, const Tensor& weight, int64_t stride,
                              int64_t padding, int64_t dilation, int64_t groups) {
  const auto size = [](const Tensor& t, int64_t axis) { return t.size(axis).value(); };
  const auto in = x.to_vector<double>(), w = weight.to_vector<double>();
  const int64_t n = size(x, 0), c = size(x, 1), h = size(x, 2), v = size(x, 3);
  const int64_t k = size(weight, 0), cg = size(weight, 1), kh = size(weight, 2),
                kw = size(weight, 3);
  const int64_t oh = (h + 2 * padding - dilation * (kh - 1) - 1) / stride + 1;
  const int64_t ow = (v + 2 * padding - dilation * (kw - 1) - 1) / stride + 1;
  std::vector<double> out;
  for (int64_t b = 0; b < n; ++b)
    for (int64_t o = 0; o < k; ++o)
      for (int64_t i = 0; i < oh; ++i)
        for (int64_t j = 0; j < ow; ++j) {
          double sum = 0;
          for (int64_t q = 0; q < cg; ++q)
            for (int64_t r = 0; r < kh; ++r)
              for (int64_t s = 0; s < kw; ++s) {
                const int64_t y = i * stride - padding + r * dilation,
                              z = j * stride - padding + s * dilation;
                if (y < 0 || y >= h || z < 0 || z >= v) continue;
                const int64_t channel = o / (k / groups) * cg + q;
                sum += in[static_cast<size_t>(((b * c + channel) * h + y) * v + z)] *
                       w[static_cast<size_t>(((o * cg + q) * kh + r) * kw + s)];
              }
          out.push_back(sum);
        }
  return out;
}

TEST(Convolution, MatchesItsDefinition) {
  const Tensor x = doubles({2, 4, 6, 5});
  for (int64_t groups : {1, 2}) {
    for (int64_t stride : {1, 2}) {
      for (int64_t dilation : {1, 2}) {
        const Tensor weight = doubles({6, 4 / groups, 3, 2}, 2);
        const Tensor y = ops::conv2d(x, weight, {}, {stride, stride}, {1, 1, 1, 1},
                                     {dilation, dilation}, groups);
        EXPECT_EQ(y.type().layout, Layout::ChannelsLast);
        expect_near(y.to_vector<double>(), convolved(x, weight, stride, 1, dilation, groups),
                    1e-12);
      }
    }
  }
}

TEST(Convolution, GradientsMatchFiniteDifferencesToSecondOrder) {
  const auto conv = [](const auto& o) {
    return ops::conv2d(o[0], o[1], o[2], {2, 1}, {1, 0, 0, 1}, {1, 2}, 2);
  };
  const std::vector<Tensor> operands = {doubles({2, 2, 4, 4}), doubles({2, 1, 2, 2}, 2),
                                        doubles({2}, 3)};
  expect_gradients(conv, operands);
  expect_second_gradients(conv, operands, 1e-4);
  expect_gradients([](const auto& o) { return ops::conv1d(o[0], o[1], {}, {2}, {1, 1}); },
                   {doubles({2, 3, 7}), doubles({2, 3, 3}, 2)});
  expect_gradients(
      [](const auto& o) {
        return ops::convolution_transpose(o[0], o[1], o[2], {2, 2}, {1, 0, 0, 1}, {1, 0}, {1, 1});
      },
      {doubles({1, 3, 3, 2}), doubles({3, 2, 3, 3}, 2), doubles({2}, 3)});
}

TEST(Convolution, NamesWhatDoesNotFit) {
  expect_error(ErrorKind::Value,
               "[conv2d] weight has 3 input channels in each of 1 groups, but x has 4",
               [] { ops::conv2d(doubles({8, 4, 6, 6}), doubles({16, 3, 3, 3})); });
  expect_error(ErrorKind::Value,
               "[conv2d] the kernel reaches over 7 elements of axis 2, which has 6",
               [] { ops::conv2d(doubles({8, 4, 6, 6}), doubles({16, 4, 7, 7})); });
  expect_error(ErrorKind::Value, "[conv2d] x needs 4 axes",
               [] { ops::conv2d(doubles({4, 6, 6}), doubles({16, 4, 3, 3})); });
  expect_error(ErrorKind::Value, "[conv2d] stride takes 2 numbers of at least 1",
               [] { ops::conv2d(doubles({8, 4, 6, 6}), doubles({16, 4, 3, 3}), {}, {0, 1}); });
}

TEST(Convolution, ANewBatchSizeGivesTheSameRows) {
  const Tensor weight = doubles({3, 2, 3, 3}, 2), batch = doubles({8, 2, 5, 5});
  const auto all = ops::conv2d(batch, weight).to_vector<double>();
  const auto one = ops::conv2d(ops::narrow(batch, 0, 0, {1}), weight).to_vector<double>();
  for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one[i], all[i], 1e-12);
}

}  // namespace
}  // namespace lamella::test
