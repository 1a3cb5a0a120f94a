// Where a mask holds.
#pragma once

#include "lamella/base/api.h"
#include "lamella/device/tensor_view.h"

namespace lamella::kernels {

// Writes the row-major numbers of the true elements of `mask` (bool, any strides), in order, to
// `out` (int64, one dense axis). Returns how many there are; writes no more than `out` has room
// for.
LAMELLA_API int64_t mask_positions(const TensorView& mask, const TensorView& out);

}  // namespace lamella::kernels
