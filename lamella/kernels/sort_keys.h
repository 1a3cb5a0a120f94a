// Elements as unsigned integers of the same order, so that one comparison of integers decides it:
// both zeros are equal, all NaNs are equal and above everything else.
#pragma once

#include <type_traits>

#include "lamella/base/error.h"
#include "lamella/types/dtype.h"

namespace lamella::kernels {

template <typename T>
struct IntegerOrder {
  using Element = T;
  using Key = std::make_unsigned_t<T>;
  static constexpr bool kHasNaN = false;

  static Key key(T element) {
    constexpr auto sign =
        static_cast<Key>(std::is_signed_v<T> ? Key{1} << (8 * sizeof(T) - 1) : Key{0});
    return static_cast<Key>(static_cast<Key>(element) ^ sign);
  }
  static bool is_nan(T) { return false; }
};

// Floats by their bits; `infinity` are those of the largest number that is none.
template <typename Bits, Bits infinity>
struct FloatOrder {
  using Element = Bits;
  using Key = Bits;
  static constexpr bool kHasNaN = true;

  static Key key(Bits bits) {
    constexpr auto sign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
    const auto magnitude = static_cast<Bits>(bits & static_cast<Bits>(~sign));
    const auto mirrored = static_cast<Bits>((bits & sign) != 0 ? ~bits : bits | sign);
    const Bits number = magnitude == 0 ? sign : mirrored;
    return magnitude > infinity ? static_cast<Bits>(~Bits{0}) : number;
  }
  static bool is_nan(Bits bits) { return key(bits) == static_cast<Bits>(~Bits{0}); }
};

// Calls body(Order) with the order of a dtype.
template <typename Body>
void with_order(const char* operation, DType dtype, Body&& body) {
  switch (dtype) {
    case DType::Bool:
    case DType::UInt8:
      return body(IntegerOrder<uint8_t>{});
    case DType::Int8:
      return body(IntegerOrder<int8_t>{});
    case DType::Int16:
      return body(IntegerOrder<int16_t>{});
    case DType::Int32:
      return body(IntegerOrder<int32_t>{});
    case DType::Int64:
      return body(IntegerOrder<int64_t>{});
    case DType::Float16:
      return body(FloatOrder<uint16_t, 0x7C00>{});
    case DType::BFloat16:
      return body(FloatOrder<uint16_t, 0x7F80>{});
    case DType::Float32:
      return body(FloatOrder<uint32_t, 0x7F800000>{});
    case DType::Float64:
      return body(FloatOrder<uint64_t, 0x7FF0000000000000>{});
    default:
      fail(ErrorKind::Type, "[{}] does not take {}", operation, name(dtype));
  }
}

}  // namespace lamella::kernels
