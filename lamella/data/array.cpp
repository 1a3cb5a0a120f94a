// Memory of arrays and views of it.
#include "lamella/data/array.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <vector>

namespace lamella::data {

namespace {

// Rows and batches that follow each other begin on their own cache line.
constexpr size_t kAlignment = 64;

std::shared_ptr<const void> allocate(const ArrayType& type) {
  // Checked multiplication: sizes may come from a file or from a user's function.
  uint64_t bytes = static_cast<uint64_t>(size_of(type.dtype));
  bool fits = true;
  for (int64_t size : type.sizes) {
    if (size < 0) fail(ErrorKind::Value, "[Array] sizes must not be negative: {}", text(type));
    fits = fits && !__builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes);
  }
  fits = fits && bytes < std::numeric_limits<size_t>::max() - kAlignment;
  const size_t rounded = fits ? (bytes + kAlignment) / kAlignment * kAlignment : 0;
  void* data = fits ? std::aligned_alloc(kAlignment, rounded) : nullptr;
  if (data == nullptr) fail(ErrorKind::Memory, "no memory for an array {}", text(type));
  return {data, [](void* pointer) { std::free(pointer); }};
}

}  // namespace

int64_t element_count(const Axes& sizes) {
  // An empty array may have other axes of any size, whose product would overflow.
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return 0;
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  return count;
}

std::string text(const ArrayType& type) {
  if (type.is_text) {
    return fmt::format("text[{}]", fmt::join(type.sizes.begin(), type.sizes.end() - 1, ","));
  }
  return fmt::format("{}[{}]", short_name(type.dtype),
                     fmt::join(type.sizes.begin(), type.sizes.end(), ","));
}

Array::Array(DType dtype, const Axes& sizes) : type_{dtype, sizes}, data_(allocate(type_)) {}

Array Array::reshaped(const Axes& sizes) const {
  if (element_count(sizes) != count()) {
    fail(ErrorKind::Value, "[Array] {} cannot be seen as {}", data::text(type_),
         data::text(ArrayType{dtype(), sizes}));
  }
  Array seen = *this;
  seen.type_ = {dtype(), sizes};
  return seen;
}

Array Array::text(std::string_view string) {
  Array array(DType::UInt8, {static_cast<int64_t>(string.size())});
  if (!string.empty()) std::memcpy(array.writable(), string.data(), string.size());
  return array.as_text();
}

Array Array::as_text() const {
  LAMELLA_CHECK(dtype() == DType::UInt8 && rank() > 0);
  Array strings = *this;
  strings.type_.is_text = true;
  return strings;
}

Array Array::slice(int64_t first, int64_t count) const {
  LAMELLA_CHECK(rank() > 0 && first >= 0 && count >= 0 && first + count <= sizes()[0]);
  Axes sizes = type_.sizes;
  sizes[0] = 1;
  const int64_t stride = element_count(sizes) * size_of(dtype());
  sizes[0] = count;
  Array part = *this;
  part.type_.sizes = sizes;
  part.data_ = {data_, data() + first * stride};
  return part;
}

Array Array::row(int64_t index) const {
  Array part = slice(index, 1);
  part.type_.sizes.erase(0);
  return part;
}

void Array::require_dtype(DType dtype) const {
  if (type_.dtype != dtype || !defined()) {
    fail(ErrorKind::Type, "[Array] {} does not hold elements of {}",
         defined() ? data::text(type_) : "an empty array", name(dtype));
  }
}

namespace {

// Strings of equal length, by zeros at their ends.
std::vector<Array> lengthened(std::span<const Array> strings) {
  int64_t longest = 0;
  for (const Array& string : strings) longest = std::max(longest, string.sizes().back());
  std::vector<Array> made;
  for (const Array& string : strings) {
    Axes sizes = string.sizes();
    const auto length = static_cast<size_t>(sizes.back());
    sizes.back() = longest;
    Array longer(DType::UInt8, sizes);
    std::byte* to = longer.writable();
    const std::byte* from = string.data();
    const size_t count = longest == 0 ? 0 : longer.bytes() / static_cast<size_t>(longest);
    for (size_t i = 0; i < count; ++i, to += longest, from += length) {
      std::copy_n(from, length, to);
      std::fill(to + length, to + longest, std::byte{0});
    }
    made.push_back(longer.as_text());
  }
  return made;
}

bool differ_in_length(std::span<const Array> arrays) {
  return std::all_of(arrays.begin(), arrays.end(),
                     [](const Array& array) { return array.type().is_text; }) &&
         std::any_of(arrays.begin(), arrays.end(), [&](const Array& array) {
           return array.sizes().back() != arrays[0].sizes().back();
         });
}

}  // namespace

Array stack(std::span<const Array> arrays, std::string_view operation, std::string_view column) {
  LAMELLA_CHECK(!arrays.empty());
  if (differ_in_length(arrays)) return stack(lengthened(arrays), operation, column);
  const ArrayType& first = arrays[0].type();
  if (first.sizes.size() == first.sizes.capacity()) {
    fail(ErrorKind::Value, "[{}] column '{}': {} has no room for another axis", operation, column,
         text(first));
  }
  Axes sizes = first.sizes;
  sizes.insert(0, static_cast<int64_t>(arrays.size()));
  Array result(first.dtype, sizes);
  const size_t bytes = arrays[0].bytes();
  std::byte* to = result.writable();
  for (size_t i = 0; i < arrays.size(); ++i, to += bytes) {
    if (arrays[i].type() != first) {
      fail(ErrorKind::Value, "[{}] rows of column '{}' differ: row 0 is {}, row {} is {}",
           operation, column, text(first), i, text(arrays[i].type()));
    }
    if (bytes > 0) std::memcpy(to, arrays[i].data(), bytes);
  }
  return first.is_text ? result.as_text() : result;
}

}  // namespace lamella::data
