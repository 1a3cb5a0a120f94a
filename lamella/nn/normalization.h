// Normalisation layers.
#pragma once

#include "lamella/nn/cell.h"
#include "lamella/nn/initializer.h"

namespace lamella::nn {

struct BatchNormOptions {
  double eps = 1e-5;
  // The share of the old value in each update of the moving statistics.
  double momentum = 0.9;
  bool affine = true;  // whether gamma and beta are trained
  Initial gamma_init = "ones";
  Initial beta_init = "zeros";
  Initial moving_mean_init = "zeros";
  Initial moving_var_init = "ones";
  // true: the batch's statistics, false: the moving ones; not given: by the mode.
  std::optional<bool> use_batch_statistics = {};
  DType dtype = DType::Float32;
};

// Ioffe and Szegedy, "Batch normalization", 2015: each channel (axis 1) less its mean, over its
// deviation, times gamma plus beta. In training the statistics are the batch's, and the moving ones
// take a step towards them (the variance by its unbiased estimate); otherwise the moving ones.
// Parameters, in this order: "moving_mean", "moving_variance" (not trained), "gamma", "beta", each
// [num_features].
class LAMELLA_API BatchNorm : public Layer {
 public:
  PrecisionNeed precision_need() const override { return PrecisionNeed::Float32; }
  std::string description() const override;
  using Cell::construct;
  Tensor construct(const Tensor& x) override;

  const Ref<Parameter>& moving_mean() const { return parameter("moving_mean"); }
  const Ref<Parameter>& moving_variance() const { return parameter("moving_variance"); }
  const Ref<Parameter>& gamma() const { return parameter("gamma"); }
  const Ref<Parameter>& beta() const { return parameter("beta"); }

 protected:
  BatchNorm(int64_t num_features, const BatchNormOptions& options);
  // Throws Value if x has a rank that the layer does not take.
  virtual void check_rank(const Tensor& x) const = 0;

 private:
  int64_t num_features_;
  BatchNormOptions options_;
};

// x [N, C] or [N, C, L].
class LAMELLA_API BatchNorm1d : public BatchNorm {
 public:
  explicit BatchNorm1d(int64_t num_features, const BatchNormOptions& options = {})
      : BatchNorm(num_features, options) {}
  std::string class_name() const override { return "BatchNorm1d"; }

 protected:
  void check_rank(const Tensor& x) const override;
};

// x [N, C, H, W].
class LAMELLA_API BatchNorm2d : public BatchNorm {
 public:
  explicit BatchNorm2d(int64_t num_features, const BatchNormOptions& options = {})
      : BatchNorm(num_features, options) {}
  std::string class_name() const override { return "BatchNorm2d"; }

 protected:
  void check_rank(const Tensor& x) const override;
};

struct LayerNormOptions {
  int64_t begin_norm_axis = -1;
  Initial gamma_init = "ones";
  Initial beta_init = "zeros";
  double epsilon = 1e-7;
  DType dtype = DType::Float32;
};

// Ba, Kiros and Hinton, "Layer normalization", 2016, over the axes from begin_norm_axis on, whose
// sizes are `normalized_shape`. Parameters "gamma", "beta" of that shape.
class LAMELLA_API LayerNorm : public Layer {
 public:
  explicit LayerNorm(const Shape& normalized_shape, const LayerNormOptions& options = {});
  std::string class_name() const override { return "LayerNorm"; }
  PrecisionNeed precision_need() const override { return PrecisionNeed::Float32; }
  std::string description() const override;
  using Cell::construct;
  Tensor construct(const Tensor& x) override;

  const Ref<Parameter>& gamma() const { return parameter("gamma"); }
  const Ref<Parameter>& beta() const { return parameter("beta"); }

 private:
  Shape normalized_shape_;
  LayerNormOptions options_;
};

struct GroupNormOptions {
  double eps = 1e-5;
  bool affine = true;  // whether gamma and beta are trained
  Initial gamma_init = "ones";
  Initial beta_init = "zeros";
  DType dtype = DType::Float32;
};

// Wu and He, "Group normalization", 2018: the channels (axis 1) in groups, each normalised in each
// sample. Parameters "gamma", "beta" [num_channels].
class LAMELLA_API GroupNorm : public Layer {
 public:
  GroupNorm(int64_t num_groups, int64_t num_channels, const GroupNormOptions& options = {});
  std::string class_name() const override { return "GroupNorm"; }
  PrecisionNeed precision_need() const override { return PrecisionNeed::Float32; }
  std::string description() const override;
  using Cell::construct;
  Tensor construct(const Tensor& x) override;

 private:
  int64_t num_groups_, num_channels_;
  double eps_;
};

}  // namespace lamella::nn
