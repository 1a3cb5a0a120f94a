// Emits the arithmetic of single instructions, on scalars or on vectors.
#pragma once

#include <span>

#include "lamella/tile/cpu/value.h"
#include "lamella/tile/program.h"

namespace lamella::tile {

// An instruction's operand with its dtype; computed forms made on the way are kept in it.
struct Operand {
  Value* value = nullptr;
  DType dtype = DType::Float32;
};

// The value of an instruction other than Load, Scalar, Iota, Store and reductions, whose operands
// are all scalars or all vectors.
Value emit_instruction(Ir& ir, const Instruction& instruction, std::span<const Operand> operands);

// The bool (vector) of a comparison of two values of a dtype, both in its compute type.
LLVMValueRef emit_comparison(Ir& ir, Opcode opcode, DType dtype, LLVMValueRef a, LLVMValueRef b);

Value emit_constant(Ir& ir, const Instruction& instruction);

// The four words of Philox4x32-10 for int64 operands.
std::array<LLVMValueRef, 4> emit_philox(Ir& ir, LLVMValueRef seed, LLVMValueRef offset,
                                        LLVMValueRef element);

// Reductions: the value that changes nothing, and one step of the accumulation, both in the
// compute type.
LLVMValueRef reduction_identity(const Ir& ir, Opcode opcode, DType dtype, LLVMTypeRef type);
LLVMValueRef reduction_step(Ir& ir, Opcode opcode, DType dtype, LLVMValueRef a, LLVMValueRef b);
// What a reduction of no elements gives, as a scalar.
LLVMValueRef empty_reduction(const Ir& ir, Opcode opcode, DType dtype);

}  // namespace lamella::tile
