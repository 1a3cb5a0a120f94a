// Arrays in host memory: what the rows of a dataset are made of.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

#include "lamella/base/api.h"
#include "lamella/base/error.h"
#include "lamella/types/dtype.h"
#include "lamella/types/shape.h"

namespace lamella::data {

// dtype and sizes of an array. Text is uint8: along the last axis the UTF-8 bytes of one string,
// filled up with zeros.
struct ArrayType {
  DType dtype = DType::Float32;
  Axes sizes;
  bool is_text = false;
  friend bool operator==(const ArrayType&, const ArrayType&) = default;
};

// The number of elements; 1 without axes.
LAMELLA_API int64_t element_count(const Axes& sizes);
// "u8[28,28,1]"; "text[3]" for three strings.
LAMELLA_API std::string text(const ArrayType& type);

// The dtype of a C++ element type.
template <typename T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, bool>) return DType::Bool;
  if constexpr (std::is_same_v<T, int8_t>) return DType::Int8;
  if constexpr (std::is_same_v<T, uint8_t>) return DType::UInt8;
  if constexpr (std::is_same_v<T, int16_t>) return DType::Int16;
  if constexpr (std::is_same_v<T, uint16_t>) return DType::UInt16;
  if constexpr (std::is_same_v<T, int32_t>) return DType::Int32;
  if constexpr (std::is_same_v<T, uint32_t>) return DType::UInt32;
  if constexpr (std::is_same_v<T, int64_t>) return DType::Int64;
  if constexpr (std::is_same_v<T, uint64_t>) return DType::UInt64;
  if constexpr (std::is_same_v<T, float>) return DType::Float32;
  if constexpr (std::is_same_v<T, double>) return DType::Float64;
}

// A dense row-major array. Copies share the bytes, which nobody changes once the array has left the
// function that made it; views of one array (rows, reshapes) share them as well.
class LAMELLA_API Array {
 public:
  // Holds nothing.
  Array() = default;
  // Fresh memory, not initialised, aligned to 64 bytes. Throws Memory if there is none.
  Array(DType dtype, const Axes& sizes);
  // Memory of someone else, for example another library's array, which `data` keeps alive.
  Array(DType dtype, const Axes& sizes, std::shared_ptr<const void> data)
      : type_{dtype, sizes}, data_(std::move(data)), borrowed_(true) {}
  // A copy of `values`, as an array of `sizes`.
  template <typename T>
  static Array of(std::span<const T> values, const Axes& sizes);
  template <typename T>
  static Array scalar(T value) {
    return of<T>(std::span<const T>(&value, 1), {});
  }
  // One string, which is UTF-8.
  static Array text(std::string_view string);
  // uint8 elements seen as text.
  Array as_text() const;

  bool defined() const { return data_ != nullptr; }
  const ArrayType& type() const { return type_; }
  DType dtype() const { return type_.dtype; }
  const Axes& sizes() const { return type_.sizes; }
  int rank() const { return static_cast<int>(type_.sizes.size()); }
  int64_t count() const { return element_count(type_.sizes); }
  size_t bytes() const { return static_cast<size_t>(count() * size_of(dtype())); }

  const std::byte* data() const { return static_cast<const std::byte*>(data_.get()); }
  // Whether nobody else has the bytes: they are not borrowed, and no other array shares them.
  bool exclusive() const { return !borrowed_ && data_.use_count() == 1; }
  // The elements, for the function that made the array and has not passed it on.
  std::byte* writable() { return static_cast<std::byte*>(const_cast<void*>(data_.get())); }

  // The elements as T, whose dtype must be the array's.
  template <typename T>
  std::span<const T> as() const {
    require_dtype(dtype_of<T>());
    return {reinterpret_cast<const T*>(data()), static_cast<size_t>(count())};
  }
  template <typename T>
  std::span<T> writable_as() {
    require_dtype(dtype_of<T>());
    return {reinterpret_cast<T*>(writable()), static_cast<size_t>(count())};
  }

  // The same elements under other sizes of equal count.
  Array reshaped(const Axes& sizes) const;
  // The part [first, first + count) of the first axis.
  Array slice(int64_t first, int64_t count) const;
  // One entry of the first axis, without that axis.
  Array row(int64_t index) const;

 private:
  void require_dtype(DType dtype) const;

  ArrayType type_;
  std::shared_ptr<const void> data_;
  bool borrowed_ = false;
};

// Arrays of one dtype and equal sizes along a new first axis; strings may differ in length. Throws
// Value, in the name of `operation` and for the column `column`, if they differ.
LAMELLA_API Array stack(std::span<const Array> arrays, std::string_view operation,
                        std::string_view column);

template <typename T>
Array Array::of(std::span<const T> values, const Axes& sizes) {
  Array array(dtype_of<T>(), sizes);
  if (values.size() != static_cast<size_t>(array.count())) {
    fail(ErrorKind::Value, "[Array] {} values do not fill {}", values.size(),
         data::text(array.type()));
  }
  if (!values.empty()) std::memcpy(array.writable(), values.data(), values.size_bytes());
  return array;
}

}  // namespace lamella::data
