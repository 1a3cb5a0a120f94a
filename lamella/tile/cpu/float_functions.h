// Float arithmetic and functions on float32 and float64, through the templates of tile/math.
#pragma once

#include "lamella/tile/cpu/ir.h"
#include "lamella/tile/program.h"

namespace lamella::tile {

LLVMValueRef emit_float_function(Ir& ir, Opcode opcode, LLVMValueRef a, LLVMValueRef b,
                                 LLVMValueRef c);

}  // namespace lamella::tile
