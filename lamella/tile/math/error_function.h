// erf, erfc and what both have as derivative but for a factor, exp(-x^2).
#pragma once

#include "lamella/tile/math/exponential.h"

namespace lamella::tile::math {

// erf within [-0.92, 0.92]; 2^-26 relative.
template <typename F>
F erf_near_zero(F x) {
  const F s = x * x;
  const F p = polynomial(s, 0x1.06eba6p-3, -0x1.8126e2p-2, 0x1.ce1986p-4, -0x1.b67c04p-6,
                         0x1.46d9e2p-8, -0x1.38741cp-11);
  return fma(p, x, x);
}

// Above 0.92 it is 1 - exp(-a (1 + q(a))), where a (1 + q(a)) is -log(erfc(a)).
template <typename F>
F erf_float32(F x) {
  F a = abs(x);
  const auto is_large = a > 0.92;
  a = select(a > 3.95, x.constant(3.95), a);  // beyond: 1
  const F q = polynomial(a, 0x1.0778dcp-3, 0x1.45328ep-1, 0x1.b32568p-4, -0x1.855122p-6,
                         0x1.dd6ba8p-9, -0x1.52795ep-12, 0x1.78d142p-17);  // 2^-30 of erf
  const F large = 1.0 - exp_float32_normal(-fma(q, a, a));
  return select(is_large, copysign(large, x), erf_near_zero(x));
}

// exp(-a^2) as 2^n (1 + e); the square's rounding error is taken into the exponential.
template <typename F>
struct GaussianSplit {
  F n;
  F e;
};

template <typename F>
GaussianSplit<F> split_gaussian(F a) {
  const F square = a * a;
  const auto [n, rest] = split_exponent(-square, -fma(a, a, -square));
  return {n, fma(exp_remainder(rest), rest * rest, rest)};
}

// Where exp(-x^2) and erfc(|x|) have become 0: there they are not computed, like exp_float32's 0.
template <typename F>
auto tail_vanishes(F magnitude) {
  return magnitude > 10.5;
}
// The magnitude, or where the tail vanishes one of an ordinary tail.
template <typename F>
F ordinary_magnitude(F magnitude) {
  return select(tail_vanishes(magnitude), magnitude.constant(5.0), magnitude);
}

template <typename F>
F gaussian_float32(F x) {
  const F a = abs(x);
  const auto [n, e] = split_gaussian(ordinary_magnitude(a));
  return select(tail_vanishes(a), x.constant(0.0), scale_float32(e + 1.0, n));
}

template <typename D, typename Exp>
D gaussian_float64(D x, Exp exp) {
  D a = abs(x);
  a = select(a > 28.0, a.constant(28.0), a);  // beyond: 0
  const D square = a * a;
  const D e = exp(-square);
  return fma(-e, fma(a, a, -square), e);
}

// Above 0.8 it is exp(-a^2) P(t) / (a + 3), where P is fitted in t = (a - 3) / (a + 3) to 2^-29.
// The rounding errors of the quotients and of P's first term are carried along: 1.9 ulp at most.
template <typename F>
F erfc_float32(F x) {
  const F a = ordinary_magnitude(abs(x));
  const auto [n, e] = split_gaussian(a);
  const F sum = a + 3.0;
  const F inverse = 1.0 / sum;
  const F excess = (sum - 3.0) - a;
  const F difference = a - 3.0;
  F t = difference * inverse;
  t = fma(fma(excess, t, fma(-t, sum, difference)), inverse, t);
  const F slope =
      polynomial(t, -0x1.c44c48p-1, 0x1.2e3268p-1, -0x1.3deae0p-2, 0x1.e996fcp-4, -0x1.b7b16ap-6,
                 -0x1.412158p-10, 0x1.9220cap-9, -0x1.fcd364p-12, -0x1.440550p-12);
  const F p = fma(slope, t, t.constant(0x1.12f21ep+0));
  const F p_rest = fma(slope, t, 0x1.12f21ep+0 - p) - 0x1.fd6d34p-28;
  const F q = p * inverse;
  const F q_rest = (fma(-q, sum, p) + fma(excess, q, p_rest)) * inverse;
  const F ordinary = scale_float32(q + fma(e, q, fma(e, q_rest, q_rest)), n);
  const F tail = select(tail_vanishes(abs(x)), x.constant(0.0), ordinary);
  return select(a < 0.8, 1.0 - erf_near_zero(x), select(x < 0.0, 2.0 - tail, tail));
}

}  // namespace lamella::tile::math
