// Rounding of floats to integers.
#pragma once

#include "lamella/tile/cpu/ir.h"

namespace lamella::tile {

LLVMValueRef emit_round_even(Ir& ir, LLVMValueRef x);
LLVMValueRef emit_floor(Ir& ir, LLVMValueRef x);
LLVMValueRef emit_ceil(Ir& ir, LLVMValueRef x);
LLVMValueRef emit_trunc(Ir& ir, LLVMValueRef x);

}  // namespace lamella::tile
