// What gather and scatter check before they touch data.
#pragma once

#include "lamella/kernels/indexing.h"

namespace lamella::kernels {

// Indices whose every element has been checked.
class CheckedIndices {
 public:
  // Throws Type unless int32 or int64, Index naming the first element (in row-major order) that is
  // out of range for an axis of `size`.
  CheckedIndices(const TensorView& indices, int64_t size, const IndexingOptions& options);

  // The index, in [0, size), at `offset` elements from the first.
  int64_t at(int64_t offset) const {
    const int64_t index = wide_ ? static_cast<const int64_t*>(data_)[offset]
                                : static_cast<const int32_t*>(data_)[offset];
    return index < 0 ? index + size_ : index;
  }

 private:
  const void* data_;
  bool wide_;
  int64_t size_;
};

// Throws Value unless `axis` is one of the view's.
void check_axis(const TensorView& view, const IndexingOptions& options);

// The shape of gather's result over a tensor of `sizes`.
Axes gathered_sizes(const Axes& sizes, int axis, const Axes& indices,
                    const IndexingOptions& options);

// The sizes and strides of some axes of a view.
struct AxisRange {
  Axes sizes, strides;
  AxisRange(const TensorView& view, size_t begin, size_t end)
      : sizes(view.sizes.begin() + begin, view.sizes.begin() + end),
        strides(view.strides.begin() + begin, view.strides.begin() + end) {}
};

inline Axes joined(const Axes& a, const Axes& b) {
  Axes all = a;
  for (int64_t item : b) all.push_back(item);
  return all;
}

}  // namespace lamella::kernels
