// One instruction where the machine has it; the baseline instruction set has none, so there the
// integer is found by adding and subtracting a power of two.
#include "lamella/tile/cpu/rounding.h"

namespace lamella::tile {

namespace {

bool has_rounding(const Ir& ir) {
  return ir.set() != InstructionSet::Generic;
}

LLVMValueRef magnitude(Ir& ir, LLVMValueRef x) {
  return ir.intrinsic("llvm.fabs", {x});
}
LLVMValueRef with_sign(Ir& ir, LLVMValueRef value, LLVMValueRef sign) {
  return ir.intrinsic("llvm.copysign", {value, sign});
}

// x rounded to nearest, for x that is not negative.
LLVMValueRef round_magnitude(Ir& ir, LLVMValueRef x) {
  const LLVMTypeRef type = LLVMTypeOf(x);
  const LLVMValueRef shift = ir.real(type, Ir::element(type) == ir.f32 ? 0x1p23 : 0x1p52);
  const LLVMValueRef rounded = ir.fsub(ir.fadd(x, shift), shift);
  return ir.select(ir.fcmp(LLVMRealOLT, x, shift), rounded, x);
}

// `rounded` moved by `step` where the comparison with x holds.
LLVMValueRef moved_where(Ir& ir, LLVMRealPredicate predicate, LLVMValueRef rounded, LLVMValueRef x,
                         double step) {
  const LLVMTypeRef type = LLVMTypeOf(x);
  const LLVMValueRef moved = ir.fadd(rounded, ir.real(type, step));
  return with_sign(ir, ir.select(ir.fcmp(predicate, rounded, x), moved, rounded), x);
}

}  // namespace

LLVMValueRef emit_round_even(Ir& ir, LLVMValueRef x) {
  if (has_rounding(ir)) return ir.intrinsic("llvm.roundeven", {x});
  return with_sign(ir, round_magnitude(ir, magnitude(ir, x)), x);
}

LLVMValueRef emit_trunc(Ir& ir, LLVMValueRef x) {
  if (has_rounding(ir)) return ir.intrinsic("llvm.trunc", {x});
  const LLVMValueRef a = magnitude(ir, x);
  return with_sign(ir, moved_where(ir, LLVMRealOGT, round_magnitude(ir, a), a, -1), x);
}

LLVMValueRef emit_floor(Ir& ir, LLVMValueRef x) {
  if (has_rounding(ir)) return ir.intrinsic("llvm.floor", {x});
  const LLVMValueRef nearest = emit_round_even(ir, x);
  return moved_where(ir, LLVMRealOGT, nearest, x, -1);
}

LLVMValueRef emit_ceil(Ir& ir, LLVMValueRef x) {
  if (has_rounding(ir)) return ir.intrinsic("llvm.ceil", {x});
  const LLVMValueRef nearest = emit_round_even(ir, x);
  return moved_where(ir, LLVMRealOLT, nearest, x, 1);
}

}  // namespace lamella::tile
