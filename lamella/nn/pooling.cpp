// Pooling layers.
#include "lamella/nn/pooling.h"

#include "lamella/ops/functions.h"

namespace lamella::nn {

namespace {

Margins margins_of(std::string_view layer, PadMode mode, Pair padding) {
  if (mode != PadMode::Pad && (padding.height != 0 || padding.width != 0)) {
    fail(ErrorKind::Value, "[{}] padding is given, so pad_mode must be 'pad'", layer);
  }
  return {padding.height, padding.height, padding.width, padding.width};
}

void check_window(std::string_view layer, Pair kernel_size, Pair stride) {
  if (std::min(kernel_size.height, kernel_size.width) < 1 ||
      std::min(stride.height, stride.width) < 1) {
    fail(ErrorKind::Value, "[{}] kernel_size and stride must be at least 1, got ({}, {}), ({}, {})",
         layer, kernel_size.height, kernel_size.width, stride.height, stride.width);
  }
}

std::string window_text(Pair kernel_size, Pair stride, PadMode mode) {
  constexpr std::string_view kModes[] = {"SAME", "VALID", "PAD"};
  return fmt::format("kernel_size=({}, {}), stride=({}, {}), pad_mode={}", kernel_size.height,
                     kernel_size.width, stride.height, stride.width,
                     kModes[static_cast<size_t>(mode)]);
}

}  // namespace

MaxPool2d::MaxPool2d(Pair kernel_size, Pair stride, const MaxPool2dOptions& options)
    : kernel_size_(kernel_size), stride_(stride), options_(options) {
  check_window("MaxPool2d", kernel_size, stride);
  margins_of("MaxPool2d", options.pad_mode, options.padding);
}

Tensor MaxPool2d::construct(const Tensor& x) {
  Margins margins = margins_of("MaxPool2d", options_.pad_mode, options_.padding);
  if (options_.pad_mode == PadMode::Same) {
    margins = same_margins(x.shape(), kernel_size_, stride_, options_.dilation);
  }
  return ops::max_pool(x, kernel_size_.axes(), stride_.axes(), margins.axes(),
                       options_.dilation.axes(), options_.end == PoolEnd::Ceil);
}

std::string MaxPool2d::description() const {
  return window_text(kernel_size_, stride_, options_.pad_mode);
}

AvgPool2d::AvgPool2d(Pair kernel_size, Pair stride, const AvgPool2dOptions& options)
    : kernel_size_(kernel_size), stride_(stride), options_(options) {
  check_window("AvgPool2d", kernel_size, stride);
  margins_of("AvgPool2d", options.pad_mode, options.padding);
  if (options.divisor_override && *options.divisor_override == 0) {
    fail(ErrorKind::Value, "[AvgPool2d] divisor_override must not be 0");
  }
}

Tensor AvgPool2d::construct(const Tensor& x) {
  Margins margins = margins_of("AvgPool2d", options_.pad_mode, options_.padding);
  bool count_padding = options_.count_include_pad;
  if (options_.pad_mode == PadMode::Same) {
    margins = same_margins(x.shape(), kernel_size_, stride_, 1);
    count_padding = false;
  }
  return ops::avg_pool(x, kernel_size_.axes(), stride_.axes(), margins.axes(),
                       options_.end == PoolEnd::Ceil, count_padding,
                       options_.divisor_override.value_or(0));
}

std::string AvgPool2d::description() const {
  return window_text(kernel_size_, stride_, options_.pad_mode);
}

Tensor AdaptiveAvgPool2d::construct(const Tensor& x) {
  return ops::adaptive_avg_pool(x, output_size_.axes());
}

Tensor Flatten::construct(const Tensor& x) {
  if (x.rank() == 0) return ops::reshape(x, {1});
  const int start = normalize_axis(start_, x.rank(), "Flatten");
  const int end = normalize_axis(end_, x.rank(), "Flatten");
  if (end < start) {
    fail(ErrorKind::Value, "[Flatten] end_dim {} lies before start_dim {}", end_, start_);
  }
  Shape shape;
  Dim joined = 1;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const Dim size = x.shape()[static_cast<size_t>(axis)];
    if (axis < start || axis > end) {
      shape.push_back(size);
      continue;
    }
    joined = joined * size;
    if (axis == end) shape.push_back(joined);
  }
  return ops::reshape(x, shape);
}

}  // namespace lamella::nn
