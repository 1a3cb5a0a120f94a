// Pooling layers over the spatial axes of x [N, C, H, W].
#pragma once

#include "lamella/nn/cell.h"
#include "lamella/nn/window.h"

namespace lamella::nn {

// Whether a last window that reaches over the end counts.
enum class PoolEnd : uint8_t { Floor, Ceil };

struct MaxPool2dOptions {
  PadMode pad_mode = PadMode::Valid;
  Pair padding = 0;  // with PadMode::Pad only
  Pair dilation = 1;
  PoolEnd end = PoolEnd::Floor;
};

// The largest element of each window.
class LAMELLA_API MaxPool2d : public Layer {
 public:
  explicit MaxPool2d(Pair kernel_size = 1, Pair stride = 1, const MaxPool2dOptions& options = {});
  std::string class_name() const override { return "MaxPool2d"; }
  std::string description() const override;
  using Cell::construct;
  Tensor construct(const Tensor& x) override;

 private:
  Pair kernel_size_, stride_;
  MaxPool2dOptions options_;
};

struct AvgPool2dOptions {
  PadMode pad_mode = PadMode::Valid;
  Pair padding = 0;  // with PadMode::Pad only
  PoolEnd end = PoolEnd::Floor;
  bool count_include_pad = true;  // whether padding counts in the number divided by
  std::optional<int64_t> divisor_override = {};
};

// The mean of each window.
class LAMELLA_API AvgPool2d : public Layer {
 public:
  explicit AvgPool2d(Pair kernel_size = 1, Pair stride = 1, const AvgPool2dOptions& options = {});
  std::string class_name() const override { return "AvgPool2d"; }
  std::string description() const override;
  using Cell::construct;
  Tensor construct(const Tensor& x) override;

 private:
  Pair kernel_size_, stride_;
  AvgPool2dOptions options_;
};

// The mean of windows that divide the image into `output_size` parts.
class LAMELLA_API AdaptiveAvgPool2d : public Layer {
 public:
  explicit AdaptiveAvgPool2d(Pair output_size) : output_size_(output_size) {}
  std::string class_name() const override { return "AdaptiveAvgPool2d"; }
  using Cell::construct;
  Tensor construct(const Tensor& x) override;

 private:
  Pair output_size_;
};

// The axes from `start` to `end`, both included, as one.
class LAMELLA_API Flatten : public Layer {
 public:
  explicit Flatten(int64_t start = 1, int64_t end = -1) : start_(start), end_(end) {}
  std::string class_name() const override { return "Flatten"; }
  using Cell::construct;
  Tensor construct(const Tensor& x) override;

 private:
  int64_t start_, end_;
};

}  // namespace lamella::nn
