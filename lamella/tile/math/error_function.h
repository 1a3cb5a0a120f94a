// erf and erfc.
#pragma once

#include "lamella/tile/math/exponential.h"

namespace lamella::tile::math {

// Up to 0.92 a polynomial; above it 1 - exp(-a (1 + q(a))), where a (1 + q(a)) is -log(erfc(a)).
template <typename F>
F erf_float32(F x) {
  const F s = x * x;
  const F p = polynomial(s, 0x1.06eba6p-3, -0x1.8126e2p-2, 0x1.ce1986p-4, -0x1.b67c04p-6,
                         0x1.46d9e2p-8, -0x1.38741cp-11);  // 2^-26 relative
  const F small = fma(p, x, x);
  F a = abs(x);
  const auto is_large = a > 0.92;
  a = select(a > 3.95, x.constant(3.95), a);  // beyond: 1
  const F q = polynomial(a, 0x1.0778dcp-3, 0x1.45328ep-1, 0x1.b32568p-4, -0x1.855122p-6,
                         0x1.dd6ba8p-9, -0x1.52795ep-12, 0x1.78d142p-17);  // 2^-30 of erf
  const F large = 1.0 - exp_float32_normal(-fma(q, a, a));
  return select(is_large, copysign(large, x), small);
}

// In float64: exp(-a^2) E(a) / (1 + 2a), with E fitted in (a - 3) / (a + 3); 2^-34 relative.
template <typename F>
F erfc_float32(F x) {
  auto a = widen(abs(x));
  a = select(a > 10.5, a.constant(10.5), a);  // beyond: 0
  const auto t = (a - 3.0) / (a + 3.0);
  const auto p = polynomial(t, 0x1.40c522d7dfd09p+0, -0x1.15c084d51c3e0p-3, -0x1.85a15c02cc538p-5,
                            0x1.09836c268d719p-3, -0x1.e88b7ee08253cp-4, 0x1.17c97b336cd63p-4,
                            -0x1.8576c90013fb9p-6, 0x1.4c126578642dfp-9, 0x1.f0822f9e081e9p-10,
                            -0x1.9e40710d7cc0fp-11, -0x1.0911463838b7fp-13, 0x1.0a9bbf57c1b66p-13,
                            0x1.16dc2fbee63b3p-15);
  const auto y = exp_float64(-(a * a)) * p / fma(a, a.constant(2.0), a.constant(1.0));
  return narrow(select(widen(x) < 0.0, 2.0 - y, y));
}

}  // namespace lamella::tile::math
