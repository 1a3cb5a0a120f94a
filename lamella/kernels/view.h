// Making and describing tensor views.
#pragma once

#include <string>

#include "lamella/base/api.h"
#include "lamella/device/tensor_view.h"

namespace lamella::kernels {

// Strides of a dense tensor whose last axis is adjacent.
LAMELLA_API Axes row_major_strides(const Axes& sizes);
LAMELLA_API TensorView row_major_view(void* data, DType dtype, const Axes& sizes);
// Whether the elements lie in row-major order without gaps (axes of size 1 may have any stride).
LAMELLA_API bool is_row_major(const TensorView& view);
// Whether they lie as N, spatial..., C without gaps; rank >= 3.
LAMELLA_API bool is_channels_last(const TensorView& view);

// "f32[8,4,32,32]"
LAMELLA_API std::string text(const TensorView& view);

inline int64_t byte_count(const TensorView& view) {
  return view.count() * size_of(view.dtype);
}

// The view `elements` further on.
inline TensorView moved(TensorView view, int64_t elements) {
  view.data = static_cast<char*>(view.data) + elements * size_of(view.dtype);
  return view;
}

// Throws Type unless the two dtypes are equal, Value unless the two shapes are.
LAMELLA_API void require_same_dtype(const char* operation, const char* left_name,
                                    const TensorView& left, const char* right_name,
                                    const TensorView& right);
LAMELLA_API void require_sizes(const char* operation, const char* name, const TensorView& view,
                               const Axes& sizes);

}  // namespace lamella::kernels
