// Convolution layers.
#pragma once

#include "lamella/nn/dense.h"
#include "lamella/nn/window.h"

namespace lamella::nn {

struct Conv2dOptions {
  Pair stride = 1;
  PadMode pad_mode = PadMode::Same;
  Margins padding = 0;  // with PadMode::Pad only
  Pair dilation = 1;
  int64_t group = 1;
  Bias bias = Bias::None;
  Initial weight_init = {};  // HeUniform with slope sqrt(5)
  Initial bias_init = {};    // uniform within 1 / sqrt(fan_in)
  DType dtype = DType::Float32;
};

// x [N, in, H, W], weight [out, in / group, kernel], bias [out], result [N, out, H', W'].
// Parameters "weight" and, if asked for, "bias". Throws Value for sizes below 1, channels that do
// not divide into groups, and padding without PadMode::Pad.
class LAMELLA_API Conv2d : public Layer {
 public:
  Conv2d(int64_t in_channels, int64_t out_channels, Pair kernel_size,
         const Conv2dOptions& options = {});
  std::string class_name() const override { return "Conv2d"; }
  PrecisionNeed precision_need() const override { return PrecisionNeed::Gains; }
  std::string description() const override;
  using Cell::construct;
  Tensor construct(const Tensor& x) override;

  const Ref<Parameter>& weight() const { return parameter("weight"); }
  const Ref<Parameter>& bias() const { return parameter("bias"); }

 private:
  int64_t in_channels_, out_channels_;
  Pair kernel_size_;
  Conv2dOptions options_;
};

struct Conv2dTransposeOptions {
  Pair stride = 1;
  PadMode pad_mode = PadMode::Same;
  Margins padding = 0;      // with PadMode::Pad only
  Pair output_padding = 0;  // with PadMode::Pad only: extends the result behind
  Pair dilation = 1;
  int64_t group = 1;
  Bias bias = Bias::None;
  Initial weight_init = {};  // HeUniform with slope sqrt(5)
  Initial bias_init = {};    // uniform within 1 / sqrt(fan_in)
  DType dtype = DType::Float32;
};

// The transposed convolution: x [N, in, H, W], weight [in, out / group, kernel], bias [out]. Sizes
// of the result: PadMode::Same gives size * stride, Valid the whole reach, Pad less `padding`.
class LAMELLA_API Conv2dTranspose : public Layer {
 public:
  Conv2dTranspose(int64_t in_channels, int64_t out_channels, Pair kernel_size,
                  const Conv2dTransposeOptions& options = {});
  std::string class_name() const override { return "Conv2dTranspose"; }
  PrecisionNeed precision_need() const override { return PrecisionNeed::Gains; }
  using Cell::construct;
  Tensor construct(const Tensor& x) override;

  const Ref<Parameter>& weight() const { return parameter("weight"); }
  const Ref<Parameter>& bias() const { return parameter("bias"); }

 private:
  Pair kernel_size_;
  Conv2dTransposeOptions options_;
};

}  // namespace lamella::nn
