// Dense layers and embeddings.
#include "lamella/nn/dense.h"

#include <cmath>

#include "lamella/ops/functions.h"

namespace lamella::nn {

Initial default_weight() {
  return Initial(make_ref<HeUniform>(HeOptions{.negative_slope = std::sqrt(5.0)}));
}

Initial default_bias(const Shape& weight_shape) {
  return Initial(make_ref<Uniform>(1 / std::sqrt(fans_of(weight_shape).in)));
}

void require_positive(std::string_view layer, std::string_view argument, int64_t value) {
  if (value < 1)
    fail(ErrorKind::Value, "[{}] {} must be at least 1, got {}", layer, argument, value);
}

Dense::Dense(int64_t in_channels, int64_t out_channels, const DenseOptions& options)
    : in_channels_(in_channels), out_channels_(out_channels) {
  require_positive("Dense", "in_channels", in_channels);
  require_positive("Dense", "out_channels", out_channels);
  require_float("Dense", options.dtype);
  const Shape shape{out_channels, in_channels};
  add_parameter(
      "weight",
      make_ref<Parameter>(
          options.weight_init.or_else(default_weight()).make(shape, options.dtype, "weight")));
  if (options.bias == Bias::Added) {
    add_parameter("bias", make_ref<Parameter>(options.bias_init.or_else(default_bias(shape))
                                                  .make({out_channels}, options.dtype, "bias")));
  }
  if (const Ref<Cell>& activation = options.activation.cell()) add_cell("activation", activation);
}

Tensor Dense::construct(const Tensor& x) {
  const Tensor product = ops::dense(x, use("weight"), use_if_there("bias"));
  const Ref<Cell>& activation = child("activation");
  return activation ? (*activation)(product) : product;
}

std::string Dense::description() const {
  return fmt::format("input_channels={}, output_channels={}, has_bias={}", in_channels_,
                     out_channels_, bias() ? "True" : "False");
}

Embedding::Embedding(int64_t vocab_size, int64_t embedding_size, const EmbeddingOptions& options)
    : vocab_size_(vocab_size),
      embedding_size_(embedding_size),
      padding_index_(options.padding_index) {
  require_positive("Embedding", "vocab_size", vocab_size);
  require_positive("Embedding", "embedding_size", embedding_size);
  require_float("Embedding", options.dtype);
  if (padding_index_ && (*padding_index_ < 0 || *padding_index_ >= vocab_size)) {
    fail(ErrorKind::Value, "[Embedding] padding_idx must be in [0, {}), got {}", vocab_size,
         *padding_index_);
  }
  Tensor table =
      options.table_init.make({vocab_size, embedding_size}, options.dtype, "embedding_table");
  if (padding_index_) {
    const Tensor is_padding = ops::equal(ops::element_numbers({vocab_size, 1}), *padding_index_);
    table = ops::where(is_padding, 0.0, table);
  }
  add_parameter("embedding_table", make_ref<Parameter>(table));
}

Tensor Embedding::construct(const Tensor& x) {
  Tensor table = use("embedding_table");
  if (padding_index_) {
    const Tensor is_padding = ops::equal(ops::element_numbers({vocab_size_, 1}), *padding_index_);
    table = ops::where(is_padding, ops::stop_gradient(table), table);
  }
  return ops::gather(table, x, 0);
}

std::string Embedding::description() const {
  return fmt::format("vocab_size={}, embedding_size={}", vocab_size_, embedding_size_);
}

}  // namespace lamella::nn
