// Conversions between the forms of a dtype and between dtypes; the 16-bit ones give the bits of
// types/half.h.
#include "lamella/tile/cpu/value.h"

namespace lamella::tile {

LLVMTypeRef storage_type(const Ir& ir, DType dtype) {
  switch (dtype) {
    case DType::Float32:
      return ir.f32;
    case DType::Float64:
      return ir.f64;
    default:
      return ir.integer(static_cast<unsigned>(size_of(dtype) * 8));
  }
}

LLVMTypeRef compute_type(const Ir& ir, DType dtype) {
  if (dtype == DType::Bool) return ir.i1;
  return storage_type(ir, compute_dtype(dtype));
}

namespace {

bool has_half_conversions(const Ir& ir) {
  return ir.set() != InstructionSet::Generic;
}

LLVMTypeRef half_type(const Ir& ir) {
  return LLVMHalfTypeInContext(LLVMGetTypeContext(ir.i32));
}

LLVMValueRef float_from_bfloat16(Ir& ir, LLVMValueRef stored) {
  return ir.bitcast(ir.shl(ir.convert(LLVMZExt, stored, ir.i32), 16), ir.f32);
}

LLVMValueRef float_from_float16(Ir& ir, LLVMValueRef stored) {
  if (has_half_conversions(ir)) {
    return ir.convert(LLVMFPExt, ir.bitcast(stored, half_type(ir)), ir.f32);
  }
  const LLVMValueRef wide = ir.convert(LLVMZExt, stored, ir.i32);
  const LLVMTypeRef type = LLVMTypeOf(wide);
  const LLVMValueRef magnitude = ir.shl(ir.bit_and(wide, ir.integer(type, 0x7FFF)), 13);
  const LLVMValueRef sign = ir.shl(ir.bit_and(wide, ir.integer(type, 0x8000)), 16);
  const LLVMValueRef as_float = ir.bitcast(magnitude, ir.f32);
  const LLVMValueRef scaled = ir.fmul(as_float, ir.real(LLVMTypeOf(as_float), 0x1p112));
  const LLVMValueRef special = ir.icmp(LLVMIntUGE, magnitude, ir.integer(type, 0x7C00 << 13));
  // A quiet NaN, as the conversion instructions give.
  const LLVMValueRef nan = ir.icmp(LLVMIntUGT, magnitude, ir.integer(type, 0x7C00 << 13));
  const LLVMValueRef quiet = ir.select(nan, ir.integer(type, 0x400000), ir.integer(type, 0));
  const LLVMValueRef infinite =
      ir.bit_or(ir.bit_or(magnitude, ir.integer(type, 0x7F800000)), quiet);
  const LLVMValueRef bits = ir.select(special, infinite, ir.bitcast(scaled, ir.i32));
  return ir.bitcast(ir.bit_or(bits, sign), ir.f32);
}

LLVMValueRef float16_from_float(Ir& ir, LLVMValueRef value) {
  if (has_half_conversions(ir)) {
    return ir.bitcast(ir.convert(LLVMFPTrunc, value, half_type(ir)), ir.i16);
  }
  const LLVMValueRef bits = ir.bitcast(value, ir.i32);
  const LLVMTypeRef type = LLVMTypeOf(bits);
  const auto constant = [&](int64_t k) { return ir.integer(type, k); };
  const LLVMValueRef sign = ir.bit_and(ir.lshr(bits, 16), constant(0x8000));
  const LLVMValueRef magnitude = ir.bit_and(bits, constant(0x7FFFFFFF));
  const LLVMValueRef last = ir.bit_and(ir.lshr(magnitude, 13), constant(1));
  const LLVMValueRef normal =
      ir.lshr(ir.add(ir.add(magnitude, last), constant(0xFFF - 0x38000000)), 13);
  const LLVMValueRef as_float = ir.bitcast(magnitude, ir.f32);
  const LLVMValueRef shifted = ir.fadd(as_float, ir.real(LLVMTypeOf(as_float), 0.5));
  const LLVMValueRef subnormal = ir.sub(ir.bitcast(shifted, ir.i32), constant(0x3F000000));
  const LLVMValueRef nan =
      ir.bit_or(ir.bit_and(ir.lshr(magnitude, 13), constant(0x3FF)), constant(0x7E00));
  LLVMValueRef result =
      ir.select(ir.icmp(LLVMIntULT, magnitude, constant(0x38800000)), subnormal, normal);
  result =
      ir.select(ir.icmp(LLVMIntUGE, magnitude, constant(0x477FF000)), constant(0x7C00), result);
  result = ir.select(ir.icmp(LLVMIntUGT, magnitude, constant(0x7F800000)), nan, result);
  return ir.convert(LLVMTrunc, ir.bit_or(result, sign), ir.i16);
}

// The nearest bfloat16, still as a float32.
LLVMValueRef round_to_bfloat16(Ir& ir, LLVMValueRef value) {
  const LLVMValueRef bits = ir.bitcast(value, ir.i32);
  const LLVMTypeRef type = LLVMTypeOf(bits);
  const LLVMValueRef last = ir.bit_and(ir.lshr(bits, 16), ir.integer(type, 1));
  const LLVMValueRef nearest = ir.add(ir.add(bits, last), ir.integer(type, 0x7FFF));
  const LLVMValueRef quiet = ir.bit_or(bits, ir.integer(type, 0x400000));
  const LLVMValueRef either = ir.select(ir.fcmp(LLVMRealUNO, value, value), quiet, nearest);
  return ir.bitcast(ir.bit_and(either, ir.integer(type, -0x10000)), ir.f32);
}

// float32 from float64 such that a further rounding to 16 bits rounds once (see types/half.h).
LLVMValueRef round_to_odd(Ir& ir, LLVMValueRef value) {
  const LLVMValueRef nearest = ir.convert(LLVMFPTrunc, value, ir.f32);
  const LLVMValueRef back = ir.convert(LLVMFPExt, nearest, ir.f64);
  const LLVMValueRef bits = ir.bitcast(nearest, ir.i32);
  const LLVMValueRef inexact = ir.fcmp(LLVMRealONE, back, value);
  const LLVMValueRef away =
      ir.fcmp(LLVMRealOGT, ir.intrinsic("llvm.fabs", {back}), ir.intrinsic("llvm.fabs", {value}));
  const LLVMValueRef lowered = ir.sub(bits, ir.convert(LLVMZExt, away, ir.i32));
  const LLVMValueRef odd = ir.bit_or(lowered, ir.integer(LLVMTypeOf(bits), 1));
  return ir.bitcast(ir.select(inexact, odd, bits), ir.f32);
}

// float64 from int64, with everything a later rounding to 24 bits or fewer needs: the low bits of
// large magnitudes are replaced by one that says whether any was set.
LLVMValueRef float64_from_large(Ir& ir, LLVMValueRef value) {
  const LLVMTypeRef type = LLVMTypeOf(value);
  const LLVMValueRef low = ir.bit_and(value, ir.integer(type, 0xFFF));
  const LLVMValueRef sticky = ir.select(ir.icmp(LLVMIntNE, low, ir.integer(type, 0)),
                                        ir.integer(type, 0x800), ir.integer(type, 0));
  const LLVMValueRef coarse = ir.bit_or(ir.bit_and(value, ir.integer(type, -0x1000)), sticky);
  const LLVMValueRef shifted = ir.add(value, ir.integer(type, int64_t{1} << 52));
  const LLVMValueRef small = ir.icmp(LLVMIntULT, shifted, ir.integer(type, int64_t{1} << 53));
  return ir.convert(LLVMSIToFP, ir.select(small, value, coarse), ir.f64);
}

LLVMValueRef integer_to_float(Ir& ir, DType from, DType to, LLVMValueRef value) {
  const LLVMOpcode convert = is_unsigned(from) ? LLVMUIToFP : LLVMSIToFP;
  if (!is_low_precision(to) || size_of(from) < 4) {
    return ir.convert(convert, value, compute_type(ir, to));
  }
  return round_to_odd(ir, from == DType::Int64 ? float64_from_large(ir, value)
                                               : ir.convert(convert, value, ir.f64));
}

LLVMValueRef float_to_integer(Ir& ir, DType to, LLVMValueRef value) {
  const LLVMTypeRef type = Ir::like(LLVMTypeOf(value), compute_type(ir, to));
  const char* name = is_unsigned(to) ? "llvm.fptoui.sat" : "llvm.fptosi.sat";
  return ir.intrinsic(name, {type, LLVMTypeOf(value)}, {value});
}

}  // namespace

LLVMValueRef computed(Ir& ir, DType dtype, Value& value) {
  if (value.computed) return value.computed;
  switch (dtype) {
    case DType::Bool:
      value.computed = ir.icmp(LLVMIntNE, value.stored, ir.integer(LLVMTypeOf(value.stored), 0));
      break;
    case DType::BFloat16:
      value.computed = float_from_bfloat16(ir, value.stored);
      break;
    case DType::Float16:
      value.computed = float_from_float16(ir, value.stored);
      break;
    default:
      value.computed = value.stored;
  }
  return value.computed;
}

LLVMValueRef stored(Ir& ir, DType dtype, Value& value) {
  if (value.stored) return value.stored;
  switch (dtype) {
    case DType::Bool:
      value.stored = ir.convert(LLVMZExt, value.computed, ir.i8);
      break;
    case DType::BFloat16:
      value.stored = ir.convert(LLVMTrunc, ir.lshr(ir.bitcast(value.computed, ir.i32), 16), ir.i16);
      break;
    case DType::Float16:
      value.stored = float16_from_float(ir, value.computed);
      break;
    default:
      value.stored = value.computed;
  }
  return value.stored;
}

Value rounded(Ir& ir, DType dtype, LLVMValueRef result) {
  if (dtype == DType::BFloat16) return {.computed = round_to_bfloat16(ir, result)};
  if (dtype == DType::Float16) return {.stored = float16_from_float(ir, result)};
  return {.computed = result};
}

Value cast(Ir& ir, DType from, DType to, Value& value) {
  if (from == to) return value;
  const LLVMValueRef source = computed(ir, from, value);
  const LLVMTypeRef type = LLVMTypeOf(source);
  if (to == DType::Bool) {
    if (is_float(from)) return {.computed = ir.fcmp(LLVMRealUNE, source, ir.real(type, 0))};
    return {.computed = ir.icmp(LLVMIntNE, source, ir.integer(type, 0))};
  }
  if (is_float(from)) {
    if (!is_float(to)) return {.computed = float_to_integer(ir, to, source)};
    if (to == DType::Float64) return {.computed = ir.convert(LLVMFPExt, source, ir.f64)};
    if (from != DType::Float64) return rounded(ir, to, source);
    if (is_low_precision(to)) return rounded(ir, to, round_to_odd(ir, source));
    return {.computed = ir.convert(LLVMFPTrunc, source, ir.f32)};
  }
  if (is_float(to)) return rounded(ir, to, integer_to_float(ir, from, to, source));
  if (size_of(to) == size_of(from) && from != DType::Bool) return {.computed = source};
  const LLVMOpcode widening = is_unsigned(from) ? LLVMZExt : LLVMSExt;
  const bool wider = from == DType::Bool || size_of(to) > size_of(from);
  return {.computed = ir.convert(wider ? widening : LLVMTrunc, source, storage_type(ir, to))};
}

Value bitcast(Ir& ir, DType from, DType to, Value& value) {
  return {.stored = ir.bitcast(stored(ir, from, value), storage_type(ir, to))};
}

Value splat(Ir& ir, const Value& value) {
  return {.computed = value.computed ? ir.splat(value.computed) : nullptr,
          .stored = value.stored ? ir.splat(value.stored) : nullptr};
}

}  // namespace lamella::tile
