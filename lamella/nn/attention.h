// Attention, and the layers of transformers (Vaswani et al., "Attention is all you need", 2017).
#pragma once

#include "lamella/nn/dense.h"
#include "lamella/nn/normalization.h"
#include "lamella/nn/recurrent.h"  // AxisOrder

namespace lamella::nn {

enum class Causality : uint8_t { None, Causal };

struct AttentionOptions {
  // Broadcasts to [batch, heads, queries, keys]: a bool says which pairs are left out, floats are
  // added to the scores.
  Tensor mask = {};
  // Causal: query i sees the keys up to i.
  Causality causality = Causality::None;
  double dropout = 0;                // of the weights
  std::optional<double> scale = {};  // 1 / sqrt(depth) if left out
  int64_t block = 128;               // queries whose scores exist at the same time
};

// softmax(query key^T scale + mask) value, for query [batch, heads, queries, depth], key [batch,
// heads, keys, depth], value [batch, heads, keys, depth of values]. The scores are never stored
// whole: a block of queries at a time, once more in the backward pass. A query that sees no key
// gives NaN, as a softmax over nothing does.
// Throws Value for shapes that do not fit; Type for a mask of integers.
LAMELLA_API Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key,
                                                const Tensor& value,
                                                const AttentionOptions& options = {});

struct MultiheadAttentionOptions {
  double dropout = 0;
  Bias bias = Bias::Added;
  std::optional<int64_t> key_size = {}, value_size = {};  // features, embed_dim if left out
  AxisOrder axes = AxisOrder::TimeFirst;
  DType dtype = DType::Float32;
};

struct AttentionMasks {
  Tensor key_padding = {};  // bool [B, S], true where a key is left out; or floats to add
  Tensor attention = {};    // [T, S] or [B num_heads, T, S], as AttentionOptions::mask
  Causality causality = Causality::None;
};

enum class AttentionWeights : uint8_t { None, Averaged, EachHead };

// Attention in num_heads parts of the features, between projections. Inputs query [T, B,
// embed_dim], key [S, B, key_size], value [S, B, value_size] (batch first if so made); T and S of
// any length.
//
// Parameters: in_proj_weight [3 embed_dim, embed_dim], or q_proj_weight, k_proj_weight and
// v_proj_weight where key or value have other sizes; in_proj_bias [3 embed_dim]; and of the layer
// out_proj weight and bias. Throws Value if num_heads does not divide embed_dim.
class LAMELLA_API MultiheadAttention : public Layer {
 public:
  MultiheadAttention(int64_t embed_dim, int64_t num_heads,
                     const MultiheadAttentionOptions& options = {});
  std::string class_name() const override { return "MultiheadAttention"; }
  PrecisionNeed precision_need() const override { return PrecisionNeed::Gains; }
  std::string description() const override;

  struct Output {
    Tensor result;   // of query's shape
    Tensor weights;  // [B, T, S] or [B, num_heads, T, S]; undefined if not asked for
  };
  Output run(const Tensor& query, const Tensor& key, const Tensor& value,
             const AttentionMasks& masks = {}, AttentionWeights weights = AttentionWeights::None);
  // query, key, value, in this order.
  using Cell::construct;
  Tensors construct(const Tensors& inputs) override;

 private:
  Tensor heads(const Tensor& features, int64_t batch, int64_t length) const;
  void check_inputs(const Tensor& query, const Tensor& key, const Tensor& value) const;
  void check_mask(const char* name, const Tensor& mask,
                  std::initializer_list<Shape> accepted) const;
  Tensor joined_mask(const AttentionMasks& masks, int64_t batch, int64_t queries, int64_t keys,
                     DType dtype) const;

  int64_t embed_dim_, num_heads_;
  MultiheadAttentionOptions options_;
};

enum class NormOrder : uint8_t { Last, First };

struct TransformerLayerOptions {
  int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  ActivationChoice activation = "relu";
  double layer_norm_eps = 1e-5;
  AxisOrder axes = AxisOrder::TimeFirst;
  NormOrder norm_order = NormOrder::Last;
  DType dtype = DType::Float32;
};

// Self-attention and two dense layers, each with dropout, a residual and a layer norm. Cells
// self_attn, linear1, linear2, norm1, norm2, dropout, dropout1, dropout2. Input and output
// [T, B, d_model].
class LAMELLA_API TransformerEncoderLayer : public Layer {
 public:
  TransformerEncoderLayer(int64_t d_model, int64_t nhead,
                          const TransformerLayerOptions& options = {});
  std::string class_name() const override { return "TransformerEncoderLayer"; }

  Tensor run(const Tensor& source, const AttentionMasks& masks = {});
  using Cell::construct;
  Tensor construct(const Tensor& source) override { return run(source); }

 private:
  NormOrder norm_order_;
};

// The same with attention to `memory`, an encoder's output, in between. Cells also multihead_attn,
// norm3, dropout3. Inputs target [T, B, d_model], memory [S, B, d_model].
class LAMELLA_API TransformerDecoderLayer : public Layer {
 public:
  TransformerDecoderLayer(int64_t d_model, int64_t nhead,
                          const TransformerLayerOptions& options = {});
  std::string class_name() const override { return "TransformerDecoderLayer"; }

  Tensor run(const Tensor& target, const Tensor& memory, const AttentionMasks& target_masks = {},
             const AttentionMasks& memory_masks = {});
  using Cell::construct;
  Tensor construct(const Tensor& target, const Tensor& memory) override {
    return run(target, memory);
  }

 private:
  NormOrder norm_order_;
};

}  // namespace lamella::nn
