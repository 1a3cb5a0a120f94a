// Picking a kernel's instance by dtype.
#pragma once

#include <cstdint>

#include "lamella/base/error.h"
#include "lamella/types/dtype.h"
#include "lamella/types/half.h"

namespace lamella::kernels {

// float16 and bfloat16 as element types of kernels: storage, and conversion to and from float.
struct Float16 {
  uint16_t bits;
  Float16() = default;
  explicit Float16(float value) : bits(float16_bits_from_float(value)) {}
  explicit operator float() const { return float_from_float16_bits(bits); }
};
struct BFloat16 {
  uint16_t bits;
  BFloat16() = default;
  explicit BFloat16(float value) : bits(bfloat16_bits_from_float(value)) {}
  explicit operator float() const { return float_from_bfloat16_bits(bits); }
};

// The type sums over T are kept in.
template <typename T>
struct AccumulatorOf {
  using Type = T;
};
template <>
struct AccumulatorOf<Float16> {
  using Type = float;
};
template <>
struct AccumulatorOf<BFloat16> {
  using Type = float;
};
template <typename T>
using Accumulator = typename AccumulatorOf<T>::Type;

struct Bytes16 {
  uint64_t words[2];
};

// Calls body(T*) (a null pointer that carries the type) with an unsigned type of the dtype's size:
// for kernels that move elements.
template <typename Body>
void with_element(DType dtype, Body&& body) {
  switch (size_of(dtype)) {
    case 1:
      return body(static_cast<uint8_t*>(nullptr));
    case 2:
      return body(static_cast<uint16_t*>(nullptr));
    case 4:
      return body(static_cast<uint32_t*>(nullptr));
    case 8:
      return body(static_cast<uint64_t*>(nullptr));
    default:
      return body(static_cast<Bytes16*>(nullptr));
  }
}

// The same with the dtype's own type, for the floats. Throws Type for others.
template <typename Body>
void with_float(const char* operation, DType dtype, Body&& body) {
  switch (dtype) {
    case DType::Float16:
      return body(static_cast<Float16*>(nullptr));
    case DType::BFloat16:
      return body(static_cast<BFloat16*>(nullptr));
    case DType::Float32:
      return body(static_cast<float*>(nullptr));
    case DType::Float64:
      return body(static_cast<double*>(nullptr));
    default:
      fail(ErrorKind::Type, "[{}] takes float16, bfloat16, float32 or float64, got {}", operation,
           name(dtype));
  }
}

// The same for the integers kernels compute with. Throws Type for others.
template <typename Body>
void with_integer(const char* operation, DType dtype, Body&& body) {
  switch (dtype) {
    case DType::Int8:
      return body(static_cast<int8_t*>(nullptr));
    case DType::UInt8:
      return body(static_cast<uint8_t*>(nullptr));
    case DType::Int16:
      return body(static_cast<int16_t*>(nullptr));
    case DType::Int32:
      return body(static_cast<int32_t*>(nullptr));
    case DType::Int64:
      return body(static_cast<int64_t*>(nullptr));
    default:
      fail(ErrorKind::Type, "[{}] does not take {}", operation, name(dtype));
  }
}

}  // namespace lamella::kernels
