// The value type with which tile/math builds LLVM instructions; works on scalars and vectors.
#pragma once

#include "lamella/tile/cpu/ir.h"
#include "lamella/tile/cpu/rounding.h"
#include "lamella/tile/math/value.h"

namespace lamella::tile {

struct IrMask {
  Ir* ir;
  LLVMValueRef v;

  friend IrMask operator&(IrMask a, IrMask b) { return {a.ir, a.ir->bit_and(a.v, b.v)}; }
  friend IrMask operator|(IrMask a, IrMask b) { return {a.ir, a.ir->bit_or(a.v, b.v)}; }
  friend IrMask operator^(IrMask a, IrMask b) { return {a.ir, a.ir->bit_xor(a.v, b.v)}; }
  friend IrMask operator!(IrMask a) { return {a.ir, a.ir->bit_not(a.v)}; }
};

struct IrInt {
  Ir* ir;
  LLVMValueRef v;

  IrInt constant(int64_t value) const { return {ir, ir->integer(LLVMTypeOf(v), value)}; }
  IrInt shl(int n) const { return {ir, ir->shl(v, n)}; }
  IrInt lshr(int n) const { return {ir, ir->lshr(v, n)}; }
  IrInt ashr(int n) const { return {ir, ir->ashr(v, n)}; }

  friend IrInt operator+(IrInt a, IrInt b) { return {a.ir, a.ir->add(a.v, b.v)}; }
  friend IrInt operator-(IrInt a, IrInt b) { return {a.ir, a.ir->sub(a.v, b.v)}; }
  friend IrInt operator*(IrInt a, IrInt b) { return {a.ir, a.ir->mul(a.v, b.v)}; }
  friend IrInt operator&(IrInt a, IrInt b) { return {a.ir, a.ir->bit_and(a.v, b.v)}; }
  friend IrInt operator|(IrInt a, IrInt b) { return {a.ir, a.ir->bit_or(a.v, b.v)}; }
  friend IrInt operator^(IrInt a, IrInt b) { return {a.ir, a.ir->bit_xor(a.v, b.v)}; }
  friend IrInt operator+(IrInt a, int64_t b) { return a + a.constant(b); }
  friend IrInt operator-(IrInt a, int64_t b) { return a - a.constant(b); }
  friend IrInt operator*(IrInt a, int64_t b) { return a * a.constant(b); }
  friend IrInt operator&(IrInt a, int64_t b) { return a & a.constant(b); }
  friend IrInt operator|(IrInt a, int64_t b) { return a | a.constant(b); }
  friend IrInt operator^(IrInt a, int64_t b) { return a ^ a.constant(b); }
  friend IrMask operator==(IrInt a, int64_t b) {
    return {a.ir, a.ir->icmp(LLVMIntEQ, a.v, a.constant(b).v)};
  }
  friend IrMask operator!=(IrInt a, int64_t b) {
    return {a.ir, a.ir->icmp(LLVMIntNE, a.v, a.constant(b).v)};
  }
  friend IrMask operator<(IrInt a, int64_t b) {
    return {a.ir, a.ir->icmp(LLVMIntSLT, a.v, a.constant(b).v)};
  }
  friend IrMask operator>(IrInt a, int64_t b) {
    return {a.ir, a.ir->icmp(LLVMIntSGT, a.v, a.constant(b).v)};
  }
};

struct IrReal {
  using Int = IrInt;
  using Mask = IrMask;
  Ir* ir;
  LLVMValueRef v;

  IrReal constant(double value) const { return {ir, ir->real(LLVMTypeOf(v), value)}; }
  LLVMTypeRef element() const { return Ir::element(LLVMTypeOf(v)); }

  friend IrReal operator+(IrReal a, IrReal b) { return {a.ir, a.ir->fadd(a.v, b.v)}; }
  friend IrReal operator-(IrReal a, IrReal b) { return {a.ir, a.ir->fsub(a.v, b.v)}; }
  friend IrReal operator*(IrReal a, IrReal b) { return {a.ir, a.ir->fmul(a.v, b.v)}; }
  friend IrReal operator/(IrReal a, IrReal b) { return {a.ir, a.ir->fdiv(a.v, b.v)}; }
  friend IrReal operator-(IrReal a) { return {a.ir, a.ir->fneg(a.v)}; }
  friend IrReal operator+(IrReal a, double b) { return a + a.constant(b); }
  friend IrReal operator-(IrReal a, double b) { return a - a.constant(b); }
  friend IrReal operator*(IrReal a, double b) { return a * a.constant(b); }
  friend IrReal operator/(IrReal a, double b) { return a / a.constant(b); }
  friend IrReal operator+(double a, IrReal b) { return b.constant(a) + b; }
  friend IrReal operator-(double a, IrReal b) { return b.constant(a) - b; }
  friend IrReal operator*(double a, IrReal b) { return b.constant(a) * b; }
  friend IrReal operator/(double a, IrReal b) { return b.constant(a) / b; }

  friend IrMask operator<(IrReal a, IrReal b) { return compare(LLVMRealOLT, a, b); }
  friend IrMask operator<=(IrReal a, IrReal b) { return compare(LLVMRealOLE, a, b); }
  friend IrMask operator>(IrReal a, IrReal b) { return compare(LLVMRealOGT, a, b); }
  friend IrMask operator>=(IrReal a, IrReal b) { return compare(LLVMRealOGE, a, b); }
  friend IrMask operator==(IrReal a, IrReal b) { return compare(LLVMRealOEQ, a, b); }
  friend IrMask operator!=(IrReal a, IrReal b) { return compare(LLVMRealUNE, a, b); }
  friend IrMask operator<(IrReal a, double b) { return a < a.constant(b); }
  friend IrMask operator<=(IrReal a, double b) { return a <= a.constant(b); }
  friend IrMask operator>(IrReal a, double b) { return a > a.constant(b); }
  friend IrMask operator>=(IrReal a, double b) { return a >= a.constant(b); }
  friend IrMask operator==(IrReal a, double b) { return a == a.constant(b); }
  friend IrMask operator!=(IrReal a, double b) { return a != a.constant(b); }

 private:
  static IrMask compare(LLVMRealPredicate predicate, IrReal a, IrReal b) {
    return {a.ir, a.ir->fcmp(predicate, a.v, b.v)};
  }
};

inline IrReal fma(IrReal a, IrReal b, IrReal c) {
  return {a.ir, a.ir->fma(a.v, b.v, c.v)};
}
inline IrReal select(IrMask mask, IrReal a, IrReal b) {
  return {a.ir, a.ir->select(mask.v, a.v, b.v)};
}
inline IrInt select(IrMask mask, IrInt a, IrInt b) {
  return {a.ir, a.ir->select(mask.v, a.v, b.v)};
}
inline IrReal sqrt(IrReal a) {
  return {a.ir, a.ir->intrinsic("llvm.sqrt", {a.v})};
}
inline IrReal floor(IrReal a) {
  return {a.ir, emit_floor(*a.ir, a.v)};
}
inline IrReal trunc(IrReal a) {
  return {a.ir, emit_trunc(*a.ir, a.v)};
}
inline IrReal abs(IrReal a) {
  return {a.ir, a.ir->intrinsic("llvm.fabs", {a.v})};
}
inline IrReal copysign(IrReal magnitude, IrReal sign) {
  return {sign.ir, sign.ir->intrinsic("llvm.copysign", {magnitude.v, sign.v})};
}
// The bits of a float as an integer of its width, and back.
inline IrInt bits(IrReal a) {
  return {a.ir, a.ir->bitcast(a.v, a.element() == a.ir->f32 ? a.ir->i32 : a.ir->i64)};
}
inline IrReal real(IrInt a) {
  const bool wide = Ir::element(LLVMTypeOf(a.v)) == a.ir->i64;
  return {a.ir, a.ir->bitcast(a.v, wide ? a.ir->f64 : a.ir->f32)};
}
// The value as an integer of the same width, truncated; and an integer as a float32.
inline IrInt to_integer(IrReal a) {
  const LLVMTypeRef type = a.element() == a.ir->f32 ? a.ir->i32 : a.ir->i64;
  return {a.ir, a.ir->convert(LLVMFPToSI, a.v, type)};
}
inline IrReal to_real(IrInt a) {
  return {a.ir, a.ir->convert(LLVMSIToFP, a.v, a.ir->f32)};
}
inline IrReal widen(IrReal a) {
  return {a.ir, a.ir->convert(LLVMFPExt, a.v, a.ir->f64)};
}
inline IrReal narrow(IrReal a) {
  return {a.ir, a.ir->convert(LLVMFPTrunc, a.v, a.ir->f32)};
}
inline IrInt widen(IrInt a) {
  return {a.ir, a.ir->convert(LLVMSExt, a.v, a.ir->i64)};
}
// `rare()` where the mask holds, else `value`; rare() is only evaluated if a lane needs it.
template <typename Rare>
IrReal replace_rare(IrMask mask, IrReal value, Rare rare) {
  Ir* ir = value.ir;
  const Ir::Values result = ir->if_then(ir->any(mask.v), {value.v}, [&] {
    return Ir::Values{ir->select(mask.v, rare().v, value.v)};
  });
  return {ir, result[0]};
}

// p * 2^n for whole n within [-252, 254], rounded once.
IrReal scale_float32(IrReal p, IrReal n);
// A library function, lane by lane. The loop is a function of its own, once a module.
IrReal call_each(const math::LibraryFunction& function, IrReal a);
IrReal call_each(const math::LibraryFunction& function, IrReal a, IrReal b);

}  // namespace lamella::tile
