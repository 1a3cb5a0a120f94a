// exp and expm1. The polynomials here and in the neighbouring files are minimax fits; each states
// its relative error.
#pragma once

#include "lamella/tile/math/value.h"

namespace lamella::tile::math {

// The integer in a sum with 1.5 * 2^23, whose last place is 1; it must be below 2^22.
template <typename F>
F round_float32(F shifted) {
  return shifted - 0x1.8p23;
}

// exp(x) = 2^n exp(r) with |r| <= ln(2)/2.
template <typename F>
struct ExponentSplit {
  F n;
  F r;
};

template <typename F>
ExponentSplit<F> split_exponent(F x) {
  const F n = round_float32(fma(x, x.constant(0x1.715476p0), x.constant(0x1.8p23)));
  F r = fma(n, x.constant(-0x1.62e400p-1), x);  // ln 2 in two parts, the first of 15 bits
  r = fma(n, x.constant(-0x1.7f7d1cp-20), r);
  return {n, r};
}

// The split of x + rest, where rest is far below x's last place.
template <typename F>
ExponentSplit<F> split_exponent(F x, F rest) {
  const F n = round_float32(fma(x, x.constant(0x1.715476p0), x.constant(0x1.8p23)));
  const F r = fma(n, x.constant(-0x1.62e400p-1), x);  // ln 2 in two parts, the first of 15 bits
  return {n, r + fma(n, x.constant(-0x1.7f7d1cp-20), rest)};
}

// (exp(r) - 1 - r) / r^2 for |r| <= ln(2)/2; 2^-33 of exp(r).
template <typename F>
F exp_remainder(F r) {
  return polynomial(r, 0.5, 0x1.555554p-3, 0x1.5554e4p-5, 0x1.11130cp-7, 0x1.6d5278p-10,
                    0x1.9e08c2p-13);
}

template <typename F>
F exp_float32(F x) {
  // Processors take a hundred times as long over a product that becomes subnormal or 0. So a result
  // of 0, which every masked score of an attention has, does not come about by arithmetic.
  const auto vanishes = x < -104.0;
  x = select(x > 89.0, x.constant(89.0), x);  // beyond: infinity
  x = select(vanishes, x.constant(0.0), x);
  const auto [n, r] = split_exponent(x);
  const F power = scale_float32(fma(exp_remainder(r), r * r, r) + 1.0, n);
  return select(vanishes, x.constant(0.0), power);
}

// exp(x) for x within [-80, 80], whose results are normal.
template <typename F>
F exp_float32_normal(F x) {
  const auto [n, r] = split_exponent(x);
  return scale_float32(fma(exp_remainder(r), r * r, r) + 1.0, n);
}

// exp(r) - 1 for |r| <= ln(2)/2; 2^-31 relative.
template <typename F>
F expm1_reduced(F r) {
  const F q = polynomial(r, 0.5, 0x1.555554p-3, 0x1.5554f4p-5, 0x1.1112d0p-7, 0x1.6d4050p-10,
                         0x1.9e8b3ep-13);
  return fma(q, r * r, r);
}

template <typename F>
F expm1_float32(F x) {
  F y = select(x > 89.0, x.constant(89.0), x);
  y = select(y < -20.0, x.constant(-20.0), y);
  const auto [n, r] = split_exponent(y);
  // Half the power, which is finite for n = 128.
  const F half = scale_float32(x.constant(0.5), n);
  const F result = fma(half, expm1_reduced(r), half - 0.5) * 2.0;
  return select(x == 0.0, x, result);  // keeps the sign of 0
}

// 2^y in float64 to 2^-45, for |y| up to 1000; beyond it, the value at 1000.
template <typename D>
D exp2_float64(D y) {
  y = select(y > 1000.0, y.constant(1000.0), y);
  y = select(y < -1000.0, y.constant(-1000.0), y);
  const D shifted = y + 0x1.8p52;
  const D r = y - (shifted - 0x1.8p52);
  const D p = polynomial(r, 1.0, 0x1.62e42fefa3a26p-1, 0x1.ebfbdff81b1d8p-3, 0x1.c6b08d70387a3p-5,
                         0x1.3b2ab72553357p-7, 0x1.5d87fea6d384bp-10, 0x1.430895a119765p-13,
                         0x1.ffcb39082d8ccp-17, 0x1.63e9290eeae63p-20, 0x1.b68ee5411bed3p-24);
  const auto n = bits(shifted) - 0x4338000000000000;
  return p * real((n + 1023).shl(52));
}

// exp(x) in float64 to about 2^-44.
template <typename D>
D exp_float64(D x) {
  return exp2_float64(x * 0x1.71547652b82fep0);
}

}  // namespace lamella::tile::math
