// Tile values as LLVM values: the forms of each dtype in memory and in arithmetic, the conversions
// between them, and the casts between dtypes.
#pragma once

#include "lamella/tile/cpu/ir.h"
#include "lamella/types/dtype.h"

namespace lamella::tile {

// A value of the program. bool computes as i1, the 16-bit floats as float32 that holds a value of
// theirs; both forms are made only when asked for.
struct Value {
  LLVMValueRef computed = nullptr;
  LLVMValueRef stored = nullptr;

  explicit operator bool() const { return computed || stored; }
};

LLVMTypeRef storage_type(const Ir& ir, DType dtype);
LLVMTypeRef compute_type(const Ir& ir, DType dtype);

// The form in demand, made from the other one if needed.
LLVMValueRef computed(Ir& ir, DType dtype, Value& value);
LLVMValueRef stored(Ir& ir, DType dtype, Value& value);

// The result of arithmetic in the compute type, rounded to the dtype.
Value rounded(Ir& ir, DType dtype, LLVMValueRef result);

Value cast(Ir& ir, DType from, DType to, Value& value);
Value bitcast(Ir& ir, DType from, DType to, Value& value);
// One value in every lane.
Value splat(Ir& ir, const Value& value);

}  // namespace lamella::tile
