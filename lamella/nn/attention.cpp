// Attention by blocks of queries, and transformer layers.
#include "lamella/nn/attention.h"

#include <cmath>
#include <limits>

#include "lamella/ir/region.h"
#include "lamella/nn/dropout.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/random.h"
#include "lamella/ops/tensor_operators.h"
#include "lamella/transform/control_flow.h"

namespace lamella::nn {

namespace {

Tensor swap_last(const Tensor& x) {
  return ops::swapaxes(x, -2, -1);
}

Tensor masked(const Tensor& scores, const Tensor& mask) {
  if (!mask.defined()) return scores;
  if (mask.dtype() == DType::Bool) {
    return ops::masked_fill(scores, mask, -std::numeric_limits<double>::infinity());
  }
  return scores + ops::cast(mask, scores.dtype());
}

// What later queries may not see: keys behind row `first` + i, for `rows` queries.
Tensor causal_mask(const Operand& first, Dim rows, Dim keys) {
  return ops::greater(ops::element_numbers({1, keys}), ops::element_numbers({rows, 1}) + first);
}

// The weights of some queries, the first of which is number `first`.
Tensor attention_weights(const Tensor& scaled_query, const Tensor& key, const Tensor& mask,
                         const AttentionOptions& options, const Operand& first) {
  Tensor scores = masked(ops::matrix_product(scaled_query, swap_last(key)), mask);
  if (options.causality == Causality::Causal) {
    scores = masked(scores, causal_mask(first, scaled_query.size(-2), key.size(-2)));
  }
  const Tensor weights = ops::softmax(scores, -1);
  return options.dropout > 0 ? ops::dropout(weights, options.dropout) : weights;
}

// [..., blocks * block, n] as [blocks, ..., block, n].
Tensor in_blocks(const Tensor& x, int64_t blocks, int64_t block) {
  Shape shape(x.shape().begin(), x.shape().end() - 2);
  shape.push_back(blocks);
  shape.push_back(block);
  shape.push_back(x.shape().back());
  return ops::moveaxis(ops::reshape(x, shape), -3, 0);
}

Tensor from_blocks(const Tensor& x) {
  const Tensor moved = ops::moveaxis(x, 0, -3);
  return ops::flatten(moved, -3, -2);
}

Tensor rows_of(const Tensor& x, int64_t first, int64_t count) {
  return ops::narrow(x, first, -2, Shape{count});
}

void check_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                     const AttentionOptions& options) {
  const auto leading = [](const Tensor& x) {
    return Shape(x.shape().begin(), x.shape().end() - 2);
  };
  const bool ranks = query.rank() == 4 && key.rank() == 4 && value.rank() == 4;
  if (!ranks || query.size(-1) != key.size(-1) || key.size(-2) != value.size(-2) ||
      leading(query) != leading(key) || leading(key) != leading(value)) {
    fail(ErrorKind::Value,
         "[scaled_dot_product_attention] query [B,H,T,D], key [B,H,S,D] and value [B,H,S,E] are "
         "expected, got {}, {} and {}",
         text(query.type()), text(key.type()), text(value.type()));
  }
  if (options.mask.defined()) {
    Shape scores = leading(query);
    scores.push_back(query.size(-2));
    scores.push_back(key.size(-2));
    const DType dtype = options.mask.dtype();
    if (dtype != DType::Bool && !is_float(dtype)) {
      fail(ErrorKind::Type, "[scaled_dot_product_attention] mask must be bool or floats, got {}",
           text(options.mask.type()));
    }
    const bool fits =
        options.mask.rank() <= 4 &&
        broadcast_shapes(scores, options.mask.shape(), "scaled_dot_product_attention") == scores;
    if (!fits) {
      fail(ErrorKind::Value, "[scaled_dot_product_attention] mask must broadcast to {}, got {}",
           text(scores), text(options.mask.type()));
    }
  }
  if (options.block < 1) {
    fail(ErrorKind::Value, "[scaled_dot_product_attention] block must be at least 1, got {}",
         options.block);
  }
}

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const AttentionOptions& options) {
  check_attention(query, key, value, options);
  const auto depth = static_cast<double>(query.size(-1).value());
  const Tensor scaled = query * options.scale.value_or(1 / std::sqrt(depth));
  const int64_t queries = query.size(-2).value();
  const Tensor& mask = options.mask;
  const bool mask_varies = mask.defined() && mask.rank() >= 2 && !mask.size(-2).is(1);
  const int64_t blocks = queries <= options.block ? 0 : queries / options.block;
  const int64_t first_rest = blocks * options.block;
  Tensors parts;
  if (blocks > 0) {
    Tensors sequences{in_blocks(rows_of(scaled, 0, first_rest), blocks, options.block)};
    if (mask_varies) {
      sequences.push_back(in_blocks(rows_of(mask, 0, first_rest), blocks, options.block));
    }
    const auto body = [&](const Tensors&, const Tensors& slices) {
      const Tensor first = current_turn() * options.block;
      const Tensor weights =
          attention_weights(slices[0], key, mask_varies ? slices[1] : mask, options, first);
      return ScanResult{{}, {ops::matrix_product(weights, value)}};
    };
    const ScanResult result = scan(body, {}, sequences, {.residuals = Residuals::Recomputed});
    parts.push_back(from_blocks(result.stacked[0]));
  }
  if (const int64_t rest = queries - first_rest; rest > 0 || blocks == 0) {
    const Tensor rest_mask = mask_varies ? rows_of(mask, first_rest, rest) : mask;
    const Tensor weights =
        attention_weights(rows_of(scaled, first_rest, rest), key, rest_mask, options, first_rest);
    parts.push_back(ops::matrix_product(weights, value));
  }
  return parts.size() == 1 ? parts[0] : ops::concat(parts, 2);
}

// ---- Many heads ----

MultiheadAttention::MultiheadAttention(int64_t embed_dim, int64_t num_heads,
                                       const MultiheadAttentionOptions& options)
    : embed_dim_(embed_dim), num_heads_(num_heads), options_(options) {
  require_positive("MultiheadAttention", "embed_dim", embed_dim);
  require_positive("MultiheadAttention", "num_heads", num_heads);
  if (embed_dim % num_heads != 0) {
    fail(ErrorKind::Value, "[MultiheadAttention] num_heads must divide embed_dim, got {} and {}",
         num_heads, embed_dim);
  }
  require_float("MultiheadAttention", options.dtype);
  if (!(options.dropout >= 0 && options.dropout <= 1)) {
    fail(ErrorKind::Value, "[MultiheadAttention] dropout must be in [0, 1], got {}",
         options.dropout);
  }
  const Initial projection(make_ref<XavierUniform>());
  const auto add = [&](const char* name, const Initial& initial, const Shape& shape) {
    add_parameter(name, make_ref<Parameter>(initial.make(shape, options.dtype, name)));
  };
  const int64_t key_size = options.key_size.value_or(embed_dim);
  const int64_t value_size = options.value_size.value_or(embed_dim);
  if (key_size == embed_dim && value_size == embed_dim) {
    add("in_proj_weight", projection, {3 * embed_dim, embed_dim});
  } else {
    add("q_proj_weight", projection, {embed_dim, embed_dim});
    add("k_proj_weight", projection, {embed_dim, key_size});
    add("v_proj_weight", projection, {embed_dim, value_size});
  }
  if (options.bias == Bias::Added) add("in_proj_bias", Initial("zeros"), {3 * embed_dim});
  this->add("out_proj",
            make_ref<Dense>(
                embed_dim, embed_dim,
                DenseOptions{.bias_init = "zeros", .bias = options.bias, .dtype = options.dtype}));
}

std::string MultiheadAttention::description() const {
  return fmt::format("embed_dim={}, num_heads={}, dropout={}", embed_dim_, num_heads_,
                     options_.dropout);
}

// [length, B, embed_dim] as [B, heads, length, embed_dim / heads].
Tensor MultiheadAttention::heads(const Tensor& features, int64_t batch, int64_t length) const {
  const Tensor parted =
      ops::reshape(features, Shape{length, batch, num_heads_, embed_dim_ / num_heads_});
  return ops::transpose(parted, {1, 2, 0, 3});
}

Tensor MultiheadAttention::joined_mask(const AttentionMasks& masks, int64_t batch, int64_t queries,
                                       int64_t keys, DType dtype) const {
  Tensor attention = masks.attention, padding = masks.key_padding;
  if (attention.defined() && attention.rank() == 3) {
    attention = ops::reshape(attention, Shape{batch, num_heads_, queries, keys});
  }
  if (padding.defined()) padding = ops::reshape(padding, Shape{batch, 1, 1, keys});
  if (!attention.defined() || !padding.defined()) {
    return attention.defined() ? attention : padding;
  }
  if (attention.dtype() == DType::Bool && padding.dtype() == DType::Bool) {
    return ops::bitwise_or(attention, padding);
  }
  const auto added = [&](const Tensor& mask) {
    const Tensor zeros = ops::zeros_of({dtype, Layout::RowMajor, mask.shape()});
    return masked(zeros, mask);
  };
  return added(attention) + added(padding);
}

void MultiheadAttention::check_inputs(const Tensor& query, const Tensor& key,
                                      const Tensor& value) const {
  const bool batch_first = options_.axes == AxisOrder::BatchFirst;
  const auto check = [&](const char* name, const Tensor& x, int64_t features) {
    if (x.rank() != 3 || !x.size(2).is(features)) {
      fail(ErrorKind::Value, "[MultiheadAttention] {} must have shape {} with {} features, got {}",
           name, batch_first ? "[batch, length, features]" : "[length, batch, features]", features,
           text(x.type()));
    }
  };
  check("query", query, embed_dim_);
  check("key", key, options_.key_size.value_or(embed_dim_));
  check("value", value, options_.value_size.value_or(embed_dim_));
  const int batch = batch_first ? 0 : 1;
  if (query.size(batch) != key.size(batch) || key.size(0) != value.size(0) ||
      key.size(1) != value.size(1) || key.size(1 - batch).is(0)) {
    fail(ErrorKind::Value,
         "[MultiheadAttention] query, key and value must have one batch size, key and value one "
         "length of at least 1, got {}, {} and {}",
         text(query.type()), text(key.type()), text(value.type()));
  }
}

void MultiheadAttention::check_mask(const char* name, const Tensor& mask,
                                    std::initializer_list<Shape> accepted) const {
  if (!mask.defined()) return;
  if (mask.dtype() != DType::Bool && !is_float(mask.dtype())) {
    fail(ErrorKind::Type,
         "[MultiheadAttention] {} must be bool, true where nothing is looked at, or floats that "
         "are added to the scores, got {}",
         name, text(mask.type()));
  }
  if (std::ranges::find(accepted, mask.shape()) == accepted.end()) {
    std::string shapes;
    for (const Shape& shape : accepted) shapes += (shapes.empty() ? "" : " or ") + text(shape);
    fail(ErrorKind::Value, "[MultiheadAttention] {} must have shape {}, got {}", name, shapes,
         text(mask.type()));
  }
}

MultiheadAttention::Output MultiheadAttention::run(const Tensor& given_query,
                                                   const Tensor& given_key,
                                                   const Tensor& given_value,
                                                   const AttentionMasks& masks,
                                                   AttentionWeights wanted) {
  const bool batch_first = options_.axes == AxisOrder::BatchFirst;
  check_inputs(given_query, given_key, given_value);
  const auto time_first = [&](const Tensor& x) { return batch_first ? ops::swapaxes(x, 0, 1) : x; };
  const Tensor query = time_first(given_query), key = time_first(given_key),
               value = time_first(given_value);
  const int64_t queries = query.size(0).value(), batch = query.size(1).value(),
                keys = key.size(0).value();
  check_mask("attn_mask", masks.attention,
             {Shape{queries, keys}, Shape{batch * num_heads_, queries, keys}});
  check_mask("key_padding_mask", masks.key_padding, {Shape{batch, keys}});

  const auto bias_of = [&](int64_t part) -> Operand {
    if (!parameter("in_proj_bias")) return {};
    return ops::narrow(use("in_proj_bias"), part * embed_dim_, 0, Shape{embed_dim_});
  };
  const auto weight_of = [&](int64_t part, const char* apart) {
    if (!parameter("in_proj_weight")) return use(apart);
    return ops::narrow(use("in_proj_weight"), part * embed_dim_, 0, Shape{embed_dim_});
  };
  Tensor projected[3];
  const bool itself = given_query.storage() == given_key.storage() &&
                      given_key.storage() == given_value.storage() && parameter("in_proj_weight");
  if (itself) {
    // Self-attention: one product for all three.
    const Tensor all = ops::dense(query, use("in_proj_weight"), use_if_there("in_proj_bias"));
    const Tensors parts = ops::split(all, Shape{embed_dim_}, 2);
    for (size_t i = 0; i < 3; ++i) projected[i] = parts[i];
  } else {
    projected[0] = ops::dense(query, weight_of(0, "q_proj_weight"), bias_of(0));
    projected[1] = ops::dense(key, weight_of(1, "k_proj_weight"), bias_of(1));
    projected[2] = ops::dense(value, weight_of(2, "v_proj_weight"), bias_of(2));
  }
  const Tensor q = heads(projected[0], batch, queries), k = heads(projected[1], batch, keys),
               v = heads(projected[2], batch, keys);
  const AttentionOptions attention{.mask = joined_mask(masks, batch, queries, keys, q.dtype()),
                                   .causality = masks.causality,
                                   .dropout = training() ? options_.dropout : 0};
  Output output;
  Tensor mixed;
  if (wanted == AttentionWeights::None) {
    mixed = scaled_dot_product_attention(q, k, v, attention);
  } else {
    const int64_t head_size = embed_dim_ / num_heads_;
    const double scale = 1 / std::sqrt(static_cast<double>(head_size));
    const Tensor weights = attention_weights(q * scale, k, attention.mask, attention, 0);
    mixed = ops::matrix_product(weights, v);
    output.weights = wanted == AttentionWeights::Averaged ? ops::mean(weights, {1}) : weights;
  }
  const Tensor joined =
      ops::reshape(ops::transpose(mixed, {2, 0, 1, 3}), Shape{queries, batch, embed_dim_});
  const Tensor result = own_cell("out_proj")(joined);
  output.result = batch_first ? ops::swapaxes(result, 0, 1) : result;
  return output;
}

Tensors MultiheadAttention::construct(const Tensors& inputs) {
  if (inputs.size() != 3) {
    fail(ErrorKind::Value, "[MultiheadAttention] takes query, key and value, got {} inputs",
         inputs.size());
  }
  return {run(inputs[0], inputs[1], inputs[2]).result};
}

// ---- Layers ----

namespace {

void add_feed_forward(Cell& cell, int64_t d_model, const TransformerLayerOptions& options) {
  const DenseOptions dense{.dtype = options.dtype};
  cell.add("linear1", make_ref<Dense>(d_model, options.dim_feedforward, dense));
  cell.add("dropout", make_ref<Dropout>(DropProbability::of_dropping(options.dropout)));
  cell.add("linear2", make_ref<Dense>(options.dim_feedforward, d_model, dense));
}

void add_norms(Cell& cell, int64_t d_model, int count, const TransformerLayerOptions& options) {
  for (int i = 1; i <= count; ++i) {
    cell.add(fmt::format("norm{}", i),
             make_ref<LayerNorm>(Shape{d_model}, LayerNormOptions{.epsilon = options.layer_norm_eps,
                                                                  .dtype = options.dtype}));
  }
  for (int i = 1; i <= count; ++i) {
    cell.add(fmt::format("dropout{}", i),
             make_ref<Dropout>(DropProbability::of_dropping(options.dropout)));
  }
}

Ref<MultiheadAttention> attention_of(int64_t d_model, int64_t nhead,
                                     const TransformerLayerOptions& options) {
  return make_ref<MultiheadAttention>(
      d_model, nhead,
      MultiheadAttentionOptions{
          .dropout = options.dropout, .axes = options.axes, .dtype = options.dtype});
}

void add_activation(Cell& cell, const TransformerLayerOptions& options) {
  if (options.activation.cell()) cell.add("activation", options.activation.cell());
}

// A residual around `inner`: normalised before it, or after the sum.
template <typename Inner>
Tensor residual(const Tensor& x, NormOrder order, Cell& norm, const Inner& inner) {
  return order == NormOrder::First ? x + inner(norm(x)) : norm(x + inner(x));
}

}  // namespace

TransformerEncoderLayer::TransformerEncoderLayer(int64_t d_model, int64_t nhead,
                                                 const TransformerLayerOptions& options)
    : norm_order_(options.norm_order) {
  add("self_attn", attention_of(d_model, nhead, options));
  add_feed_forward(*this, d_model, options);
  add_norms(*this, d_model, 2, options);
  add_activation(*this, options);
}

Tensor TransformerEncoderLayer::run(const Tensor& source, const AttentionMasks& masks) {
  auto& attention = own_cell<MultiheadAttention>("self_attn");
  const Tensor attended = residual(source, norm_order_, own_cell("norm1"), [&](const Tensor& x) {
    return own_cell("dropout1")(attention.run(x, x, x, masks).result);
  });
  return residual(attended, norm_order_, own_cell("norm2"), [&](const Tensor& x) {
    const Tensor inner = own_cell("activation")(own_cell("linear1")(x));
    return own_cell("dropout2")(own_cell("linear2")(own_cell("dropout")(inner)));
  });
}

TransformerDecoderLayer::TransformerDecoderLayer(int64_t d_model, int64_t nhead,
                                                 const TransformerLayerOptions& options)
    : norm_order_(options.norm_order) {
  add("self_attn", attention_of(d_model, nhead, options));
  add("multihead_attn", attention_of(d_model, nhead, options));
  add_feed_forward(*this, d_model, options);
  add_norms(*this, d_model, 3, options);
  add_activation(*this, options);
}

Tensor TransformerDecoderLayer::run(const Tensor& target, const Tensor& memory,
                                    const AttentionMasks& target_masks,
                                    const AttentionMasks& memory_masks) {
  auto& itself = own_cell<MultiheadAttention>("self_attn");
  auto& across = own_cell<MultiheadAttention>("multihead_attn");
  const Tensor attended = residual(target, norm_order_, own_cell("norm1"), [&](const Tensor& x) {
    return own_cell("dropout1")(itself.run(x, x, x, target_masks).result);
  });
  const Tensor informed = residual(attended, norm_order_, own_cell("norm2"), [&](const Tensor& x) {
    return own_cell("dropout2")(across.run(x, memory, memory, memory_masks).result);
  });
  return residual(informed, norm_order_, own_cell("norm3"), [&](const Tensor& x) {
    const Tensor inner = own_cell("activation")(own_cell("linear1")(x));
    return own_cell("dropout3")(own_cell("linear2")(own_cell("dropout")(inner)));
  });
}

}  // namespace lamella::nn
