// Normalisation layers: parameters, and the moving statistics.
#include "lamella/nn/normalization.h"

#include "lamella/nn/dense.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/tensor_operators.h"

namespace lamella::nn {

BatchNorm::BatchNorm(int64_t num_features, const BatchNormOptions& options)
    : num_features_(num_features), options_(options) {
  require_positive("BatchNorm", "num_features", num_features);
  require_float("BatchNorm", options.dtype);
  if (options.momentum < 0 || options.momentum > 1) {
    fail(ErrorKind::Value, "[BatchNorm] momentum must be in [0, 1], got {}", options.momentum);
  }
  const auto add = [&](const char* name, const Initial& initial, bool trained) {
    add_parameter(name, make_ref<Parameter>(initial.make({num_features}, options.dtype, name),
                                            std::string(Parameter::kUnnamed),
                                            ParameterOptions{.requires_grad = trained}));
  };
  add("moving_mean", options.moving_mean_init, false);
  add("moving_variance", options.moving_var_init, false);
  add("gamma", options.gamma_init, options.affine);
  add("beta", options.beta_init, options.affine);
}

Tensor BatchNorm::construct(const Tensor& x) {
  check_rank(x);
  if (!x.size(1).is(num_features_)) {
    fail(ErrorKind::Value, "[{}] x must have {} channels (axis 1), got {}", class_name(),
         num_features_, text(x.type()));
  }
  const auto tensor_of = [&](const char* name) { return own_parameter(name)->tensor(); };
  const Tensor gamma = tensor_of("gamma"), beta = tensor_of("beta");
  const Tensor mean = tensor_of("moving_mean"), variance = tensor_of("moving_variance");
  if (!options_.use_batch_statistics.value_or(training())) {
    return ops::batch_norm_inference(x, gamma, beta, mean, variance, options_.eps);
  }
  const std::vector<Tensor> normed = ops::batch_norm(x, gamma, beta, options_.eps);
  if (training()) {
    const double old_share = options_.momentum, new_share = 1 - options_.momentum;
    const auto count =
        static_cast<double>(element_count(x.shape()).value()) / static_cast<double>(num_features_);
    const double unbiased = count > 1 ? count / (count - 1) : 1;
    const auto step = [&](const Tensor& moving, const Tensor& batch, double share) {
      moving.assign(moving * old_share +
                    ops::cast(ops::stop_gradient(batch), moving.dtype()) * share);
    };
    step(mean, normed[1], new_share);
    step(variance, normed[2], new_share * unbiased);
  }
  return normed[0];
}

std::string BatchNorm::description() const {
  return fmt::format("num_features={}, eps={}, momentum={}", num_features_, options_.eps,
                     options_.momentum);
}

void BatchNorm1d::check_rank(const Tensor& x) const {
  if (x.rank() != 2 && x.rank() != 3) {
    fail(ErrorKind::Value, "[BatchNorm1d] x must have 2 or 3 axes, got {}", text(x.type()));
  }
}

void BatchNorm2d::check_rank(const Tensor& x) const {
  if (x.rank() != 4) {
    fail(ErrorKind::Value, "[BatchNorm2d] x must have 4 axes, got {}", text(x.type()));
  }
}

LayerNorm::LayerNorm(const Shape& normalized_shape, const LayerNormOptions& options)
    : normalized_shape_(normalized_shape), options_(options) {
  if (normalized_shape.empty()) {
    fail(ErrorKind::Value, "[LayerNorm] normalized_shape needs at least one size");
  }
  require_float("LayerNorm", options.dtype);
  add_parameter("gamma", make_ref<Parameter>(
                             options.gamma_init.make(normalized_shape, options.dtype, "gamma")));
  add_parameter(
      "beta", make_ref<Parameter>(options.beta_init.make(normalized_shape, options.dtype, "beta")));
}

Tensor LayerNorm::construct(const Tensor& x) {
  return ops::layer_norm(x, use("gamma"), use("beta"), options_.begin_norm_axis, options_.epsilon);
}

std::string LayerNorm::description() const {
  return fmt::format("normalized_shape={}, begin_norm_axis={}", text(normalized_shape_),
                     options_.begin_norm_axis);
}

GroupNorm::GroupNorm(int64_t num_groups, int64_t num_channels, const GroupNormOptions& options)
    : num_groups_(num_groups), num_channels_(num_channels), eps_(options.eps) {
  require_positive("GroupNorm", "num_groups", num_groups);
  require_positive("GroupNorm", "num_channels", num_channels);
  require_float("GroupNorm", options.dtype);
  if (num_channels % num_groups != 0) {
    fail(ErrorKind::Value, "[GroupNorm] {} channels do not divide into {} groups", num_channels,
         num_groups);
  }
  const auto add = [&](const char* name, const Initial& initial) {
    add_parameter(name, make_ref<Parameter>(initial.make({num_channels}, options.dtype, name),
                                            std::string(Parameter::kUnnamed),
                                            ParameterOptions{.requires_grad = options.affine}));
  };
  add("gamma", options.gamma_init);
  add("beta", options.beta_init);
}

Tensor GroupNorm::construct(const Tensor& x) {
  return ops::group_norm(x, use("gamma"), use("beta"), num_groups_, eps_);
}

std::string GroupNorm::description() const {
  return fmt::format("num_groups={}, num_channels={}", num_groups_, num_channels_);
}

}  // namespace lamella::nn
