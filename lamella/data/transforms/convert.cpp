// Conversion between dtypes.
#include "lamella/data/transforms/convert.h"

#include <cmath>
#include <limits>
#include <utility>

#include "lamella/types/half.h"

namespace lamella::data {

namespace {

// The 16-bit floats as element types of their own.
struct Half {
  uint16_t bits;
};
struct Brain {
  uint16_t bits;
};

template <typename T>
constexpr bool is_small_float = std::is_same_v<T, Half> || std::is_same_v<T, Brain>;

// What an element is computed with: float for the 16-bit floats.
template <typename T>
auto widened(T value) {
  if constexpr (std::is_same_v<T, Half>) {
    return float_from_float16_bits(value.bits);
  } else if constexpr (std::is_same_v<T, Brain>) {
    return float_from_bfloat16_bits(value.bits);
  } else {
    return value;
  }
}

template <typename To, typename From>
To integer_from_float(From value) {
  using Limits = std::numeric_limits<To>;
  // Both bounds are powers of two or zero, so exact in any float.
  const From low = static_cast<From>(Limits::min());
  const From beyond = std::ldexp(From{1}, Limits::digits);
  if (value != value) return To{0};
  if (value < low) return Limits::min();
  if (value >= beyond) return Limits::max();
  return static_cast<To>(value);
}

template <typename To, typename From>
To integer_from_integer(From value) {
  using Limits = std::numeric_limits<To>;
  if (std::cmp_less(value, Limits::min())) return Limits::min();
  if (std::cmp_greater(value, Limits::max())) return Limits::max();
  return static_cast<To>(value);
}

template <typename To, typename From>
To converted(From element) {
  const auto value = widened(element);
  using Value = std::remove_const_t<decltype(value)>;
  if constexpr (is_small_float<To>) {
    // Integers of up to 64 bits are not exact in double either, but rounding them to odd on the way
    // keeps the one rounding at the end correct.
    const float narrow = float_round_to_odd(static_cast<double>(value));
    if constexpr (std::is_same_v<To, Half>) return Half{float16_bits_from_float(narrow)};
    if constexpr (std::is_same_v<To, Brain>) return Brain{bfloat16_bits_from_float(narrow)};
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != Value{};
  } else if constexpr (std::is_floating_point_v<To> || std::is_same_v<Value, bool>) {
    return static_cast<To>(value);
  } else if constexpr (std::is_floating_point_v<Value>) {
    return integer_from_float<To>(value);
  } else {
    return integer_from_integer<To>(value);
  }
}

template <typename Body>
void with_any_element_type(DType dtype, std::string_view operation, Body&& body) {
  if (dtype == DType::Float16) return body(Half{});
  if (dtype == DType::BFloat16) return body(Brain{});
  with_element_type(dtype, operation, body);
}

}  // namespace

Array convert(const Array& array, DType dtype, std::string_view operation) {
  if (array.dtype() == dtype) return array;
  Array result(dtype, array.sizes());
  const auto count = static_cast<size_t>(array.count());
  with_any_element_type(array.dtype(), operation, [&](auto from) {
    with_any_element_type(dtype, operation, [&](auto to) {
      using From = decltype(from);
      using To = decltype(to);
      const auto* in = reinterpret_cast<const From*>(array.data());
      auto* out = reinterpret_cast<To*>(result.writable());
      for (size_t i = 0; i < count; ++i) out[i] = converted<To, From>(in[i]);
    });
  });
  return result;
}

}  // namespace lamella::data
