// sin, cos, tan and their inverses.
#pragma once

#include "lamella/tile/math/value.h"

namespace lamella::tile::math {

inline const LibraryFunction kLibrarySin = {.name = "sin", .one = std::sin};
inline const LibraryFunction kLibraryCos = {.name = "cos", .one = std::cos};
inline const LibraryFunction kLibraryTan = {.name = "tan", .one = std::tan};

// x = quadrant * pi/2 + r with |r| just above pi/4, for |x| below kLargeAngle. The reduction is in
// float64, which holds all bits that r needs.
inline constexpr double kLargeAngle = 65536;

template <typename F, typename D>
struct Angle {
  typename F::Int quadrant;
  D r;
};

template <typename F>
auto reduce_angle(F x) {
  const F shifted = fma(x, x.constant(0x1.45f306p-1), x.constant(0x1.8p23));
  const auto n = widen(shifted - 0x1.8p23);
  auto r = fma(n, n.constant(-0x1.921fb54442d18p0), widen(x));
  r = fma(n, n.constant(-0x1.1a62633145c07p-54), r);
  return Angle<F, decltype(r)>{bits(shifted), r};
}

// For larger angles, infinities and NaN.
template <typename F>
typename F::Mask is_large_angle(F x) {
  return !(abs(x) < kLargeAngle);
}

// Sine and cosine for |r| <= 0.8; 2^-32 relative.
template <typename F>
F sin_reduced(F r) {
  const F s = r * r;
  const F p = polynomial(s, -0x1.555556p-3, 0x1.111170p-7, -0x1.a053f2p-13, 0x1.7a86b2p-19);
  return fma(r * s, p, r);
}
template <typename F>
F cos_reduced(F r) {
  const F s = r * r;
  const F p = polynomial(s, 0x1.555548p-5, -0x1.6c0af4p-10, 0x1.99911cp-16);
  return fma(s * s, p, fma(s, r.constant(-0.5), r.constant(1.0)));
}

// sin(r + quadrant * pi/2).
template <typename F>
F sin_of_quadrant(F r, typename F::Int quadrant) {
  const F value = select((quadrant & 1) != 0, cos_reduced(r), sin_reduced(r));
  return real(bits(value) ^ (quadrant & 2).shl(30));
}

template <typename F>
F sin_float32(F x) {
  const auto [quadrant, r] = reduce_angle(x);
  const F result = select(x == 0.0, x, sin_of_quadrant(narrow(r), quadrant));
  return replace_rare(is_large_angle(x), result,
                      [&] { return narrow(call_each(kLibrarySin, widen(x))); });
}

template <typename F>
F cos_float32(F x) {
  const auto [quadrant, r] = reduce_angle(x);
  const F result = sin_of_quadrant(narrow(r), quadrant + 1);
  return replace_rare(is_large_angle(x), result,
                      [&] { return narrow(call_each(kLibraryCos, widen(x))); });
}

// In float64: sine and cosine of the reduced angle to 2^-47, and their ratio.
template <typename F>
F tan_float32(F x) {
  const auto [quadrant, r] = reduce_angle(x);
  const auto s = r * r;
  const auto sine =
      fma(r * s,
          polynomial(s, -0x1.555555555193cp-3, 0x1.1111110be1147p-7, -0x1.a019f85160c0dp-13,
                     0x1.71d6efe9f9920p-19, -0x1.a933c8ffbdcd9p-26),
          r);
  const auto cosine =
      fma(s * s,
          polynomial(s, 0x1.55555555524e0p-5, -0x1.6c16c1663fc5bp-10, 0x1.a019f96ee8f7ep-16,
                     -0x1.27dfa0b61fee4p-22, 0x1.1b9cecbf08e78p-29),
          fma(s, s.constant(-0.5), s.constant(1.0)));
  const auto odd = (widen(quadrant) & 1) != 0;
  const auto ratio = select(odd, -cosine, sine) / select(odd, sine, cosine);
  const F result = select(x == 0.0, x, narrow(ratio));
  return replace_rare(is_large_angle(x), result,
                      [&] { return narrow(call_each(kLibraryTan, widen(x))); });
}

inline constexpr double kHalfPi = 0x1.921fb54442d18p0;

// In float64: asin(a) for a within [0, 1/2]; 2^-39 relative.
template <typename D>
D asin_small(D a) {
  const D s = a * a;
  const D p = polynomial(s, 0x1.555555478ee1dp-3, 0x1.333340c793de1p-4, 0x1.6db24b5831069p-5,
                         0x1.f283e53de0591p-6, 0x1.662fabd6b689ep-6, 0x1.52911b451b000p-6,
                         0x1.fafca6adef10ap-10, 0x1.0dfc5aff0b08dp-5);
  return fma(a * s, p, a);
}

// asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)) above 1/2. Beyond 1 the square root gives NaN.
template <typename F>
F asin_float32(F x) {
  const auto a = widen(abs(x));
  const auto large = a > 0.5;
  const auto y = asin_small(select(large, sqrt((1.0 - a) * 0.5), a));
  return copysign(narrow(select(large, fma(y, y.constant(-2.0), y.constant(kHalfPi)), y)), x);
}

template <typename F>
F acos_float32(F x) {
  const auto signed_x = widen(x);
  const auto a = abs(signed_x);
  const auto large = a > 0.5;
  const auto y = asin_small(select(large, sqrt((1.0 - a) * 0.5), a));
  const auto from_large =
      select(signed_x < 0.0, fma(y, y.constant(-2.0), y.constant(2 * kHalfPi)), y + y);
  return narrow(select(large, from_large, kHalfPi - copysign(y, signed_x)));
}

// In float64: atan(t) for t within [0, 1]; 2^-34 relative.
template <typename D>
D atan_unit(D t) {
  const D s = t * t;
  const D p = polynomial(s, 0x1.ffffffff7ec6dp-1, -0x1.555554269a578p-2, 0x1.9999238ec1a19p-3,
                         -0x1.2489327360694p-3, 0x1.c66110eca588cp-4, -0x1.6fd4a2a7b4e56p-4,
                         0x1.28c8dfa2c0f7bp-4, -0x1.bca79398f8b10p-5, 0x1.183eca840c192p-5,
                         -0x1.07f9580d3aceap-6, 0x1.3de93f7ab69fbp-8, -0x1.6707657e54f25p-11);
  return t * p;
}

template <typename F>
F atan_float32(F x) {
  const auto a = widen(abs(x));
  const auto large = a > 1.0;
  const auto y = atan_unit(select(large, 1.0 / a, a));
  return copysign(narrow(select(large, kHalfPi - y, y)), x);
}

// The angle of the point (x, y), with the C library's values at zeros and infinities.
template <typename F>
F atan2_float32(F y, F x) {
  const auto ay = widen(abs(y)), ax = widen(abs(x));
  const auto steep = ay > ax;
  const auto least = select(steep, ax, ay), most = select(steep, ay, ax);
  auto ratio = select(least == 0.0, least, least / most);
  ratio = select(least == std::numeric_limits<double>::infinity(), ratio.constant(1.0), ratio);
  auto angle = atan_unit(ratio);
  angle = select(steep, kHalfPi - angle, angle);
  const auto left = bits(widen(x)) < 0;  // the sign bit: also of -0
  angle = select(left, 2 * kHalfPi - angle, angle);
  const F result = copysign(narrow(angle), y);
  return select((x != x) | (y != y), x + y, result);
}

}  // namespace lamella::tile::math
