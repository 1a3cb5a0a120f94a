// Python's floor division and remainder of floats.
#pragma once

#include "lamella/tile/math/value.h"

namespace lamella::tile::math {

inline const LibraryFunction kLibraryFmod = {.name = "fmod", .two = std::fmod};

// The remainder of truncating division, exact as the C library's fmod.
template <typename D>
D remainder_float64(D a, D b) {
  return call_each(kLibraryFmod, a, b);
}

// For float32 the quotient in float64 truncates exactly, and so does the product with it, unless
// the quotient is very large (or b is 0).
template <typename F>
F remainder_float32(F a, F b) {
  const auto wide_a = widen(a), wide_b = widen(b);
  const auto quotient = trunc(wide_a / wide_b);
  const auto rest = copysign(fma(-quotient, wide_b, wide_a), wide_a);
  const auto usual = (abs(quotient) < 0x1p28) & (abs(wide_b) < 0x1p200);
  return narrow(replace_rare(!usual, rest, [&] { return remainder_float64(wide_a, wide_b); }));
}

// Python's remainder from the truncating one: it has the divisor's sign.
template <typename F>
F python_remainder(F rest, F b) {
  const auto differs = (rest != 0.0) & ((rest < 0.0) ^ (b < 0.0));
  const F adjusted = select(differs, rest + b, rest);
  return select(rest == 0.0, copysign(rest, b), adjusted);
}

// Python's quotient: the nearest integer to (a - remainder) / b, which is exact but for rounding.
template <typename F>
F python_quotient(F rest, F a, F b) {
  const auto differs = (rest != 0.0) & ((rest < 0.0) ^ (b < 0.0));
  F quotient = (a - rest) / b;
  quotient = select(differs, quotient - 1.0, quotient);
  const F lower = floor(quotient);
  const F nearest = select(quotient - lower > 0.5, lower + 1.0, lower);
  const F result = select(quotient == 0.0, copysign(quotient, a / b), nearest);
  return select(b == 0.0, a / b, result);
}

}  // namespace lamella::tile::math
