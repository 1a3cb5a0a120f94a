// exp, expm1, exp2 and what is built from them, as templates over a value type (see math/value.h).
#pragma once

namespace lamella::tile::math {

// n + fraction split of x * log2(e): `n` as a float and as an integer.
template <typename F>
struct PowerOfTwo {
  F n;
  typename F::Int integer;
};

// Rounds x to an integer by adding 1.5 * 2^23, whose last place is 1; |x| must be below 2^22.
template <typename F>
PowerOfTwo<F> round_small(F x) {
  const F shifted = x + 0x1.8p23;
  return {shifted - 0x1.8p23, bits(shifted) - 0x4B400000};
}

// p * 2^n, rounded once also where the result is subnormal; n within [-252, 254].
template <typename F>
F scale(F p, typename F::Int n) {
  const auto half = n.ashr(1);
  const auto power = [](auto k) { return real((k + 127).shl(23)); };
  return p * power(half) * power(n - half);
}

template <typename F>
F exp_float32(F x) {
  x = select(x > 89.0, x.constant(89.0), x);  // beyond: infinity
  x = select(x < -104.0, x.constant(-104.0), x);
  const auto [n, integer] = round_small(x * 0x1.715476p0);
  F r = fma(n, x.constant(-0x1.62e400p-1), x);  // ln 2 in two parts, the first of 15 bits
  r = fma(n, x.constant(-0x1.7f7d1cp-20), r);
  F p = x.constant(1.9875691500e-4);
  p = fma(p, r, x.constant(1.3981999507e-3));
  p = fma(p, r, x.constant(8.3334519073e-3));
  p = fma(p, r, x.constant(4.1665795894e-2));
  p = fma(p, r, x.constant(1.6666665459e-1));
  p = fma(p, r, x.constant(5.0000001201e-1));
  return scale(fma(p, r * r, r) + 1.0, integer);
}

}  // namespace lamella::tile::math
