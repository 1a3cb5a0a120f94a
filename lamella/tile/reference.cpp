// The independent interpreter: long double and the C library, no tile/math, no rounding in between.
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include "lamella/base/error.h"
#include "lamella/base/philox.h"
#include "lamella/tile/domain_walk.h"
#include "lamella/tile/interpreter.h"
#include "lamella/tile/scalar_operations.h"
#include "lamella/types/half.h"

namespace lamella::tile {

namespace {

using Real = long double;

// A float in `real`, or bool and integers in `integer`.
struct Number {
  Real real = 0;
  int64_t integer = 0;
};

// Calls f with a zero of the integer dtype's type.
template <typename F>
auto with_integer(DType dtype, F f) {
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
    default:
      return f(int64_t{});
  }
}

Real remainder(Real a, Real b) {
  const Real rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Real sigmoid(Real x) {
  return 1 / (1 + std::exp(-x));
}

Real minimum(Real a, Real b) {
  if (std::isnan(a) || std::isnan(b)) return a + b;
  return std::min(a, b);
}
Real maximum(Real a, Real b) {
  return -minimum(-a, -b);
}

Real real_operation(Opcode opcode, Real a, Real b, Real c) {
  switch (opcode) {
    case Opcode::Neg:
      return -a;
    case Opcode::Abs:
      return std::fabs(a);
    case Opcode::Sign:
      return std::isnan(a) ? a : static_cast<Real>((a > 0) - (a < 0));
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
    case Opcode::Exp:
      return std::exp(a);
    case Opcode::Expm1:
      return std::expm1(a);
    case Opcode::Log:
      return std::log(a);
    case Opcode::Log1p:
      return std::log1p(a);
    case Opcode::Log2:
      return std::log2(a);
    case Opcode::Sin:
      return std::sin(a);
    case Opcode::Cos:
      return std::cos(a);
    case Opcode::Tan:
      return std::tan(a);
    case Opcode::Asin:
      return std::asin(a);
    case Opcode::Acos:
      return std::acos(a);
    case Opcode::Atan:
      return std::atan(a);
    case Opcode::Sinh:
      return std::sinh(a);
    case Opcode::Cosh:
      return std::cosh(a);
    case Opcode::Tanh:
      return std::tanh(a);
    case Opcode::Erf:
      return std::erf(a);
    case Opcode::Erfc:
      return std::erfc(a);
    case Opcode::Gaussian:
      return std::exp(-a * a);
    case Opcode::Sigmoid:
      return sigmoid(a);
    case Opcode::Softplus:
      return maximum(a, 0) + std::log1p(std::exp(-std::fabs(a)));
    case Opcode::Add:
      return a + b;
    case Opcode::Sub:
      return a - b;
    case Opcode::Mul:
      return a * b;
    case Opcode::Div:
      return a / b;
    case Opcode::FloorDiv:
      return b == 0 ? a / b : std::nearbyint((a - remainder(a, b)) / b);
    case Opcode::Mod:
      return remainder(a, b);
    case Opcode::Pow:
      return std::pow(a, b);
    case Opcode::Atan2:
      return std::atan2(a, b);
    case Opcode::Min:
      return minimum(a, b);
    case Opcode::Max:
      return maximum(a, b);
    default:
      return a * b + c;
  }
}

struct ReferenceMachine {
  using Value = Number;

  static Value load(DType dtype, const char* address) {
    const auto read = [&]<typename T>(T value) {
      std::memcpy(&value, address, sizeof value);
      return value;
    };
    switch (dtype) {
      case DType::Float64:
        return {.real = read(double{})};
      case DType::Float32:
        return {.real = read(float{})};
      case DType::Float16:
        return {.real = float_from_float16_bits(read(uint16_t{}))};
      case DType::BFloat16:
        return {.real = float_from_bfloat16_bits(read(uint16_t{}))};
      default:
        return {.integer = with_integer(dtype, [&]<typename I>(I zero) -> int64_t {
                  return dtype == DType::Bool ? read(zero) != 0 : read(zero);
                })};
    }
  }
  static void store(DType dtype, Value value, char* address) {
    const auto write = [&](auto stored) { std::memcpy(address, &stored, sizeof stored); };
    const auto nearest = static_cast<double>(value.real);
    switch (dtype) {
      case DType::Float64:
        return write(nearest);
      case DType::Float32:
        return write(static_cast<float>(value.real));
      case DType::Float16:
        return write(float16_bits_from_float(float_round_to_odd(nearest)));
      case DType::BFloat16:
        return write(bfloat16_bits_from_float(float_round_to_odd(nearest)));
      default:
        return with_integer(dtype, [&]<typename I>(I) { write(static_cast<I>(value.integer)); });
    }
  }
  static Value scalar(DType dtype, uint64_t word) {
    return load(dtype, reinterpret_cast<const char*>(&word));
  }
  static Value constant(const Instruction& instruction) {
    return {.real = instruction.immediate, .integer = instruction.immediate_integer};
  }
  static Value position(int64_t index) { return {.integer = index}; }

  // The value as it stands after a store and a load: what a cast to a float dtype leaves.
  static Value rounded(DType dtype, Value value) {
    std::array<char, 8> memory{};
    store(dtype, value, memory.data());
    return load(dtype, memory.data());
  }

  static Value cast(DType from, DType to, Value value) {
    if (is_float(from) && is_float(to)) return rounded(to, value);
    if (is_float(to)) return rounded(to, {.real = static_cast<Real>(value.integer)});
    if (!is_float(from)) {
      if (to == DType::Bool) return {.integer = value.integer != 0};
      return rounded(to, value);
    }
    if (to == DType::Bool) return {.integer = value.real != 0};
    if (std::isnan(value.real)) return {};
    return {.integer = with_integer(to, [&]<typename I>(I) -> int64_t {
              const Real low = std::numeric_limits<I>::min(), high = std::numeric_limits<I>::max();
              return static_cast<int64_t>(std::clamp(value.real, low, high));
            })};
  }

  static Value apply(const Instruction& instruction, std::span<const Value> operands,
                     std::span<const DType> dtypes) {
    const auto operand = [&](size_t i) { return i < operands.size() ? operands[i] : Value{}; };
    const Value a = operand(0), b = operand(1), c = operand(2);
    switch (info(instruction.opcode).form) {
      case OpcodeForm::Random: {
        const auto word = [](Value v) { return static_cast<uint64_t>(v.integer); };
        const PhiloxCounter words = philox_at(word(a), word(b), word(c));
        return {.integer = static_cast<int32_t>(words[static_cast<size_t>(instruction.index)])};
      }
      case OpcodeForm::Predicate:
        if (is_float(dtypes[0])) return {.integer = predicate(instruction.opcode, a.real, b.real)};
        return {.integer = predicate(instruction.opcode, a.integer, b.integer)};
      case OpcodeForm::Select:
        return a.integer ? b : c;
      case OpcodeForm::Conversion: {
        if (instruction.opcode == Opcode::Cast) return cast(dtypes[0], instruction.dtype, a);
        std::array<char, 8> memory{};
        store(dtypes[0], a, memory.data());
        return load(instruction.dtype, memory.data());
      }
      default:
        return arithmetic(instruction.opcode, instruction.dtype, a, b, c);
    }
  }
  static Value arithmetic(Opcode opcode, DType dtype, Value a, Value b, Value c) {
    if (is_float(dtype)) return {.real = real_operation(opcode, a.real, b.real, c.real)};
    return {.integer = with_integer(dtype, [&]<typename I>(I) -> int64_t {
              const I result =
                  integer_operation(opcode, static_cast<I>(a.integer), static_cast<I>(b.integer));
              return dtype == DType::Bool ? result & 1 : result;
            })};
  }

  static Value widen(DType, Value value) { return value; }
  static Value step(const Instruction& reduction, Value a, Value b) {
    static constexpr std::array kOpcodes = {Opcode::Add, Opcode::Mul, Opcode::Min, Opcode::Max};
    const auto which =
        static_cast<size_t>(reduction.opcode) - static_cast<size_t>(Opcode::ReduceSum);
    return arithmetic(kOpcodes[which], reduction.dtype, a, b, {});
  }
  static Value round(const Instruction&, Value value) { return value; }
  static Value empty(const Instruction& reduction) {
    const int one = reduction.opcode == Opcode::ReduceProd ? 1 : 0;
    return {.real = static_cast<Real>(one), .integer = one};
  }
};

}  // namespace

void interpret_in_long_double(const Program& program, const Launch& launch) {
  verify(program);
  DomainWalk<ReferenceMachine>(program, launch).run();
}

}  // namespace lamella::tile
