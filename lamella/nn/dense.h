// Layers whose work is a matrix product, or a look-up in one.
#pragma once

#include "lamella/nn/activation.h"
#include "lamella/nn/initializer.h"

namespace lamella::nn {

enum class Bias : uint8_t { None, Added };

// What a layer's activation is: nothing, a cell, or a name of get_activation.
class LAMELLA_API ActivationChoice {
 public:
  ActivationChoice() = default;
  ActivationChoice(const char* name) : cell_(get_activation(name)) {}         // NOLINT: implicit
  ActivationChoice(const std::string& name) : cell_(get_activation(name)) {}  // NOLINT
  template <typename T>
    requires std::is_base_of_v<Cell, T>
  ActivationChoice(Ref<T> cell) : cell_(std::move(cell)) {}  // NOLINT
  const Ref<Cell>& cell() const { return cell_; }

 private:
  Ref<Cell> cell_;
};

struct DenseOptions {
  Initial weight_init = {};  // HeUniform with slope sqrt(5)
  Initial bias_init = {};    // uniform within 1 / sqrt(in_channels)
  Bias bias = Bias::Added;
  ActivationChoice activation = {};
  DType dtype = DType::Float32;
};

// activation(x weight^T + bias): x [..., in], weight [out, in], bias [out], result [..., out].
// Parameters "weight", "bias". Throws Value for sizes below 1.
class LAMELLA_API Dense : public Layer {
 public:
  Dense(int64_t in_channels, int64_t out_channels, const DenseOptions& options = {});
  std::string class_name() const override { return "Dense"; }
  PrecisionNeed precision_need() const override { return PrecisionNeed::Gains; }
  std::string description() const override;
  using Cell::construct;
  Tensor construct(const Tensor& x) override;

  const Ref<Parameter>& weight() const { return parameter("weight"); }
  const Ref<Parameter>& bias() const { return parameter("bias"); }

 private:
  int64_t in_channels_, out_channels_;
};

struct EmbeddingOptions {
  Initial table_init = "normal";
  // The row of this index is zeros at first, and gets no gradient.
  std::optional<int64_t> padding_index = {};
  DType dtype = DType::Float32;
};

// Rows of a table: x int32 or int64 of any shape, result x.shape + [embedding_size]. Parameter
// "embedding_table" [vocab_size, embedding_size]. Running throws Index for an index outside the
// table.
class LAMELLA_API Embedding : public Layer {
 public:
  Embedding(int64_t vocab_size, int64_t embedding_size, const EmbeddingOptions& options = {});
  std::string class_name() const override { return "Embedding"; }
  std::string description() const override;
  using Cell::construct;
  Tensor construct(const Tensor& x) override;

  const Ref<Parameter>& table() const { return parameter("embedding_table"); }

 private:
  int64_t vocab_size_, embedding_size_;
  std::optional<int64_t> padding_index_;
};

// What Dense and the convolutions begin with: weights by HeUniform with slope sqrt(5), biases
// uniform within 1 / sqrt(fan_in of the weight).
LAMELLA_API Initial default_weight();
LAMELLA_API Initial default_bias(const Shape& weight_shape);

// Throws Value, naming layer and argument, unless `value` is at least 1.
LAMELLA_API void require_positive(std::string_view layer, std::string_view argument, int64_t value);

}  // namespace lamella::nn
