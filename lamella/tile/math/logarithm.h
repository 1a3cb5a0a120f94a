// log, log1p and log2.
#pragma once

#include <limits>

#include "lamella/tile/math/exponential.h"

namespace lamella::tile::math {

// x = 2^k (1 + f) with 1 + f within [sqrt(1/2), sqrt(2)).
template <typename F>
struct MantissaSplit {
  F k;
  F f;
};

template <typename F>
MantissaSplit<F> split_mantissa(F x) {
  const auto subnormal = x < 0x1p-126;
  const auto pattern = bits(select(subnormal, x * 0x1p23, x));
  const auto k = (pattern - 0x3F3504F3).ashr(23);
  const F exponent = to_real(k);
  return {select(subnormal, exponent - 23.0, exponent), real(pattern - k.shl(23)) - 1.0};
}

// k ln(2) + log(1 + f); 2^-30 relative before rounding.
template <typename F>
F log_from_split(F k, F f) {
  const F square = f * f;
  const F p =
      polynomial(f, 0x1.555548p-2, -0x1.000006p-2, 0x1.99a476p-3, -0x1.555c44p-3, 0x1.233ba2p-3,
                 -0x1.fc28cap-4, 0x1.e6c00ap-4, -0x1.de01d8p-4, 0x1.147334p-4);
  F tail = fma(square * f, p, k * 0x1.7f7d1cp-20);
  tail = fma(square, f.constant(-0.5), tail);
  return fma(k, f.constant(0x1.62e400p-1), f + tail);
}

// What log gives at 0, below 0, at infinity and NaN.
template <typename F>
F log_special(F x) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  return select(x == 0.0, x.constant(-infinity), select(x < 0.0, x.constant(nan), x));
}
template <typename F>
typename F::Mask is_positive_finite(F x) {
  return (x > 0.0) & (x < std::numeric_limits<double>::infinity());
}

template <typename F>
F log_float32(F x) {
  const auto [k, f] = split_mantissa(x);
  return select(is_positive_finite(x), log_from_split(k, f), log_special(x));
}

template <typename F>
F log1p_float32(F x) {
  const F u = x + 1.0;
  const auto k = (bits(u) - 0x3F3504F3).ashr(23);
  // What rounding 1 + x lost joins the fraction.
  const F lost = x - (u - 1.0);
  const auto scale = real((k.constant(127) - select(k < 64, k, k.constant(64))).shl(23));
  const F f = fma(lost, scale, real(bits(u) - k.shl(23)) - 1.0);
  const F result = log_from_split(to_real(k), f);
  const auto usual = is_positive_finite(u) & (x != 0.0);
  return select(usual, result, select(x == 0.0, x, log_special(u)));
}

template <typename F>
F log2_float32(F x) {
  const auto [k, f] = split_mantissa(x);
  // log2(1 + f) = f / ln(2) + f^2 q(f); 2^-30 relative.
  const F q =
      polynomial(f, -0x1.715476p-1, 0x1.ec708cp-2, -0x1.7154acp-2, 0x1.277e64p-2, -0x1.ec71c4p-3,
                 0x1.a42b00p-3, -0x1.6ef0b6p-3, 0x1.5f5a44p-3, -0x1.574132p-3, 0x1.8adb04p-4);
  const F tail = fma(f, f.constant(0x1.4ae0c0p-26), f * f * q);
  const F result = k + fma(f, f.constant(0x1.715476p0), tail);
  return select(is_positive_finite(x), result, log_special(x));
}

// log2(x) in float64 to about 2^-50, for positive normal x.
template <typename D>
D log2_float64(D x) {
  const auto k = (bits(x) - 0x3FE6A09E667F3BCD).ashr(52);
  const D m = real(bits(x) - k.shl(52));
  const D v = (m - 1.0) / (m + 1.0);
  const D s = v * v;
  const D p = polynomial(s, 0x1.555555555395bp-2, 0x1.999999a295d98p-3, 0x1.249241762679fp-3,
                         0x1.c72278f94ac91p-4, 0x1.732c084d4d472p-4, 0x1.5878e3258d46cp-4);
  const D exponent = real(k + 0x4338000000000000) - 0x1.8p52;
  const D w = v * 0x1.71547652b82fep1;  // 2 / ln(2)
  return exponent + fma(w * s, p, w);
}

}  // namespace lamella::tile::math
