// Elements of an array as another dtype.
#pragma once

#include "lamella/data/array.h"

namespace lamella::data {

// Rounds to nearest even where a float loses digits; to an integer, rounds towards zero, takes the
// nearest end of the range for numbers outside it and 0 for NaN; to bool, everything but 0 is true.
// Throws Type for complex dtypes, in the name of `operation`.
LAMELLA_API Array convert(const Array& array, DType dtype, std::string_view operation);

// Calls body with a value-initialised element of the dtype's C++ type: bool, the integers, float
// and double. The 16-bit floats and complex dtypes have none; for them, Type in the name of
// `operation`.
template <typename Body>
void with_element_type(DType dtype, std::string_view operation, Body&& body) {
  switch (dtype) {
    case DType::Bool:
      return body(bool{});
    case DType::Int8:
      return body(int8_t{});
    case DType::UInt8:
      return body(uint8_t{});
    case DType::Int16:
      return body(int16_t{});
    case DType::UInt16:
      return body(uint16_t{});
    case DType::Int32:
      return body(int32_t{});
    case DType::UInt32:
      return body(uint32_t{});
    case DType::Int64:
      return body(int64_t{});
    case DType::UInt64:
      return body(uint64_t{});
    case DType::Float32:
      return body(float{});
    case DType::Float64:
      return body(double{});
    default:
      fail(ErrorKind::Type, "[{}] {} is not supported", operation, name(dtype));
  }
}

}  // namespace lamella::data
