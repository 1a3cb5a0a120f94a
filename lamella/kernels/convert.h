// Between the 16-bit floats and float32, for kernels that compute in float32.
#pragma once

#include "lamella/base/api.h"
#include "lamella/device/tensor_view.h"

namespace lamella::kernels {

// to = from, of equal sizes and any strides, where one is float32 and the other float16 or
// bfloat16. Widening is exact; narrowing rounds to nearest, ties to even.
LAMELLA_API void convert(const TensorView& from, const TensorView& to);

}  // namespace lamella::kernels
