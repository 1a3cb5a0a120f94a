// One instruction at a time: integer and logical ones here, float functions through tile/math.
#include "lamella/tile/cpu/instructions.h"

#include <limits>

#include "lamella/base/error.h"
#include "lamella/tile/cpu/float_functions.h"
#include "lamella/tile/opcode.h"

namespace lamella::tile {

namespace {

// Predicates of a comparison for floats, signed and unsigned integers.
struct Predicates {
  LLVMRealPredicate real;
  LLVMIntPredicate is_signed;
  LLVMIntPredicate is_unsigned;
};

Predicates predicates(Opcode opcode) {
  switch (opcode) {
    case Opcode::Equal:
      return {LLVMRealOEQ, LLVMIntEQ, LLVMIntEQ};
    case Opcode::NotEqual:
      return {LLVMRealUNE, LLVMIntNE, LLVMIntNE};
    case Opcode::Less:
      return {LLVMRealOLT, LLVMIntSLT, LLVMIntULT};
    case Opcode::LessEqual:
      return {LLVMRealOLE, LLVMIntSLE, LLVMIntULE};
    case Opcode::Greater:
      return {LLVMRealOGT, LLVMIntSGT, LLVMIntUGT};
    default:
      return {LLVMRealOGE, LLVMIntSGE, LLVMIntUGE};
  }
}

LLVMValueRef emit_float_test(Ir& ir, Opcode opcode, LLVMValueRef a) {
  if (opcode == Opcode::IsNan) return ir.fcmp(LLVMRealUNO, a, a);
  const LLVMValueRef magnitude = ir.intrinsic("llvm.fabs", {a});
  const LLVMValueRef infinity = ir.real(LLVMTypeOf(a), std::numeric_limits<double>::infinity());
  return ir.fcmp(opcode == Opcode::IsInf ? LLVMRealOEQ : LLVMRealOLT, magnitude, infinity);
}

struct Division {
  LLVMValueRef quotient;
  LLVMValueRef remainder;
};

// Truncating division. By zero both results are 0; the least integer divided by -1 wraps.
Division emit_truncating_division(Ir& ir, DType dtype, LLVMValueRef a, LLVMValueRef b) {
  const LLVMTypeRef type = LLVMTypeOf(a);
  const LLVMValueRef zero = ir.integer(type, 0), one = ir.integer(type, 1);
  const LLVMValueRef by_zero = ir.icmp(LLVMIntEQ, b, zero);
  LLVMValueRef unsafe = by_zero;
  if (!is_unsigned(dtype)) {
    const int64_t least = std::numeric_limits<int64_t>::min() >> (64 - size_of(dtype) * 8);
    const LLVMValueRef overflow = ir.bit_and(ir.icmp(LLVMIntEQ, a, ir.integer(type, least)),
                                             ir.icmp(LLVMIntEQ, b, ir.integer(type, -1)));
    unsafe = ir.bit_or(unsafe, overflow);
  }
  const LLVMValueRef divisor = ir.select(unsafe, one, b);
  LLVMValueRef quotient;
  if (dtype == DType::Int64) {
    quotient = LLVMBuildSDiv(ir.builder(), a, divisor, "");
  } else {
    // The truncated float64 quotient of integers below 2^32 is exact, and divides by the vector.
    const bool wide = is_unsigned(dtype);
    const LLVMOpcode convert = wide ? LLVMUIToFP : LLVMSIToFP;
    const LLVMValueRef ratio =
        ir.fdiv(ir.convert(convert, a, ir.f64), ir.convert(convert, divisor, ir.f64));
    const LLVMValueRef truncated = ir.convert(LLVMFPToSI, ratio, ir.i32);
    quotient =
        dtype == DType::Int32 ? truncated : ir.convert(LLVMTrunc, truncated, Ir::element(type));
  }
  const LLVMValueRef remainder = ir.sub(a, ir.mul(quotient, divisor));
  return {ir.select(by_zero, zero, quotient), ir.select(by_zero, zero, remainder)};
}

LLVMValueRef emit_integer_division(Ir& ir, Opcode opcode, DType dtype, LLVMValueRef a,
                                   LLVMValueRef b) {
  const auto [quotient, remainder] = emit_truncating_division(ir, dtype, a, b);
  if (opcode == Opcode::Div) return quotient;
  if (is_unsigned(dtype)) return opcode == Opcode::FloorDiv ? quotient : remainder;
  const LLVMValueRef zero = ir.integer(LLVMTypeOf(a), 0);
  const LLVMValueRef signs_differ = ir.icmp(LLVMIntSLT, ir.bit_xor(remainder, b), zero);
  const LLVMValueRef adjust = ir.bit_and(ir.icmp(LLVMIntNE, remainder, zero), signs_differ);
  if (opcode == Opcode::Mod) return ir.add(remainder, ir.select(adjust, b, zero));
  return ir.sub(quotient, ir.select(adjust, ir.integer(LLVMTypeOf(a), 1), zero));
}

// a to the power b by squaring, wrapping; a negative power is 0 unless the base is 1 or -1.
LLVMValueRef emit_integer_power(Ir& ir, DType dtype, LLVMValueRef a, LLVMValueRef b) {
  const LLVMTypeRef type = LLVMTypeOf(a);
  const LLVMValueRef zero = ir.integer(type, 0), one = ir.integer(type, 1);
  const LLVMValueRef bits = ir.integer(ir.i32, size_of(dtype) * 8);
  const auto result =
      ir.loop(ir.integer(ir.i32, 0), bits, ir.integer(ir.i32, 1), {one, a, b},
              [&](LLVMValueRef, const Ir::Values& carried) {
                const LLVMValueRef odd = ir.icmp(LLVMIntNE, ir.bit_and(carried[2], one), zero);
                return Ir::Values{ir.select(odd, ir.mul(carried[0], carried[1]), carried[0]),
                                  ir.mul(carried[1], carried[1]), ir.lshr(carried[2], 1)};
              });
  if (is_unsigned(dtype)) return result[0];
  const LLVMValueRef minus_one = ir.integer(type, -1);
  const LLVMValueRef odd = ir.icmp(LLVMIntNE, ir.bit_and(b, one), zero);
  const LLVMValueRef of_minus_one = ir.select(odd, minus_one, one);
  LLVMValueRef inverse = ir.select(ir.icmp(LLVMIntEQ, a, minus_one), of_minus_one, zero);
  inverse = ir.select(ir.icmp(LLVMIntEQ, a, one), one, inverse);
  return ir.select(ir.icmp(LLVMIntSLT, b, zero), inverse, result[0]);
}

LLVMValueRef emit_integer_minimum(Ir& ir, Opcode opcode, DType dtype, LLVMValueRef a,
                                  LLVMValueRef b) {
  const bool minimum = opcode == Opcode::Min || opcode == Opcode::ReduceMin;
  if (dtype == DType::Bool) return minimum ? ir.bit_and(a, b) : ir.bit_or(a, b);
  const char* name = is_unsigned(dtype) ? (minimum ? "llvm.umin" : "llvm.umax")
                                        : (minimum ? "llvm.smin" : "llvm.smax");
  return ir.intrinsic(name, {a, b});
}

LLVMValueRef emit_integer(Ir& ir, const Instruction& instruction, LLVMValueRef a, LLVMValueRef b) {
  const DType dtype = instruction.dtype;
  const LLVMTypeRef type = LLVMTypeOf(a);
  const LLVMValueRef zero = ir.integer(type, 0);
  switch (instruction.opcode) {
    case Opcode::Neg:
      return ir.sub(zero, a);
    case Opcode::Abs:
      if (is_unsigned(dtype)) return a;
      return ir.intrinsic("llvm.abs", {type}, {a, LLVMConstInt(ir.i1, 0, 0)});
    case Opcode::Sign: {
      const LLVMValueRef one = ir.integer(type, 1);
      if (is_unsigned(dtype)) return ir.intrinsic("llvm.umin", {a, one});
      return ir.intrinsic("llvm.smax", {ir.intrinsic("llvm.smin", {a, one}), ir.integer(type, -1)});
    }
    case Opcode::Not:
      return ir.bit_not(a);
    case Opcode::Add:
      return ir.add(a, b);
    case Opcode::Sub:
      return ir.sub(a, b);
    case Opcode::Mul:
      return ir.mul(a, b);
    case Opcode::Div:
    case Opcode::FloorDiv:
    case Opcode::Mod:
      return emit_integer_division(ir, instruction.opcode, dtype, a, b);
    case Opcode::Pow:
      return emit_integer_power(ir, dtype, a, b);
    case Opcode::Min:
    case Opcode::Max:
      return emit_integer_minimum(ir, instruction.opcode, dtype, a, b);
    case Opcode::And:
      return ir.bit_and(a, b);
    case Opcode::Or:
      return ir.bit_or(a, b);
    case Opcode::Xor:
      return ir.bit_xor(a, b);
    default:
      fail(ErrorKind::Internal, "[tile] {} does not compute on integers", name(instruction.opcode));
  }
}

}  // namespace

LLVMValueRef emit_comparison(Ir& ir, Opcode opcode, DType dtype, LLVMValueRef a, LLVMValueRef b) {
  const Predicates choice = predicates(opcode);
  if (is_float(dtype)) return ir.fcmp(choice.real, a, b);
  return ir.icmp(is_unsigned(dtype) ? choice.is_unsigned : choice.is_signed, a, b);
}

Value emit_instruction(Ir& ir, const Instruction& instruction, std::span<const Operand> operands) {
  const auto operand = [&](size_t i) {
    return i < operands.size() ? computed(ir, operands[i].dtype, *operands[i].value) : nullptr;
  };
  switch (info(instruction.opcode).form) {
    case OpcodeForm::Predicate: {
      if (operands.size() == 1) {
        return {.computed = emit_float_test(ir, instruction.opcode, operand(0))};
      }
      return {.computed = emit_comparison(ir, instruction.opcode, operands[0].dtype, operand(0),
                                          operand(1))};
    }
    case OpcodeForm::Select: {
      Value &a = *operands[1].value, &b = *operands[2].value;
      if (a.stored && b.stored) return {.stored = ir.select(operand(0), a.stored, b.stored)};
      return {.computed = ir.select(operand(0), operand(1), operand(2))};
    }
    case OpcodeForm::Conversion:
      if (instruction.opcode == Opcode::Cast) {
        return cast(ir, operands[0].dtype, instruction.dtype, *operands[0].value);
      }
      return bitcast(ir, operands[0].dtype, instruction.dtype, *operands[0].value);
    default:
      break;
  }
  if (is_float(instruction.dtype)) {
    const LLVMValueRef result = emit_float_function(ir, instruction.opcode, instruction.dtype,
                                                    operand(0), operand(1), operand(2));
    return rounded(ir, instruction.dtype, result);
  }
  return {.computed = emit_integer(ir, instruction, operand(0), operand(1))};
}

Value emit_constant(Ir& ir, const Instruction& instruction) {
  const LLVMTypeRef type = compute_type(ir, instruction.dtype);
  if (!is_float(instruction.dtype)) {
    const int64_t value = instruction.immediate_integer;
    return {.computed = ir.integer(type, instruction.dtype == DType::Bool ? value != 0 : value)};
  }
  if (!is_low_precision(instruction.dtype)) {
    return {.computed = ir.real(type, instruction.immediate)};
  }
  Value wide = {.computed = ir.real(ir.f64, instruction.immediate)};
  return cast(ir, DType::Float64, instruction.dtype, wide);
}

std::array<LLVMValueRef, 4> emit_philox(Ir& ir, LLVMValueRef seed, LLVMValueRef offset,
                                        LLVMValueRef element) {
  // Words are kept in 64-bit lanes, whose low halves multiply to full products.
  const LLVMTypeRef type = LLVMTypeOf(element);
  const auto constant = [&](int64_t k) { return ir.integer(type, k); };
  const auto low = [&](LLVMValueRef v) { return ir.bit_and(v, constant(0xFFFFFFFF)); };
  const auto high = [&](LLVMValueRef v) { return ir.lshr(v, 32); };
  std::array counter = {low(element), high(element), low(offset), high(offset)};
  LLVMValueRef key0 = low(seed), key1 = high(seed);
  for (int round = 0; round < 10; ++round) {
    const LLVMValueRef product0 = ir.mul(counter[0], constant(0xD2511F53));
    const LLVMValueRef product1 = ir.mul(counter[2], constant(0xCD9E8D57));
    counter = {ir.bit_xor(ir.bit_xor(high(product1), counter[1]), key0), low(product1),
               ir.bit_xor(ir.bit_xor(high(product0), counter[3]), key1), low(product0)};
    key0 = low(ir.add(key0, constant(0x9E3779B9)));
    key1 = low(ir.add(key1, constant(0xBB67AE85)));
  }
  for (LLVMValueRef& word : counter) word = ir.convert(LLVMTrunc, word, ir.i32);
  return counter;
}

LLVMValueRef reduction_identity(const Ir& ir, Opcode opcode, DType dtype, LLVMTypeRef type) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (is_float(dtype)) {
    switch (opcode) {
      case Opcode::ReduceSum:
        return ir.real(type, -0.0);
      case Opcode::ReduceProd:
        return ir.real(type, 1);
      case Opcode::ReduceMin:
        return ir.real(type, infinity);
      default:
        return ir.real(type, -infinity);
    }
  }
  if (opcode == Opcode::ReduceSum) return ir.integer(type, 0);
  if (opcode == Opcode::ReduceProd) return ir.integer(type, 1);
  const bool minimum = opcode == Opcode::ReduceMin;
  if (is_unsigned(dtype)) return ir.integer(type, minimum ? -1 : 0);
  const int64_t least = std::numeric_limits<int64_t>::min() >> (64 - size_of(dtype) * 8);
  return ir.integer(type, minimum ? ~least : least);
}

LLVMValueRef reduction_step(Ir& ir, Opcode opcode, DType dtype, LLVMValueRef a, LLVMValueRef b) {
  const bool floats = is_float(dtype);
  switch (opcode) {
    case Opcode::ReduceSum:
      return floats ? ir.fadd(a, b) : ir.add(a, b);
    case Opcode::ReduceProd:
      return floats ? ir.fmul(a, b) : ir.mul(a, b);
    case Opcode::ReduceMin:
      return floats ? emit_extremum(ir, Extremum::Minimum, dtype, a, b)
                    : emit_integer_minimum(ir, opcode, dtype, a, b);
    default:
      return floats ? emit_extremum(ir, Extremum::Maximum, dtype, a, b)
                    : emit_integer_minimum(ir, opcode, dtype, a, b);
  }
}

LLVMValueRef empty_reduction(const Ir& ir, Opcode opcode, DType dtype) {
  const LLVMTypeRef type = compute_type(ir, dtype);
  if (opcode == Opcode::ReduceSum && is_float(dtype)) return ir.real(type, 0);
  return reduction_identity(ir, opcode, dtype, type);
}

}  // namespace lamella::tile
