// Strides, layouts and texts of views.
#include "lamella/kernels/view.h"

#include "lamella/base/error.h"

namespace lamella::kernels {

namespace {

std::string text(const Axes& sizes) {
  return fmt::format("[{}]", fmt::join(sizes.begin(), sizes.end(), ","));
}

}  // namespace

Axes row_major_strides(const Axes& sizes) {
  Axes strides(sizes.size(), 1);
  for (uint32_t i = sizes.size(); i-- > 1;) {
    strides[i - 1] = strides[i] * std::max<int64_t>(sizes[i], 1);
  }
  return strides;
}

TensorView row_major_view(void* data, DType dtype, const Axes& sizes) {
  return {.data = data, .dtype = dtype, .sizes = sizes, .strides = row_major_strides(sizes)};
}

bool is_row_major(const TensorView& view) {
  int64_t expected = 1;
  for (uint32_t i = view.sizes.size(); i-- > 0;) {
    if (view.sizes[i] == 1) continue;
    if (view.strides[i] != expected) return false;
    expected *= view.sizes[i];
  }
  return true;
}

bool is_channels_last(const TensorView& view) {
  int64_t expected = 1;
  const uint32_t rank = view.sizes.size();
  for (uint32_t step = 0; step < rank; ++step) {
    // Axis 1, then the last one down to axis 2, then axis 0.
    const uint32_t axis = step == 0 ? 1 : step == rank - 1 ? 0 : rank - step;
    if (view.sizes[axis] == 1) continue;
    if (view.strides[axis] != expected) return false;
    expected *= view.sizes[axis];
  }
  return true;
}

std::string text(const TensorView& view) {
  return fmt::format("{}{}", short_name(view.dtype), text(view.sizes));
}

void require_same_dtype(const char* operation, const char* left_name, const TensorView& left,
                        const char* right_name, const TensorView& right) {
  if (left.dtype == right.dtype) return;
  fail(ErrorKind::Type, "[{}] {} and {} must have one dtype, got {} and {}", operation, left_name,
       right_name, name(left.dtype), name(right.dtype));
}

void require_sizes(const char* operation, const char* name, const TensorView& view,
                   const Axes& sizes) {
  if (view.sizes == sizes) return;
  fail(ErrorKind::Value, "[{}] {} must have shape {}, got {}", operation, name, text(sizes),
       text(view));
}

}  // namespace lamella::kernels
