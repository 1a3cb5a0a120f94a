// Attention against its formula, whole and in blocks; transformer layers.
#include "lamella/nn/attention.h"

#include <cmath>

#include "tests/errors.h"
#include "tests/window_limits.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lamella/device/pool.h"
#include "lamella/ir/window.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/random.h"
#include "lamella/ops/tensor_operators.h"
#include "lamella/runtime/counters.h"
#include "lamella/transform/grad.h"

namespace lamella::nn {
namespace {

using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

std::vector<float> elements(const Tensor& tensor) {
  return tensor.to_vector<float>();
}

// The formula with the whole matrix of scores.
Tensor written_out(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& added) {
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(-1).value()));
  const Tensor scores = ops::matmul(q, ops::swapaxes(k, -1, -2)) * scale;
  return ops::matmul(ops::softmax(added.defined() ? scores + added : scores, -1), v);
}

struct Problem {
  Tensor q, k, v, weights;
  explicit Problem(int64_t queries, int64_t keys = 7)
      : q(ops::normal({2, 3, queries, 4})),
        k(ops::normal({2, 3, keys, 4})),
        v(ops::normal({2, 3, keys, 5})),
        weights(ops::normal({2, 3, queries, 5})) {}
};

void expect_equal(const Problem& p, const AttentionOptions& options, const Tensor& added) {
  const Tensor wrt[] = {p.q, p.k, p.v};
  const auto of = [&](const std::function<Tensor()>& attention) {
    return value_and_grad(
        [&] {
          const Tensor y = attention();
          return std::vector{ops::sum(y * p.weights), y};
        },
        wrt);
  };
  const auto ours = of([&] { return scaled_dot_product_attention(p.q, p.k, p.v, options); });
  const auto expected = of([&] { return written_out(p.q, p.k, p.v, added); });
  EXPECT_THAT(elements(ours.values[1]), Pointwise(FloatNear(1e-5f), elements(expected.values[1])));
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_THAT(elements(ours.gradients[i]),
                Pointwise(FloatNear(3e-5f), elements(expected.gradients[i])));
  }
}

TEST(Attention, InBlocksAgreesWithTheFormula) {
  set_seed(1);
  for (const int64_t queries : {1, 3, 4, 8, 9, 11}) {
    const Problem p(queries);
    for (const int64_t block : {1, 4, 128}) {
      expect_equal(p, {.block = block}, {});
    }
  }
}

TEST(Attention, TakesMasksOfEveryShapeAndKind) {
  set_seed(2);
  const Problem p(9);
  for (const Shape& shape : {Shape{7}, Shape{9, 7}, Shape{9, 1}, Shape{2, 1, 1, 7},
                             Shape{2, 3, 9, 7}, Shape{1, 3, 9, 7}}) {
    const Tensor floats = ops::normal(shape);
    expect_equal(p, {.mask = floats, .block = 4}, floats);
    if (shape == Shape{9, 1}) continue;  // would leave out whole rows
    const Tensor out = ops::greater(floats, 0.8);
    const Tensor infinite =
        ops::where(out, -std::numeric_limits<double>::infinity(), ops::zeros_of(floats.type()));
    expect_equal(p, {.mask = out, .block = 4}, infinite);
  }
}

TEST(Attention, IsCausalAcrossBlocks) {
  set_seed(3);
  const Problem p(9, 9);
  std::vector<float> mask(81, 0.0f);
  for (size_t i = 0; i < 9; ++i) {
    for (size_t j = i + 1; j < 9; ++j) mask[i * 9 + j] = -INFINITY;
  }
  for (const int64_t block : {2, 4, 128}) {
    expect_equal(p, {.causality = Causality::Causal, .block = block},
                 Tensor::from_vector<float>({9, 9}, mask));
  }
}

TEST(Attention, OverManyTokensNeverHoldsTheScores) {
  const int64_t tokens = 4096;
  const Tensor q = ops::normal({1, 1, tokens, 16});
  q.wait();
  const Tensor wrt[] = {q};
  const auto result = value_and_grad(
      [&] { return std::vector{ops::sum(scaled_dot_product_attention(q, q, q))}; }, wrt);
  cpu_pool().reset_peak();
  const int64_t before = cpu_pool().statistics().used;
  result.gradients[0].wait();
  const int64_t scores = tokens * tokens * 4;
  EXPECT_LT(cpu_pool().statistics().peak_used - before, scores / 4);
}

TEST(Attention, DropsTheSameWeightsInBothPasses) {
  set_seed(4);
  // One key a query: the weight is 1, and dropout makes it 0 or 2.
  const Tensor q = ops::normal({1, 2, 64, 4}), k = ops::normal({1, 2, 1, 4});
  const Tensor v = Tensor::from_vector<float>({1, 2, 1, 1}, {1, 1});
  const Tensor wrt[] = {v};
  const auto result = value_and_grad(
      [&] {
        const Tensor y = scaled_dot_product_attention(q, k, v, {.dropout = 0.5, .block = 16});
        return std::vector{ops::sum(y), y};
      },
      wrt);
  std::vector<float> sums(2, 0.0f);
  const std::vector<float> y = elements(result.values[1]);
  for (size_t i = 0; i < y.size(); ++i) {
    EXPECT_TRUE(y[i] == 0 || y[i] == 2);
    sums[i / 64] += y[i];
  }
  EXPECT_EQ(elements(result.gradients[0]), sums);
}

TEST(Attention, SaysWhatIsWrong) {
  const Problem p(9);
  EXPECT_THAT(message_of([&] { scaled_dot_product_attention(p.q, p.v, p.v); }),
              HasSubstr("query [B,H,T,D], key [B,H,S,D] and value [B,H,S,E] are expected"));
  EXPECT_THAT(message_of([&] {
                scaled_dot_product_attention(p.q, p.k, p.v, {.mask = ops::normal({2, 3, 1, 8})});
              }),
              HasSubstr("scaled_dot_product_attention"));
  EXPECT_THAT(message_of([&] {
                scaled_dot_product_attention(p.q, p.k, p.v, {.mask = ops::integers({9, 7}, 0, 2)});
              }),
              HasSubstr("mask must be bool or floats"));
  EXPECT_THAT(message_of([] { MultiheadAttention(10, 3); }),
              HasSubstr("num_heads must divide embed_dim, got 3 and 10"));
}

TEST(MultiheadAttention, SaysWhichInputOrMaskDoesNotFit) {
  MultiheadAttention layer(8, 2, {.axes = AxisOrder::BatchFirst});
  const Tensor query = ops::normal({2, 3, 8}), key = ops::normal({2, 4, 8});
  const auto message = [&](const Tensor& q, const Tensor& k, const Tensor& v,
                           const AttentionMasks& masks = {}) {
    return message_of([&] { layer.run(q, k, v, masks, AttentionWeights::None); });
  };
  for (const Shape& shape : {Shape{2, 3}, Shape{2, 3, 7}}) {
    EXPECT_THAT(message(ops::normal(shape), key, key),
                HasSubstr("query must have shape [batch, length, features] with 8 features, got"));
    EXPECT_THAT(message(query, ops::normal(shape), key), HasSubstr("key must have shape"));
    EXPECT_THAT(message(query, key, ops::normal(shape)), HasSubstr("value must have shape"));
  }
  const Tensor longer = ops::normal({2, 5, 8}), more = ops::normal({3, 4, 8}),
               none = ops::normal({2, 0, 8});
  for (const auto& [k, v] :
       {std::pair{key, longer}, {more, key}, {key, more}, {more, more}, {none, none}}) {
    EXPECT_THAT(message(query, k, v), HasSubstr("one batch size, key and value one length of at"));
  }
  for (const Shape& shape : {Shape{4}, Shape{3, 3}, Shape{1, 3, 4}, Shape{2, 2, 3, 4}}) {
    EXPECT_THAT(message(query, key, key, {.attention = ops::normal(shape)}),
                HasSubstr("attn_mask must have shape [3,4] or [4,3,4], got"));
    EXPECT_THAT(message(query, key, key, {.key_padding = ops::normal(shape)}),
                HasSubstr("key_padding_mask must have shape [2,4], got"));
  }
  EXPECT_THAT(message(query, key, key, {.attention = ops::integers({3, 4}, 0, 2)}),
              HasSubstr("attn_mask must be bool"));
  EXPECT_THAT(message(query, key, key, {.key_padding = ops::integers({2, 4}, 0, 2)}),
              HasSubstr("key_padding_mask must be bool"));
}

// ---- Layers ----

TEST(MultiheadAttention, OneProjectionOrThreeAndEitherOrderOfAxes) {
  set_seed(5);
  MultiheadAttention layer(8, 2);
  MultiheadAttention batch_first(8, 2, {.axes = AxisOrder::BatchFirst});
  for (const auto& [name, parameter] : layer.parameters_and_names()) {
    for (const auto& [other_name, other] : batch_first.parameters_and_names()) {
      if (other_name == name) other->tensor().assign(parameter->tensor());
    }
  }
  const Tensor x = ops::normal({5, 3, 8});
  const Tensor one = layer.run(x, x, x).result;
  const Tensor three = layer.run(x, x.snapshot(), x.snapshot()).result;
  EXPECT_THAT(elements(one), Pointwise(FloatNear(1e-6f), elements(three)));
  const Tensor swapped = ops::swapaxes(x, 0, 1);
  const Tensor other = batch_first.run(swapped, swapped, swapped).result;
  EXPECT_THAT(elements(ops::swapaxes(other, 0, 1)), Pointwise(FloatNear(1e-6f), elements(one)));
  const auto weighted = layer.run(x, x, x, {}, AttentionWeights::EachHead);
  EXPECT_EQ(weighted.weights.shape(), (Shape{3, 2, 5, 5}));
  EXPECT_THAT(elements(weighted.result), Pointwise(FloatNear(1e-6f), elements(one)));
}

TEST(MultiheadAttention, LeavesOutPaddedKeys) {
  set_seed(6);
  MultiheadAttention layer(8, 2, {.key_size = 6, .value_size = 5});
  const Tensor q = ops::normal({4, 2, 8}), k = ops::normal({5, 2, 6}), v = ops::normal({5, 2, 5});
  const Tensor padding = ops::greater_equal(ops::element_numbers({1, 5}),
                                            Tensor::from_vector<int64_t>({2, 1}, {3, 5}));
  const Tensor all = layer.run(q, k, v, {.key_padding = padding}).result;
  const auto first = [](const Tensor& x, int64_t axis, int64_t count) {
    return ops::narrow(x, 0, axis, Shape{count});
  };
  const Tensor alone =
      layer.run(first(q, 1, 1), first(first(k, 1, 1), 0, 3), first(first(v, 1, 1), 0, 3)).result;
  EXPECT_THAT(elements(first(all, 1, 1)), Pointwise(FloatNear(1e-6f), elements(alone)));
}

template <typename Layer>
std::vector<std::vector<float>> gradients_at_window(Layer& layer,
                                                    const std::function<Tensor()>& run,
                                                    int64_t fixed) {
  const RandomState state{.seed = 11, .offset = 0};
  set_random_state(state);
  Window::of_thread().flush();
  const testing_support::ScopedWindowLimits limits({.fixed = fixed});
  std::vector<Tensor> wrt;
  for (const auto& parameter : layer.trainable_params()) wrt.push_back(parameter->tensor());
  std::vector<std::vector<float>> all;
  for (const Tensor& gradient : grad([&] { return ops::sum(ops::square(run())); }, wrt)) {
    all.push_back(elements(gradient));
  }
  return all;
}

TEST(TransformerLayers, KeepTheirBitsWhereverTheWindowIsCut) {
  set_seed(7);
  for (const NormOrder order : {NormOrder::Last, NormOrder::First}) {
    const TransformerLayerOptions options{.dim_feedforward = 16, .norm_order = order};
    TransformerEncoderLayer encoder(8, 2, options);
    TransformerDecoderLayer decoder(8, 2, options);
    encoder.set_train(), decoder.set_train();
    const Tensor x = ops::normal({5, 3, 8}), memory = ops::normal({6, 3, 8});
    x.wait(), memory.wait();
    const AttentionMasks causal{.causality = Causality::Causal};
    const auto encode = [&] { return encoder.run(x, causal); };
    const auto decode = [&] { return decoder.run(x, memory, causal); };
    const auto whole = gradients_at_window(encoder, encode, 0);
    const auto whole_decoder = gradients_at_window(decoder, decode, 0);
    for (const int64_t fixed : {1, 7}) {
      EXPECT_EQ(gradients_at_window(encoder, encode, fixed), whole);
      EXPECT_EQ(gradients_at_window(decoder, decode, fixed), whole_decoder);
    }
  }
}

TEST(TransformerLayers, ASequenceDoesNotSeeItsFuture) {
  set_seed(8);
  TransformerEncoderLayer layer(8, 2, {.dim_feedforward = 16});
  const Tensor x = ops::normal({5, 1, 8});
  const Tensor changed =
      ops::concat({ops::narrow(x, 0, 0, Shape{3}), ops::narrow(x, 3, 0, Shape{2}) + 1.0}, 0);
  const AttentionMasks causal{.causality = Causality::Causal};
  const std::vector<float> a = elements(layer.run(x, causal)),
                           b = elements(layer.run(changed, causal));
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i] == b[i], i < 24) << i;
}

}  // namespace
}  // namespace lamella::nn
