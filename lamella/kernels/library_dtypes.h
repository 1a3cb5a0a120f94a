// Which dtypes the library computes with at full speed on this CPU.
#pragma once

#include "lamella/types/dtype.h"

namespace lamella::kernels {

// float32 always; bfloat16 where the CPU multiplies it at least as fast as float32: with matrix
// (AMX) instructions, or with dot-product instructions that are not half as wide, as they are on
// Intel's cores without AMX in use. Other 16-bit floats are computed in float32.
// The library's bfloat16 products accumulate in float32 and read subnormal numbers as 0.
bool library_takes(DType dtype);

}  // namespace lamella::kernels
