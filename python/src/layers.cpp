// Layers and initializers under their C++ names; the package gives them MindSpore's arguments.
#include "python/src/arguments.h"
#include "python/src/cell.h"
#include "python/src/dtype_object.h"
#include "python/src/layer_arguments.h"
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "lamella/nn/activation.h"
#include "lamella/nn/attention.h"
#include "lamella/nn/convolution.h"
#include "lamella/nn/dropout.h"
#include "lamella/nn/normalization.h"
#include "lamella/nn/pooling.h"
#include "lamella/nn/recurrent.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace lamella::python {

namespace {

DType dtype_of(nb::handle object) {
  return object.is_none() ? DType::Float32 : dtype_from(object.ptr());
}

Shape shape_of(nb::handle object) {
  const Parameter parameter{ParameterKind::SizeList, "shape", {}};
  return std::get<Shape>(to_attribute(object.ptr(), parameter, "shape"));
}

template <typename Layer>
void plain(nb::module_& module, const char* name) {
  layer_class<Layer>(module, name).def(nb::init<>());
}

template <typename Layer>
void with_number(nb::module_& module, const char* name, const char* argument) {
  layer_class<Layer>(module, name).def(nb::init<double>(), nb::arg(argument));
}

void add_activations(nb::module_& module) {
  plain<nn::ReLU>(module, "ReLU");
  plain<nn::ReLU6>(module, "ReLU6");
  plain<nn::Sigmoid>(module, "Sigmoid");
  plain<nn::Tanh>(module, "Tanh");
  plain<nn::SiLU>(module, "SiLU");
  plain<nn::Mish>(module, "Mish");
  plain<nn::HSigmoid>(module, "HSigmoid");
  plain<nn::HSwish>(module, "HSwish");
  plain<nn::LogSigmoid>(module, "LogSigmoid");
  plain<nn::SeLU>(module, "SeLU");
  plain<nn::SoftSign>(module, "SoftSign");
  plain<nn::Softplus>(module, "Softplus");
  plain<nn::Tanhshrink>(module, "Tanhshrink");
  plain<nn::Identity>(module, "Identity");
  with_number<nn::LeakyReLU>(module, "LeakyReLU", "alpha");
  with_number<nn::ELU>(module, "ELU", "alpha");
  with_number<nn::CELU>(module, "CELU", "alpha");
  with_number<nn::HShrink>(module, "HShrink", "lambd");
  with_number<nn::SoftShrink>(module, "SoftShrink", "lambd");
  layer_class<nn::GELU>(module, "GELU")
      .def(
          "__init__",
          [](nn::GELU* self, bool approximate) {
            new (self)
                Overridable<nn::GELU>(approximate ? nn::GeluForm::Tanh : nn::GeluForm::Exact);
          },
          "approximate"_a);
  layer_class<nn::Softmax>(module, "Softmax").def(nb::init<int64_t>(), "axis"_a);
  layer_class<nn::LogSoftmax>(module, "LogSoftmax").def(nb::init<int64_t>(), "axis"_a);
  layer_class<nn::PReLU>(module, "PReLU").def(nb::init<int64_t, double>(), "channel"_a, "w"_a);
  module.def(
      "get_activation", [](const std::string& name) { return nn::get_activation(name); }, "name"_a);
}

void add_weighted(nb::module_& module) {
  layer_class<nn::Dense>(module, "Dense")
      .def(
          "__init__",
          [](nn::Dense* self, int64_t in, int64_t out, nb::handle weight, nb::handle bias,
             bool has_bias, nb::handle activation, nb::handle dtype) {
            new (self) Overridable<nn::Dense>(
                in, out,
                nn::DenseOptions{.weight_init = initial_from(weight),
                                 .bias_init = initial_from(bias),
                                 .bias = has_bias ? nn::Bias::Added : nn::Bias::None,
                                 .activation = activation_from(activation),
                                 .dtype = dtype_of(dtype)});
          },
          "in_channels"_a, "out_channels"_a, "weight_init"_a.none(), "bias_init"_a.none(),
          "has_bias"_a, "activation"_a.none(), "dtype"_a.none());
  layer_class<nn::Embedding>(module, "Embedding")
      .def(
          "__init__",
          [](nn::Embedding* self, int64_t count, int64_t size, nb::handle table,
             std::optional<int64_t> padding, nb::handle dtype) {
            new (self)
                Overridable<nn::Embedding>(count, size,
                                           nn::EmbeddingOptions{.table_init = initial_from(table),
                                                                .padding_index = padding,
                                                                .dtype = dtype_of(dtype)});
          },
          "vocab_size"_a, "embedding_size"_a, "table_init"_a.none(), "padding_idx"_a.none(),
          "dtype"_a.none());
  layer_class<nn::Conv2d>(module, "Conv2d")
      .def(
          "__init__",
          [](nn::Conv2d* self, int64_t in, int64_t out, nb::handle kernel, nb::handle stride,
             const std::string& pad_mode, nb::handle padding, nb::handle dilation, int64_t group,
             bool has_bias, nb::handle weight, nb::handle bias, nb::handle dtype) {
            new (self) Overridable<nn::Conv2d>(
                in, out, pair_from(kernel, "Conv2d", "kernel_size"),
                nn::Conv2dOptions{.stride = pair_from(stride, "Conv2d", "stride"),
                                  .pad_mode = nn::pad_mode_from_name(pad_mode, "Conv2d"),
                                  .padding = margins_from(padding, "Conv2d"),
                                  .dilation = pair_from(dilation, "Conv2d", "dilation"),
                                  .group = group,
                                  .bias = has_bias ? nn::Bias::Added : nn::Bias::None,
                                  .weight_init = initial_from(weight),
                                  .bias_init = initial_from(bias),
                                  .dtype = dtype_of(dtype)});
          },
          "in_channels"_a, "out_channels"_a, "kernel_size"_a, "stride"_a, "pad_mode"_a, "padding"_a,
          "dilation"_a, "group"_a, "has_bias"_a, "weight_init"_a.none(), "bias_init"_a.none(),
          "dtype"_a.none());
  layer_class<nn::Conv2dTranspose>(module, "Conv2dTranspose")
      .def(
          "__init__",
          [](nn::Conv2dTranspose* self, int64_t in, int64_t out, nb::handle kernel,
             nb::handle stride, const std::string& pad_mode, nb::handle padding,
             nb::handle output_padding, nb::handle dilation, int64_t group, bool has_bias,
             nb::handle weight, nb::handle bias, nb::handle dtype) {
            const char* layer = "Conv2dTranspose";
            new (self) Overridable<nn::Conv2dTranspose>(
                in, out, pair_from(kernel, layer, "kernel_size"),
                nn::Conv2dTransposeOptions{
                    .stride = pair_from(stride, layer, "stride"),
                    .pad_mode = nn::pad_mode_from_name(pad_mode, layer),
                    .padding = margins_from(padding, layer),
                    .output_padding = pair_from(output_padding, layer, "output_padding"),
                    .dilation = pair_from(dilation, layer, "dilation"),
                    .group = group,
                    .bias = has_bias ? nn::Bias::Added : nn::Bias::None,
                    .weight_init = initial_from(weight),
                    .bias_init = initial_from(bias),
                    .dtype = dtype_of(dtype)});
          },
          "in_channels"_a, "out_channels"_a, "kernel_size"_a, "stride"_a, "pad_mode"_a, "padding"_a,
          "output_padding"_a, "dilation"_a, "group"_a, "has_bias"_a, "weight_init"_a.none(),
          "bias_init"_a.none(), "dtype"_a.none());
}

// Everything but construct, whose inputs the package arranges.
template <typename Layer>
auto recurrent_class(nb::module_& module, const char* name) {
  return layer_class<Layer>(module, name)
      .def(
          "run",
          [](Layer& self, const Tensor& x, const std::vector<Tensor>& states,
             const std::optional<Tensor>& lengths) {
            const nn::Recurrent::Output output = self.run(x, states, lengths.value_or(Tensor()));
            return std::pair(output.sequence, output.states);
          },
          "x"_a, "hx"_a, "seq_length"_a.none());
}

nn::RecurrentOptions recurrent_options(int64_t layers, bool has_bias, bool batch_first,
                                       double dropout, bool bidirectional, nb::handle dtype) {
  return {.num_layers = layers,
          .bias = has_bias ? nn::Bias::Added : nn::Bias::None,
          .axes = batch_first ? nn::AxisOrder::BatchFirst : nn::AxisOrder::TimeFirst,
          .dropout = dropout,
          .directions = bidirectional ? nn::Directions::Both : nn::Directions::Forward,
          .dtype = dtype_of(dtype)};
}

nn::Nonlinearity nonlinearity_from(const std::string& name, const char* layer) {
  if (name == "tanh") return nn::Nonlinearity::Tanh;
  if (name == "relu") return nn::Nonlinearity::Relu;
  fail(ErrorKind::Value, "[{}] nonlinearity must be 'tanh' or 'relu', got '{}'", layer, name);
}

template <typename Layer>
void gated(nb::module_& module, const char* name) {
  recurrent_class<Layer>(module, name)
      .def(
          "__init__",
          [](Layer* self, int64_t in, int64_t hidden, int64_t layers, bool has_bias,
             bool batch_first, double dropout, bool bidirectional, nb::handle dtype) {
            new (self) Overridable<Layer>(
                in, hidden,
                recurrent_options(layers, has_bias, batch_first, dropout, bidirectional, dtype));
          },
          "input_size"_a, "hidden_size"_a, "num_layers"_a, "has_bias"_a, "batch_first"_a,
          "dropout"_a, "bidirectional"_a, "dtype"_a.none());
}

template <typename Layer>
void gated_cell(nb::module_& module, const char* name) {
  layer_class<Layer>(module, name)
      .def(
          "__init__",
          [](Layer* self, int64_t in, int64_t hidden, bool has_bias, nb::handle dtype) {
            new (self) Overridable<Layer>(
                in, hidden,
                nn::RecurrentCellOptions{.bias = has_bias ? nn::Bias::Added : nn::Bias::None,
                                         .dtype = dtype_of(dtype)});
          },
          "input_size"_a, "hidden_size"_a, "has_bias"_a, "dtype"_a.none());
}

void add_recurrent(nb::module_& module) {
  gated<nn::LSTM>(module, "LSTM");
  gated<nn::GRU>(module, "GRU");
  gated_cell<nn::LSTMCell>(module, "LSTMCell");
  gated_cell<nn::GRUCell>(module, "GRUCell");
  recurrent_class<nn::RNN>(module, "RNN")
      .def(
          "__init__",
          [](nn::RNN* self, int64_t in, int64_t hidden, int64_t layers,
             const std::string& nonlinearity, bool has_bias, bool batch_first, double dropout,
             bool bidirectional, nb::handle dtype) {
            new (self) Overridable<nn::RNN>(
                in, hidden,
                recurrent_options(layers, has_bias, batch_first, dropout, bidirectional, dtype),
                nonlinearity_from(nonlinearity, "RNN"));
          },
          "input_size"_a, "hidden_size"_a, "num_layers"_a, "nonlinearity"_a, "has_bias"_a,
          "batch_first"_a, "dropout"_a, "bidirectional"_a, "dtype"_a.none());
  layer_class<nn::RNNCell>(module, "RNNCell")
      .def(
          "__init__",
          [](nn::RNNCell* self, int64_t in, int64_t hidden, bool has_bias,
             const std::string& nonlinearity, nb::handle dtype) {
            new (self) Overridable<nn::RNNCell>(
                in, hidden,
                nn::RecurrentCellOptions{.bias = has_bias ? nn::Bias::Added : nn::Bias::None,
                                         .dtype = dtype_of(dtype)},
                nonlinearity_from(nonlinearity, "RNNCell"));
          },
          "input_size"_a, "hidden_size"_a, "has_bias"_a, "nonlinearity"_a, "dtype"_a.none());
}

nn::AttentionMasks masks_from(const std::optional<Tensor>& padding,
                              const std::optional<Tensor>& attention, bool causal) {
  return {.key_padding = padding.value_or(Tensor()),
          .attention = attention.value_or(Tensor()),
          .causality = causal ? nn::Causality::Causal : nn::Causality::None};
}

nn::TransformerLayerOptions transformer_options(int64_t feedforward, double dropout,
                                                nb::handle activation, double eps, bool batch_first,
                                                bool norm_first, nb::handle dtype) {
  return {.dim_feedforward = feedforward,
          .dropout = dropout,
          .activation = activation_from(activation),
          .layer_norm_eps = eps,
          .axes = batch_first ? nn::AxisOrder::BatchFirst : nn::AxisOrder::TimeFirst,
          .norm_order = norm_first ? nn::NormOrder::First : nn::NormOrder::Last,
          .dtype = dtype_of(dtype)};
}

template <typename Layer>
auto transformer_layer(nb::module_& module, const char* name) {
  return layer_class<Layer>(module, name)
      .def(
          "__init__",
          [](Layer* self, int64_t d_model, int64_t heads, int64_t feedforward, double dropout,
             nb::handle activation, double eps, bool batch_first, bool norm_first,
             nb::handle dtype) {
            new (self) Overridable<Layer>(d_model, heads,
                                          transformer_options(feedforward, dropout, activation, eps,
                                                              batch_first, norm_first, dtype));
          },
          "d_model"_a, "nhead"_a, "dim_feedforward"_a, "dropout"_a, "activation"_a.none(),
          "layer_norm_eps"_a, "batch_first"_a, "norm_first"_a, "dtype"_a.none());
}

void add_attention(nb::module_& module) {
  module.def(
      "scaled_dot_product_attention",
      [](const Tensor& query, const Tensor& key, const Tensor& value,
         const std::optional<Tensor>& mask, double dropout, bool causal,
         std::optional<double> scale) {
        return nn::scaled_dot_product_attention(
            query, key, value,
            {.mask = mask.value_or(Tensor()),
             .causality = causal ? nn::Causality::Causal : nn::Causality::None,
             .dropout = dropout,
             .scale = scale});
      },
      "query"_a, "key"_a, "value"_a, "mask"_a.none(), "dropout"_a, "causal"_a, "scale"_a.none());
  layer_class<nn::MultiheadAttention>(module, "MultiheadAttention")
      .def(
          "__init__",
          [](nn::MultiheadAttention* self, int64_t embed_dim, int64_t heads, double dropout,
             bool has_bias, std::optional<int64_t> key, std::optional<int64_t> value,
             bool batch_first, nb::handle dtype) {
            new (self) Overridable<nn::MultiheadAttention>(
                embed_dim, heads,
                nn::MultiheadAttentionOptions{
                    .dropout = dropout,
                    .bias = has_bias ? nn::Bias::Added : nn::Bias::None,
                    .key_size = key,
                    .value_size = value,
                    .axes = batch_first ? nn::AxisOrder::BatchFirst : nn::AxisOrder::TimeFirst,
                    .dtype = dtype_of(dtype)});
          },
          "embed_dim"_a, "num_heads"_a, "dropout"_a, "has_bias"_a, "kdim"_a.none(), "vdim"_a.none(),
          "batch_first"_a, "dtype"_a.none())
      .def(
          "run",
          [](nn::MultiheadAttention& self, const Tensor& query, const Tensor& key,
             const Tensor& value, const std::optional<Tensor>& padding,
             const std::optional<Tensor>& attention, bool weights, bool average) {
            const auto wanted = !weights  ? nn::AttentionWeights::None
                                : average ? nn::AttentionWeights::Averaged
                                          : nn::AttentionWeights::EachHead;
            const nn::MultiheadAttention::Output output =
                self.run(query, key, value, masks_from(padding, attention, false), wanted);
            std::optional<Tensor> given;
            if (weights) given = output.weights;
            return std::pair(output.result, given);
          },
          "query"_a, "key"_a, "value"_a, "key_padding_mask"_a.none(), "attn_mask"_a.none(),
          "need_weights"_a, "average"_a);
  transformer_layer<nn::TransformerEncoderLayer>(module, "TransformerEncoderLayer")
      .def(
          "run",
          [](nn::TransformerEncoderLayer& self, const Tensor& source,
             const std::optional<Tensor>& padding, const std::optional<Tensor>& attention) {
            return self.run(source, masks_from(padding, attention, false));
          },
          "src"_a, "src_key_padding_mask"_a.none(), "src_mask"_a.none());
  transformer_layer<nn::TransformerDecoderLayer>(module, "TransformerDecoderLayer")
      .def(
          "run",
          [](nn::TransformerDecoderLayer& self, const Tensor& target, const Tensor& memory,
             const std::optional<Tensor>& target_padding,
             const std::optional<Tensor>& target_attention,
             const std::optional<Tensor>& memory_padding,
             const std::optional<Tensor>& memory_attention) {
            return self.run(target, memory, masks_from(target_padding, target_attention, false),
                            masks_from(memory_padding, memory_attention, false));
          },
          "tgt"_a, "memory"_a, "tgt_key_padding_mask"_a.none(), "tgt_mask"_a.none(),
          "memory_key_padding_mask"_a.none(), "memory_mask"_a.none());
}

template <typename Layer>
void batch_norm(nb::module_& module, const char* name) {
  layer_class<Layer>(module, name)
      .def(
          "__init__",
          [](Layer* self, int64_t features, double eps, double momentum, bool affine,
             nb::handle gamma, nb::handle beta, nb::handle mean, nb::handle variance,
             std::optional<bool> use_batch_statistics, nb::handle dtype) {
            new (self) Overridable<Layer>(
                features, nn::BatchNormOptions{.eps = eps,
                                               .momentum = momentum,
                                               .affine = affine,
                                               .gamma_init = initial_from(gamma),
                                               .beta_init = initial_from(beta),
                                               .moving_mean_init = initial_from(mean),
                                               .moving_var_init = initial_from(variance),
                                               .use_batch_statistics = use_batch_statistics,
                                               .dtype = dtype_of(dtype)});
          },
          "num_features"_a, "eps"_a, "momentum"_a, "affine"_a, "gamma_init"_a.none(),
          "beta_init"_a.none(), "moving_mean_init"_a.none(), "moving_var_init"_a.none(),
          "use_batch_statistics"_a.none(), "dtype"_a.none());
}

void add_others(nb::module_& module) {
  batch_norm<nn::BatchNorm1d>(module, "BatchNorm1d");
  batch_norm<nn::BatchNorm2d>(module, "BatchNorm2d");
  layer_class<nn::LayerNorm>(module, "LayerNorm")
      .def(
          "__init__",
          [](nn::LayerNorm* self, nb::handle shape, int64_t begin_axis, nb::handle gamma,
             nb::handle beta, double epsilon, nb::handle dtype) {
            new (self) Overridable<nn::LayerNorm>(
                shape_of(shape), nn::LayerNormOptions{.begin_norm_axis = begin_axis,
                                                      .gamma_init = initial_from(gamma),
                                                      .beta_init = initial_from(beta),
                                                      .epsilon = epsilon,
                                                      .dtype = dtype_of(dtype)});
          },
          "normalized_shape"_a, "begin_norm_axis"_a, "gamma_init"_a.none(), "beta_init"_a.none(),
          "epsilon"_a, "dtype"_a.none());
  layer_class<nn::GroupNorm>(module, "GroupNorm")
      .def(
          "__init__",
          [](nn::GroupNorm* self, int64_t groups, int64_t channels, double eps, bool affine,
             nb::handle gamma, nb::handle beta, nb::handle dtype) {
            new (self)
                Overridable<nn::GroupNorm>(groups, channels,
                                           nn::GroupNormOptions{.eps = eps,
                                                                .affine = affine,
                                                                .gamma_init = initial_from(gamma),
                                                                .beta_init = initial_from(beta),
                                                                .dtype = dtype_of(dtype)});
          },
          "num_groups"_a, "num_channels"_a, "eps"_a, "affine"_a, "gamma_init"_a.none(),
          "beta_init"_a.none(), "dtype"_a.none());
  layer_class<nn::Dropout>(module, "Dropout")
      .def(
          "__init__",
          [](nn::Dropout* self, double p) {
            new (self) Overridable<nn::Dropout>(nn::DropProbability::of_dropping(p));
          },
          "p"_a);
  layer_class<nn::Flatten>(module, "Flatten")
      .def(nb::init<int64_t, int64_t>(), "start_dim"_a, "end_dim"_a);
  layer_class<nn::MaxPool2d>(module, "MaxPool2d")
      .def(
          "__init__",
          [](nn::MaxPool2d* self, nb::handle kernel, nb::handle stride, const std::string& pad_mode,
             nb::handle padding, nb::handle dilation, bool ceil) {
            new (self) Overridable<nn::MaxPool2d>(
                pair_from(kernel, "MaxPool2d", "kernel_size"),
                pair_from(stride, "MaxPool2d", "stride"),
                nn::MaxPool2dOptions{.pad_mode = nn::pad_mode_from_name(pad_mode, "MaxPool2d"),
                                     .padding = pair_from(padding, "MaxPool2d", "padding"),
                                     .dilation = pair_from(dilation, "MaxPool2d", "dilation"),
                                     .end = ceil ? nn::PoolEnd::Ceil : nn::PoolEnd::Floor});
          },
          "kernel_size"_a, "stride"_a, "pad_mode"_a, "padding"_a, "dilation"_a, "ceil_mode"_a);
  layer_class<nn::AvgPool2d>(module, "AvgPool2d")
      .def(
          "__init__",
          [](nn::AvgPool2d* self, nb::handle kernel, nb::handle stride, const std::string& pad_mode,
             nb::handle padding, bool ceil, bool count_include_pad,
             std::optional<int64_t> divisor) {
            new (self) Overridable<nn::AvgPool2d>(
                pair_from(kernel, "AvgPool2d", "kernel_size"),
                pair_from(stride, "AvgPool2d", "stride"),
                nn::AvgPool2dOptions{.pad_mode = nn::pad_mode_from_name(pad_mode, "AvgPool2d"),
                                     .padding = pair_from(padding, "AvgPool2d", "padding"),
                                     .end = ceil ? nn::PoolEnd::Ceil : nn::PoolEnd::Floor,
                                     .count_include_pad = count_include_pad,
                                     .divisor_override = divisor});
          },
          "kernel_size"_a, "stride"_a, "pad_mode"_a, "padding"_a, "ceil_mode"_a,
          "count_include_pad"_a, "divisor_override"_a.none());
  layer_class<nn::AdaptiveAvgPool2d>(module, "AdaptiveAvgPool2d")
      .def(
          "__init__",
          [](nn::AdaptiveAvgPool2d* self, nb::handle size) {
            new (self) Overridable<nn::AdaptiveAvgPool2d>(
                pair_from(size, "AdaptiveAvgPool2d", "output_size"));
          },
          "output_size"_a);
}

template <typename T>
using Initializer = nb::class_<T, nn::Initializer>;

void add_initializers(nb::module_& module) {
  nb::class_<nn::Initializer>(module, "Initializer", nb::dynamic_attr(),
                              shared_object<nn::Initializer>(),
                              "Makes a parameter's first value: initializer(shape, dtype).")
      .def(
          "__call__",
          [](nn::Initializer& self, nb::handle shape, nb::handle dtype) {
            return self(shape_of(shape), dtype_of(dtype));
          },
          "shape"_a, "dtype"_a.none());
  Initializer<nn::Constant>(module, "Constant").def(nb::init<double>(), "value"_a);
  Initializer<nn::Zero>(module, "Zero").def(nb::init<>());
  Initializer<nn::One>(module, "One").def(nb::init<>());
  Initializer<nn::Normal>(module, "Normal").def(nb::init<double, double>(), "sigma"_a, "mean"_a);
  Initializer<nn::Uniform>(module, "Uniform").def(nb::init<double>(), "scale"_a);
  Initializer<nn::TruncatedNormal>(module, "TruncatedNormal")
      .def(nb::init<double, double, double, double>(), "sigma"_a, "mean"_a, "a"_a, "b"_a);
  Initializer<nn::XavierUniform>(module, "XavierUniform").def(nb::init<double>(), "gain"_a);
  Initializer<nn::XavierNormal>(module, "XavierNormal").def(nb::init<double>(), "gain"_a);
  const auto he = [](double slope, const std::string& mode, const std::string& nonlinearity) {
    if (mode != "fan_in" && mode != "fan_out") {
      fail(ErrorKind::Value, "[initializer] mode must be 'fan_in' or 'fan_out', got '{}'", mode);
    }
    return nn::HeOptions{.negative_slope = slope,
                         .mode = mode == "fan_in" ? nn::FanMode::In : nn::FanMode::Out,
                         .nonlinearity = nonlinearity};
  };
  Initializer<nn::HeUniform>(module, "HeUniform")
      .def(
          "__init__",
          [he](nn::HeUniform* self, double slope, const std::string& mode,
               const std::string& nonlinearity) {
            new (self) nn::HeUniform(he(slope, mode, nonlinearity));
          },
          "negative_slope"_a, "mode"_a, "nonlinearity"_a);
  Initializer<nn::HeNormal>(module, "HeNormal")
      .def(
          "__init__",
          [he](nn::HeNormal* self, double slope, const std::string& mode,
               const std::string& nonlinearity) {
            new (self) nn::HeNormal(he(slope, mode, nonlinearity));
          },
          "negative_slope"_a, "mode"_a, "nonlinearity"_a);
  module.def(
      "initial_value",
      [](nb::handle init, nb::handle shape, nb::handle dtype) {
        return initial_from(init).make(shape_of(shape), dtype_of(dtype), "initializer");
      },
      "init"_a.none(), "shape"_a, "dtype"_a.none());
}

}  // namespace

void add_layers(nb::module_& module) {
  add_initializers(module);
  add_activations(module);
  add_weighted(module);
  add_recurrent(module);
  add_attention(module);
  add_others(module);
}

}  // namespace lamella::python
