// tanh, sinh, cosh, and the logistic functions.
#pragma once

#include "lamella/tile/math/logarithm.h"

namespace lamella::tile::math {

// Up to 0.55 a polynomial; above it 1 - 2 / (exp(2|x|) + 1).
template <typename F>
F tanh_float32(F x) {
  const F s = x * x;
  const F p = polynomial(s, -0x1.555548p-2, 0x1.110c5ep-3, -0x1.b905c4p-5, 0x1.5811f6p-6,
                         -0x1.9454f2p-8);  // 2^-29 relative
  const F small = fma(x * s, p, x);
  F a = abs(x);
  const auto is_large = a > 0.55;
  a = select(a > 9.25, x.constant(9.25), a);  // beyond: 1
  const F large = 1.0 - 2.0 / (exp_float32_normal(a + a) + 1.0);
  return select(is_large, copysign(large, x), select(x == 0.0, x, small));
}

// With z = exp(-|x|): 1 / (1 + z), or z / (1 + z) below 0. The quotient is corrected by what the
// rounding of 1 + z lost.
template <typename F>
F sigmoid_float32(F x) {
  const F z = exp_float32(-abs(x));
  const F numerator = select(x < 0.0, z, x.constant(1.0));
  const F sum = z + 1.0;
  const F lost = z - (sum - 1.0);
  const F inverse = 1.0 / sum;
  const F quotient = numerator * inverse;
  const F rest = fma(-quotient, lost, fma(-quotient, sum, numerator));
  return fma(rest, inverse, quotient);
}

// log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|)).
template <typename F>
F softplus_float32(F x) {
  const F rest = log1p_float32(exp_float32(-abs(x)));
  return select(x > 0.0, x, x.constant(0.0)) + rest;
}

template <typename F>
F sinh_float32(F x) {
  const auto a = widen(abs(x));
  const auto e = exp_float64(a);
  const auto large = (e - 1.0 / e) * 0.5;
  const auto small = fma(a * a * a, a.constant(1.0 / 6), a);
  return copysign(narrow(select(a < 0x1p-10, small, large)), x);
}

template <typename F>
F cosh_float32(F x) {
  const auto e = exp_float64(widen(abs(x)));
  return narrow((e + 1.0 / e) * 0.5);
}

}  // namespace lamella::tile::math
