// A tensor's memory as kernels see it: a pointer, sizes and strides. Owns nothing.
#pragma once

#include <cstdint>

#include "lamella/types/dtype.h"
#include "lamella/types/shape.h"

namespace lamella {

struct TensorView {
  void* data = nullptr;  // the first element
  DType dtype = DType::Float32;
  Axes sizes;
  Axes strides;  // in elements; 0 repeats an element along the axis

  int rank() const { return static_cast<int>(sizes.size()); }
  int64_t count() const {
    int64_t count = 1;
    for (int64_t size : sizes) count *= size;
    return count;
  }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

}  // namespace lamella
