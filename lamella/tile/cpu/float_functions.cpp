// Dispatch from opcodes to arithmetic instructions and to tile/math.
#include "lamella/tile/cpu/float_functions.h"

#include "lamella/base/error.h"
#include "lamella/tile/cpu/math_value.h"
#include "lamella/tile/math/exponential.h"
#include "lamella/tile/opcode.h"

namespace lamella::tile {

LLVMValueRef emit_float_function(Ir& ir, Opcode opcode, LLVMValueRef a, LLVMValueRef b,
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
      return ir.intrinsic("llvm.floor", {a});
    case Opcode::Ceil:
      return ir.intrinsic("llvm.ceil", {a});
    case Opcode::Trunc:
      return ir.intrinsic("llvm.trunc", {a});
    case Opcode::Round:
      return ir.intrinsic("llvm.roundeven", {a});
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
      return ir.intrinsic("llvm.minimum", {a, b});
    case Opcode::Max:
      return ir.intrinsic("llvm.maximum", {a, b});
    case Opcode::Fma:
      return ir.fma(a, b, c);
    default:
      break;
  }
  if (opcode == Opcode::Exp && single) return math::exp_float32(IrReal{&ir, a}).v;
  fail(ErrorKind::Unsupported, "[tile] {} is not yet compiled", name(opcode));
}

}  // namespace lamella::tile
