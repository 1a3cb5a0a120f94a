// Integer arithmetic and comparisons of single values, as the interpreters compute them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "lamella/tile/program.h"

namespace lamella::tile {

// Wrapping; a negative power is 0 unless the base is 1 or -1.
template <typename I>
I integer_power(I base, I exponent) {
  using U = uint64_t;
  if (exponent < 0) {
    if (base == 1) return 1;
    if (base == static_cast<I>(-1)) return exponent % 2 == 0 ? I(1) : I(-1);
    return 0;
  }
  U result = 1, factor = static_cast<U>(base);
  for (U rest = static_cast<U>(exponent); rest != 0; rest >>= 1) {
    if (rest & 1) result *= factor;
    factor *= factor;
  }
  return static_cast<I>(result);
}

// All integer arithmetic wraps; dividing by 0 gives 0.
template <typename I>
I integer_operation(Opcode opcode, I a, I b) {
  const auto wide_a = static_cast<uint64_t>(a), wide_b = static_cast<uint64_t>(b);
  const bool overflows =
      b == static_cast<I>(-1) && std::is_signed_v<I> && a == std::numeric_limits<I>::min();
  switch (opcode) {
    case Opcode::Neg:
      return static_cast<I>(0 - wide_a);
    case Opcode::Abs:
      return static_cast<I>(a < 0 ? 0 - wide_a : wide_a);
    case Opcode::Sign:
      return static_cast<I>((a > 0) - (a < 0));
    case Opcode::Not:
      return static_cast<I>(~wide_a);
    case Opcode::Add:
      return static_cast<I>(wide_a + wide_b);
    case Opcode::Sub:
      return static_cast<I>(wide_a - wide_b);
    case Opcode::Mul:
      return static_cast<I>(wide_a * wide_b);
    case Opcode::Div:
      if (b == 0) return 0;
      return overflows ? a : static_cast<I>(a / b);
    case Opcode::FloorDiv:
      if (b == 0) return 0;
      if (overflows) return a;
      return static_cast<I>(a / b - ((a % b != 0 && (a % b < 0) != (b < 0)) ? 1 : 0));
    case Opcode::Mod:
      if (b == 0 || overflows) return 0;
      return static_cast<I>(a % b + ((a % b != 0 && (a % b < 0) != (b < 0)) ? b : 0));
    case Opcode::Pow:
      return integer_power(a, b);
    case Opcode::Min:
      return std::min(a, b);
    case Opcode::Max:
      return std::max(a, b);
    case Opcode::And:
      return static_cast<I>(wide_a & wide_b);
    case Opcode::Or:
      return static_cast<I>(wide_a | wide_b);
    default:
      return static_cast<I>(wide_a ^ wide_b);
  }
}

template <typename T>
bool predicate(Opcode opcode, T a, T b) {
  switch (opcode) {
    case Opcode::IsNan:
      return a != a;
    case Opcode::IsInf:
      return std::isinf(static_cast<double>(a));
    case Opcode::IsFinite:
      return std::isfinite(static_cast<double>(a));
    case Opcode::Equal:
      return a == b;
    case Opcode::NotEqual:
      return a != b;
    case Opcode::Less:
      return a < b;
    case Opcode::LessEqual:
      return a <= b;
    case Opcode::Greater:
      return a > b;
    default:
      return a >= b;
  }
}

}  // namespace lamella::tile
