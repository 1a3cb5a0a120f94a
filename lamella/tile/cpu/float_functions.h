// Float arithmetic and functions on float32 and float64, through the templates of tile/math.
#pragma once

#include "lamella/tile/cpu/ir.h"
#include "lamella/tile/program.h"

namespace lamella::tile {

// `dtype` is the values' own; they are float32 if it is a 16-bit type.
LLVMValueRef emit_float_function(Ir& ir, Opcode opcode, DType dtype, LLVMValueRef a, LLVMValueRef b,
                                 LLVMValueRef c);

// IEEE 754-2019 minimum or maximum: NaN if either is NaN, -0 below +0.
enum class Extremum : uint8_t { Minimum, Maximum };
LLVMValueRef emit_extremum(Ir& ir, Extremum which, DType dtype, LLVMValueRef a, LLVMValueRef b);

}  // namespace lamella::tile
