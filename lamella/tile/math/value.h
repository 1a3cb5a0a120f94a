// The value types that the function templates of this folder compute with.
//
// A template takes a real type F with members F::Int, F::Mask and F::constant(double), operators
// + - * / and comparisons (also against double constants), and these functions found by argument
// lookup: fma, select, sqrt, floor, trunc, abs, copysign, bits, real, to_integer, to_real, widen,
// narrow, replace_rare and call_each. Every operation is one IEEE operation, so two value types
// give the same bits. Plain is the one that computes at once; the LLVM emitter's builds
// instructions.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace lamella::tile::math {

// A function of the C library on float64.
struct LibraryFunction {
  const char* name;
  double (*one)(double) = nullptr;
  double (*two)(double, double) = nullptr;
};

struct PlainMask {
  bool v;

  friend PlainMask operator&(PlainMask a, PlainMask b) { return {a.v && b.v}; }
  friend PlainMask operator|(PlainMask a, PlainMask b) { return {a.v || b.v}; }
  friend PlainMask operator^(PlainMask a, PlainMask b) { return {a.v != b.v}; }
  friend PlainMask operator!(PlainMask a) { return {!a.v}; }
};

// Wrapping integers of the width of a float type.
template <typename I>
struct PlainInt {
  using U = std::make_unsigned_t<I>;
  I v;

  PlainInt constant(int64_t value) const { return {static_cast<I>(value)}; }
  PlainInt shl(int n) const { return {static_cast<I>(static_cast<U>(v) << n)}; }
  PlainInt lshr(int n) const { return {static_cast<I>(static_cast<U>(v) >> n)}; }
  PlainInt ashr(int n) const { return {static_cast<I>(v >> n)}; }

  friend PlainInt operator+(PlainInt a, PlainInt b) {
    return {static_cast<I>(static_cast<U>(a.v) + static_cast<U>(b.v))};
  }
  friend PlainInt operator-(PlainInt a, PlainInt b) {
    return {static_cast<I>(static_cast<U>(a.v) - static_cast<U>(b.v))};
  }
  friend PlainInt operator&(PlainInt a, PlainInt b) { return {static_cast<I>(a.v & b.v)}; }
  friend PlainInt operator|(PlainInt a, PlainInt b) { return {static_cast<I>(a.v | b.v)}; }
  friend PlainInt operator^(PlainInt a, PlainInt b) { return {static_cast<I>(a.v ^ b.v)}; }
  friend PlainInt operator+(PlainInt a, int64_t b) { return a + a.constant(b); }
  friend PlainInt operator-(PlainInt a, int64_t b) { return a - a.constant(b); }
  friend PlainInt operator&(PlainInt a, int64_t b) { return a & a.constant(b); }
  friend PlainInt operator|(PlainInt a, int64_t b) { return a | a.constant(b); }
  friend PlainInt operator^(PlainInt a, int64_t b) { return a ^ a.constant(b); }
  friend PlainMask operator==(PlainInt a, int64_t b) { return {a.v == static_cast<I>(b)}; }
  friend PlainMask operator!=(PlainInt a, int64_t b) { return {a.v != static_cast<I>(b)}; }
  friend PlainMask operator<(PlainInt a, int64_t b) { return {a.v < static_cast<I>(b)}; }
};

template <typename T>
struct Plain {
  using Int = PlainInt<std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>;
  using Mask = PlainMask;
  T v;

  Plain constant(double value) const { return {static_cast<T>(value)}; }

  friend Plain operator+(Plain a, Plain b) { return {a.v + b.v}; }
  friend Plain operator-(Plain a, Plain b) { return {a.v - b.v}; }
  friend Plain operator*(Plain a, Plain b) { return {a.v * b.v}; }
  friend Plain operator/(Plain a, Plain b) { return {a.v / b.v}; }
  friend Plain operator-(Plain a) { return {-a.v}; }
  friend Plain operator+(Plain a, double b) { return a + a.constant(b); }
  friend Plain operator-(Plain a, double b) { return a - a.constant(b); }
  friend Plain operator*(Plain a, double b) { return a * a.constant(b); }
  friend Plain operator/(Plain a, double b) { return a / a.constant(b); }
  friend Plain operator+(double a, Plain b) { return b.constant(a) + b; }
  friend Plain operator-(double a, Plain b) { return b.constant(a) - b; }
  friend Plain operator*(double a, Plain b) { return b.constant(a) * b; }
  friend Plain operator/(double a, Plain b) { return b.constant(a) / b; }

  friend PlainMask operator<(Plain a, Plain b) { return {a.v < b.v}; }
  friend PlainMask operator<=(Plain a, Plain b) { return {a.v <= b.v}; }
  friend PlainMask operator>(Plain a, Plain b) { return {a.v > b.v}; }
  friend PlainMask operator>=(Plain a, Plain b) { return {a.v >= b.v}; }
  friend PlainMask operator==(Plain a, Plain b) { return {a.v == b.v}; }
  friend PlainMask operator!=(Plain a, Plain b) { return {a.v != b.v}; }
  friend PlainMask operator<(Plain a, double b) { return a < a.constant(b); }
  friend PlainMask operator<=(Plain a, double b) { return a <= a.constant(b); }
  friend PlainMask operator>(Plain a, double b) { return a > a.constant(b); }
  friend PlainMask operator>=(Plain a, double b) { return a >= a.constant(b); }
  friend PlainMask operator==(Plain a, double b) { return a == a.constant(b); }
  friend PlainMask operator!=(Plain a, double b) { return a != a.constant(b); }
};

template <typename T>
Plain<T> fma(Plain<T> a, Plain<T> b, Plain<T> c) {
  return {std::fma(a.v, b.v, c.v)};
}
template <typename T>
Plain<T> select(PlainMask mask, Plain<T> a, Plain<T> b) {
  return mask.v ? a : b;
}
template <typename I>
PlainInt<I> select(PlainMask mask, PlainInt<I> a, PlainInt<I> b) {
  return mask.v ? a : b;
}
template <typename T>
Plain<T> sqrt(Plain<T> a) {
  return {std::sqrt(a.v)};
}
template <typename T>
Plain<T> floor(Plain<T> a) {
  return {std::floor(a.v)};
}
template <typename T>
Plain<T> trunc(Plain<T> a) {
  return {std::trunc(a.v)};
}
template <typename T>
Plain<T> abs(Plain<T> a) {
  return {std::fabs(a.v)};
}
template <typename T>
Plain<T> copysign(Plain<T> magnitude, Plain<T> sign) {
  return {std::copysign(magnitude.v, sign.v)};
}
// The bits of a float as an integer of its width, and back.
template <typename T>
typename Plain<T>::Int bits(Plain<T> a) {
  return {std::bit_cast<decltype(Plain<T>::Int::v)>(a.v)};
}
inline Plain<float> real(PlainInt<int32_t> a) {
  return {std::bit_cast<float>(a.v)};
}
inline Plain<double> real(PlainInt<int64_t> a) {
  return {std::bit_cast<double>(a.v)};
}
// The value as an integer of the same width, truncated; it must be in range.
template <typename T>
typename Plain<T>::Int to_integer(Plain<T> a) {
  return {static_cast<decltype(Plain<T>::Int::v)>(a.v)};
}
// An integer as a float32; it must be within 2^24.
inline Plain<float> to_real(PlainInt<int32_t> a) {
  return {static_cast<float>(a.v)};
}
inline Plain<double> widen(Plain<float> a) {
  return {static_cast<double>(a.v)};
}
inline PlainInt<int64_t> widen(PlainInt<int32_t> a) {
  return {a.v};
}
inline Plain<float> narrow(Plain<double> a) {
  return {static_cast<float>(a.v)};
}
// `rare()` where the mask holds, else `value`; rare() is only evaluated where it is needed.
template <typename T, typename Rare>
Plain<T> replace_rare(PlainMask mask, Plain<T> value, Rare rare) {
  return mask.v ? rare() : value;
}
// A library function, value by value.
inline Plain<double> call_each(const LibraryFunction& function, Plain<double> a) {
  return {function.one(a.v)};
}
inline Plain<double> call_each(const LibraryFunction& function, Plain<double> a, Plain<double> b) {
  return {function.two(a.v, b.v)};
}

// p * 2^n for whole n within [-252, 254], in two factors: the first product is exact, the second
// rounds once also where the result is subnormal.
template <typename F>
F scale_in_two_steps(F p, F n) {
  const auto whole = bits(n + 0x1.8p23) - 0x4B400000;  // the last place of the sum is 1
  const auto half = whole.ashr(1);
  const auto power = [](auto k) { return real((k + 127).shl(23)); };
  return p * power(half) * power(whole - half);
}
inline Plain<float> scale_float32(Plain<float> p, Plain<float> n) {
  return scale_in_two_steps(p, n);
}

// c[0] + c[1] x + c[2] x^2 + ..., by Horner's rule.
template <typename F, typename... C>
F polynomial(F x, double first, C... rest) {
  if constexpr (sizeof...(rest) == 0) {
    return x.constant(first);
  } else {
    return fma(polynomial(x, rest...), x, x.constant(first));
  }
}

}  // namespace lamella::tile::math
