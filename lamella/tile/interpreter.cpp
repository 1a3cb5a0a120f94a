// The exact interpreter: plain scalar arithmetic in each instruction's dtype.
#include "lamella/tile/interpreter.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "lamella/base/error.h"
#include "lamella/base/philox.h"
#include "lamella/base/system/float_environment.h"
#include "lamella/tile/domain_walk.h"
#include "lamella/tile/math/division.h"
#include "lamella/tile/math/functions.h"
#include "lamella/tile/scalar_operations.h"
#include "lamella/types/half.h"

namespace lamella::tile {

namespace {

// The bits of a value as its dtype stores it, in the low bytes.
using Bits = uint64_t;

template <typename T>
T from_bits(Bits bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
template <typename T>
Bits to_bits(T value) {
  Bits bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

// Calls f with a zero of the dtype's C++ type; the 16-bit floats have none.
template <typename F>
auto with_type(DType dtype, F f) {
  switch (dtype) {
    case DType::Bool:
    case DType::UInt8:
      return f(uint8_t{});
    case DType::Int8:
      return f(int8_t{});
    case DType::Int16:
      return f(int16_t{});
    case DType::Int32:
      return f(int32_t{});
    case DType::Int64:
      return f(int64_t{});
    case DType::Float32:
      return f(float{});
    case DType::Float64:
      return f(double{});
    default:
      fail(ErrorKind::Internal, "[tile] {} has no type to interpret with", name(dtype));
  }
}

float float_of(DType dtype, Bits bits) {
  if (dtype == DType::BFloat16) return float_from_bfloat16_bits(static_cast<uint16_t>(bits));
  if (dtype == DType::Float16) return float_from_float16_bits(static_cast<uint16_t>(bits));
  return from_bits<float>(bits);
}
Bits bits_of(DType dtype, float value) {
  if (dtype == DType::BFloat16) return bfloat16_bits_from_float(value);
  if (dtype == DType::Float16) return float16_bits_from_float(value);
  return to_bits(value);
}

// IEEE 754-2019 minimum and maximum: NaN if either is, and -0 below +0.
template <typename T>
T minimum(T a, T b) {
  if (a != a || b != b) return a + b;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
template <typename T>
T maximum(T a, T b) {
  return -minimum(-a, -b);
}

template <typename T>
T float_operation(Opcode opcode, T a, T b, T c) {
  switch (opcode) {
    case Opcode::Neg:
      return -a;
    case Opcode::Abs:
      return std::fabs(a);
    case Opcode::Sign:
      return a > 0 ? T(1) : a < 0 ? T(-1) : a != a ? a : T(0);
    case Opcode::Floor:
      return std::floor(a);
    case Opcode::Ceil:
      return std::ceil(a);
    case Opcode::Round:
      return std::nearbyint(a);
    case Opcode::Trunc:
      return std::trunc(a);
    case Opcode::Sqrt:
      return std::sqrt(a);
    case Opcode::Rsqrt:
      return 1 / std::sqrt(a);
    case Opcode::Reciprocal:
      return 1 / a;
    case Opcode::Add:
      return a + b;
    case Opcode::Sub:
      return a - b;
    case Opcode::Mul:
      return a * b;
    case Opcode::Div:
      return a / b;
    case Opcode::Min:
      return minimum(a, b);
    case Opcode::Max:
      return maximum(a, b);
    case Opcode::Fma:
      return std::fma(a, b, c);
    default:
      break;
  }
  const math::Plain<T> left = {a}, right = {b};
  if (opcode == Opcode::Mod || opcode == Opcode::FloorDiv) {
    const math::Plain<T> rest = [&] {
      if constexpr (sizeof(T) == 4) {
        return math::remainder_float32(left, right);
      } else {
        return math::remainder_float64(left, right);
      }
    }();
    return opcode == Opcode::Mod ? math::python_remainder(rest, right).v
                                 : math::python_quotient(rest, left, right).v;
  }
  if constexpr (sizeof(T) == 4) {
    return math::function_float32(opcode, left, right).v;
  } else {
    return math::function_float64(opcode, left, right).v;
  }
}

// The float nearest to an integer, or, where it is inexact, its neighbour with an odd last bit.
float odd_float_from_integer(int64_t value) {
  const auto nearest = static_cast<float>(value);
  const auto exact = static_cast<long double>(value);
  if (static_cast<long double>(nearest) == exact) return nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (std::fabs(static_cast<long double>(nearest)) > std::fabs(exact)) --bits;
  return std::bit_cast<float>(bits | 1u);
}

template <typename I, typename T>
I saturate(T value) {
  if (value != value) return 0;
  if (value <= static_cast<T>(std::numeric_limits<I>::min())) return std::numeric_limits<I>::min();
  if (value >= static_cast<T>(std::numeric_limits<I>::max())) return std::numeric_limits<I>::max();
  return static_cast<I>(value);
}

Bits cast(DType from, DType to, Bits bits) {
  if (from == to) return bits;
  if (is_low_precision(from)) {
    if (to == DType::Float32) return to_bits(float_of(from, bits));
    return cast(DType::Float32, to, to_bits(float_of(from, bits)));
  }
  return with_type(from, [&]<typename From>(From) -> Bits {
    const From value = from_bits<From>(bits);
    if (to == DType::Bool) return value != 0 ? 1 : 0;
    if (is_low_precision(to)) {
      if constexpr (std::is_same_v<From, float>) return bits_of(to, value);
      if constexpr (std::is_same_v<From, double>) return bits_of(to, float_round_to_odd(value));
      if constexpr (std::is_integral_v<From>) return bits_of(to, odd_float_from_integer(value));
    }
    return with_type(to, [&]<typename To>(To) -> Bits {
      if constexpr (std::is_integral_v<To> && !std::is_integral_v<From>) {
        return to_bits(saturate<To>(value));
      } else {
        return to_bits(static_cast<To>(value));
      }
    });
  });
}

struct ExactMachine {
  using Value = Bits;

  static Value load(DType dtype, const char* address) {
    Bits bits = 0;
    std::memcpy(&bits, address, static_cast<size_t>(size_of(dtype)));
    return dtype == DType::Bool ? bits != 0 : bits;
  }
  static void store(DType dtype, Value value, char* address) {
    std::memcpy(address, &value, static_cast<size_t>(size_of(dtype)));
  }
  static Value scalar(DType dtype, uint64_t word) {
    return load(dtype, reinterpret_cast<const char*>(&word));
  }
  static Value constant(const Instruction& instruction) {
    if (is_float(instruction.dtype)) {
      return cast(DType::Float64, instruction.dtype, to_bits(instruction.immediate));
    }
    if (instruction.dtype == DType::Bool) return instruction.immediate_integer != 0;
    return with_type(instruction.dtype, [&]<typename T>(T) {
      return to_bits(static_cast<T>(instruction.immediate_integer));
    });
  }
  static Value position(int64_t index) { return to_bits(index); }

  static Value apply(const Instruction& instruction, std::span<const Value> operands,
                     std::span<const DType> dtypes) {
    const auto operand = [&](size_t i) { return i < operands.size() ? operands[i] : 0; };
    switch (info(instruction.opcode).form) {
      case OpcodeForm::Random: {
        const PhiloxCounter words = philox_at(operand(0), operand(1), operand(2));
        return words[static_cast<size_t>(instruction.index)];
      }
      case OpcodeForm::Predicate:
        if (is_low_precision(dtypes[0])) {
          return predicate(instruction.opcode, float_of(dtypes[0], operand(0)),
                           float_of(dtypes[0], operand(1)));
        }
        return with_type(dtypes[0], [&]<typename T>(T) -> Bits {
          return predicate(instruction.opcode, from_bits<T>(operand(0)), from_bits<T>(operand(1)));
        });
      case OpcodeForm::Select:
        return operand(0) ? operand(1) : operand(2);
      case OpcodeForm::Conversion:
        return instruction.opcode == Opcode::Bitcast
                   ? operand(0)
                   : cast(dtypes[0], instruction.dtype, operand(0));
      default:
        return arithmetic(instruction.opcode, instruction.dtype, operand(0), operand(1),
                          operand(2));
    }
  }

  static Value arithmetic(Opcode opcode, DType dtype, Value a, Value b, Value c) {
    if (is_low_precision(dtype)) {
      return bits_of(dtype, float_operation(opcode, float_of(dtype, a), float_of(dtype, b),
                                            float_of(dtype, c)));
    }
    return with_type(dtype, [&]<typename T>(T) -> Bits {
      if constexpr (std::is_integral_v<T>) {
        const T result = integer_operation(opcode, from_bits<T>(a), from_bits<T>(b));
        return to_bits(dtype == DType::Bool ? static_cast<T>(result & 1) : result);
      } else {
        return to_bits(float_operation(opcode, from_bits<T>(a), from_bits<T>(b), from_bits<T>(c)));
      }
    });
  }

  static Value widen(DType dtype, Value value) {
    return is_low_precision(dtype) ? to_bits(float_of(dtype, value)) : value;
  }
  static Value step(const Instruction& reduction, Value a, Value b) {
    static constexpr std::array kOpcodes = {Opcode::Add, Opcode::Mul, Opcode::Min, Opcode::Max};
    const auto which =
        static_cast<size_t>(reduction.opcode) - static_cast<size_t>(Opcode::ReduceSum);
    return arithmetic(kOpcodes[which], compute_dtype(reduction.dtype), a, b, 0);
  }
  static Value round(const Instruction& reduction, Value value) {
    return is_low_precision(reduction.dtype) ? bits_of(reduction.dtype, from_bits<float>(value))
                                             : value;
  }
  // The graph layer refuses minima and maxima of nothing; here they give the largest and the least
  // value, as in compiled code.
  static Value empty(const Instruction& reduction) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    Instruction constant = {.opcode = Opcode::Constant, .dtype = reduction.dtype};
    const bool least = reduction.opcode == Opcode::ReduceMax;
    if (reduction.opcode == Opcode::ReduceProd) {
      constant.immediate = 1;
      constant.immediate_integer = 1;
    } else if (reduction.opcode != Opcode::ReduceSum) {
      constant.immediate = least ? -infinity : infinity;
      if (!is_float(reduction.dtype)) {
        constant.immediate_integer = with_type(reduction.dtype, [&]<typename T>(T) {
          return static_cast<int64_t>(least ? std::numeric_limits<T>::lowest()
                                            : std::numeric_limits<T>::max());
        });
      }
    }
    return ExactMachine::constant(constant);
  }
};

}  // namespace

void interpret(const Program& program, const Launch& launch) {
  verify(program);
  const DefaultFloatEnvironment environment;
  DomainWalk<ExactMachine>(program, launch).run();
}

}  // namespace lamella::tile
