// pow.
#pragma once

#include "lamella/tile/math/logarithm.h"

namespace lamella::tile::math {

// 2^(y log2|x|) in float64, then the sign and the C library's values at zeros, infinities and NaN.
template <typename F>
F pow_float32(F x, F y) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const F ax = abs(x), ay = abs(y);
  const auto wide = widen(ax);
  auto logarithm = log2_float64(wide);
  logarithm = select(wide == 0.0, wide.constant(-infinity), logarithm);
  logarithm = select(wide < infinity, logarithm, wide);  // infinity and NaN stay
  const F magnitude = narrow(exp2_float64(widen(y) * logarithm));

  // From 2^24 on all floats are even integers.
  const F bounded = select(ay < 0x1p24, ay, y.constant(0.0));
  const auto truncated = to_integer(bounded);
  const auto odd = (truncated & 1) != 0;
  const auto fractional = to_real(truncated) != bounded;
  const auto negative = bits(x) < 0;
  F result = select(negative & odd & !fractional, -magnitude, magnitude);
  result = select((x < 0.0) & (ax < infinity) & fractional, x.constant(nan), result);
  const auto is_one = (y == 0.0) | (x == 1.0) | ((ax == 1.0) & (ay == infinity));
  return select(is_one, x.constant(1.0), result);
}

}  // namespace lamella::tile::math
