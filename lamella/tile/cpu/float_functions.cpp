// Dispatch from opcodes to arithmetic instructions and to tile/math.
#include "lamella/tile/cpu/float_functions.h"

#include "lamella/base/error.h"
#include "lamella/tile/cpu/math_value.h"
#include "lamella/tile/cpu/rounding.h"
#include "lamella/tile/math/division.h"
#include "lamella/tile/math/functions.h"
#include "lamella/tile/opcode.h"

namespace lamella::tile {

namespace {

// One instruction that tells zeros by their sign, but prefers a number to NaN.
LLVMValueRef emit_range(Ir& ir, Extremum which, LLVMValueRef a, LLVMValueRef b) {
  constexpr int64_t kSignOfResult = 4, kMaximum = 1, kRoundAsSet = 4;
  const int64_t choice = kSignOfResult + (which == Extremum::Maximum ? kMaximum : 0);
  return ir.intrinsic("llvm.x86.avx512.mask.range.ps.512", {},
                      {a, b, ir.integer(ir.i32, choice), a, ir.integer(ir.i16, -1),
                       ir.integer(ir.i32, kRoundAsSet)});
}

}  // namespace

LLVMValueRef emit_extremum(Ir& ir, Extremum which, DType dtype, LLVMValueRef a, LLVMValueRef b) {
  const bool minimum = which == Extremum::Minimum;
  if (ir.set() == InstructionSet::Avx512 && LLVMTypeOf(a) == Ir::vector(ir.f32)) {
    return ir.select(ir.fcmp(LLVMRealUNO, a, b), ir.fadd(a, b), emit_range(ir, which, a, b));
  }
  // LLVM 19 moves the intrinsic to half precision, where its code for x86 misses NaN.
  if (dtype != DType::Float16) {
    return ir.intrinsic(minimum ? "llvm.minimum" : "llvm.maximum", {a, b});
  }
  const LLVMValueRef ordered = ir.select(ir.fcmp(minimum ? LLVMRealOLT : LLVMRealOGT, a, b), a, b);
  // Equal values differ at most in the sign of 0.
  const LLVMValueRef bits_a = ir.bitcast(a, ir.i32), bits_b = ir.bitcast(b, ir.i32);
  const LLVMValueRef joined = minimum ? ir.bit_or(bits_a, bits_b) : ir.bit_and(bits_a, bits_b);
  const LLVMValueRef result =
      ir.select(ir.fcmp(LLVMRealOEQ, a, b), ir.bitcast(joined, ir.f32), ordered);
  return ir.select(ir.fcmp(LLVMRealUNO, a, b), ir.fadd(a, b), result);
}

LLVMValueRef emit_float_function(Ir& ir, Opcode opcode, DType dtype, LLVMValueRef a, LLVMValueRef b,
                                 LLVMValueRef c) {
  const LLVMTypeRef type = LLVMTypeOf(a);
  const bool single = Ir::element(type) == ir.f32;
  const LLVMValueRef zero = ir.real(type, 0), one = ir.real(type, 1);
  switch (opcode) {
    case Opcode::Neg:
      return ir.fneg(a);
    case Opcode::Abs:
      return ir.intrinsic("llvm.fabs", {a});
    case Opcode::Sign: {
      const LLVMValueRef negative = ir.select(ir.fcmp(LLVMRealOLT, a, zero), ir.real(type, -1),
                                              ir.select(ir.fcmp(LLVMRealUNO, a, a), a, zero));
      return ir.select(ir.fcmp(LLVMRealOGT, a, zero), one, negative);
    }
    case Opcode::Floor:
      return emit_floor(ir, a);
    case Opcode::Ceil:
      return emit_ceil(ir, a);
    case Opcode::Trunc:
      return emit_trunc(ir, a);
    case Opcode::Round:
      return emit_round_even(ir, a);
    case Opcode::Sqrt:
      return ir.intrinsic("llvm.sqrt", {a});
    case Opcode::Rsqrt:
      return ir.fdiv(one, ir.intrinsic("llvm.sqrt", {a}));
    case Opcode::Reciprocal:
      return ir.fdiv(one, a);
    case Opcode::Add:
      return ir.fadd(a, b);
    case Opcode::Sub:
      return ir.fsub(a, b);
    case Opcode::Mul:
      return ir.fmul(a, b);
    case Opcode::Div:
      return ir.fdiv(a, b);
    case Opcode::Min:
      return emit_extremum(ir, Extremum::Minimum, dtype, a, b);
    case Opcode::Max:
      return emit_extremum(ir, Extremum::Maximum, dtype, a, b);
    case Opcode::Fma:
      return ir.fma(a, b, c);
    default:
      break;
  }
  const IrReal left = {&ir, a}, right = {&ir, b};
  if (opcode == Opcode::Mod || opcode == Opcode::FloorDiv) {
    const IrReal rest =
        single ? math::remainder_float32(left, right) : math::remainder_float64(left, right);
    return (opcode == Opcode::Mod ? math::python_remainder(rest, right)
                                  : math::python_quotient(rest, left, right))
        .v;
  }
  LAMELLA_CHECK(is_transcendental(opcode));
  return (single ? math::function_float32(opcode, left, right)
                 : math::function_float64(opcode, left, right))
      .v;
}

}  // namespace lamella::tile
