// What convolution and pooling layers share: how a window moves over the spatial axes.
#pragma once

#include <string_view>

#include "lamella/types/tensor_type.h"

namespace lamella::nn {

enum class PadMode : uint8_t {
  Same,   // zeros around, so that a stride of 1 keeps the size: ceil(size / stride)
  Valid,  // none
  Pad,    // as many as `padding` says
};

// "same", "valid" or "pad" in any case; Value, in the name of `layer`, otherwise.
LAMELLA_API PadMode pad_mode_from_name(std::string_view name, std::string_view layer);

// A size for each spatial axis: one number for both, or one each.
struct Pair {
  int64_t height = 1;
  int64_t width = 1;
  Pair(int64_t both) : height(both), width(both) {}  // NOLINT: one number stands for both
  Pair(int64_t for_height, int64_t for_width) : height(for_height), width(for_width) {}
  Axes axes() const { return {height, width}; }
};

// Zeros before and after each spatial axis.
struct Margins {
  int64_t top = 0, bottom = 0, left = 0, right = 0;
  Margins(int64_t all = 0) : top(all), bottom(all), left(all), right(all) {}  // NOLINT
  Margins(int64_t above, int64_t below, int64_t before, int64_t behind)
      : top(above), bottom(below), left(before), right(behind) {}
  bool none() const { return top == 0 && bottom == 0 && left == 0 && right == 0; }
  Axes axes() const { return {top, bottom, left, right}; }
};

// The zeros of PadMode::Same around x [N, C, H, W]; the odd one goes behind.
LAMELLA_API Margins same_margins(const Shape& x, Pair kernel, Pair stride, Pair dilation);

}  // namespace lamella::nn
