// Row operations; the loops are free of branches, so that the compiler makes vectors of them.
#include "lamella/kernels/rows.h"

#include <bit>

#include "lamella/kernels/vectorized.h"

namespace lamella::kernels {

LAMELLA_VECTORIZED void widen_row(const BFloat16* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    to[i] = std::bit_cast<float>(static_cast<uint32_t>(from[i].bits) << 16);
  }
}

LAMELLA_VECTORIZED void narrow_row(const float* from, BFloat16* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(from[i]);
    const uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
    const uint32_t nan = (bits >> 16) | 0x40u;
    to[i].bits = static_cast<uint16_t>((bits & 0x7FFFFFFFu) > 0x7F800000u ? nan : rounded);
  }
}

// The exponent is moved by a multiplication, which also normalises subnormal numbers exactly.
LAMELLA_VECTORIZED void widen_row(const Float16* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = from[i].bits;
    const uint32_t magnitude = (bits & 0x7FFFu) << 13;
    const uint32_t scaled = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
    const uint32_t special = magnitude | 0x7F800000u;
    const uint32_t result = (bits & 0x7C00u) == 0x7C00u ? special : scaled;
    to[i] = std::bit_cast<float>(result | (bits & 0x8000u) << 16);
  }
}

// float16_bits_from_float with its cases computed side by side.
LAMELLA_VECTORIZED void narrow_row(const float* from, Float16* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(from[i]);
    const uint32_t sign = (bits >> 16) & 0x8000u;
    const uint32_t magnitude = bits & 0x7FFFFFFFu;
    const uint32_t nan = 0x7E00u | ((magnitude >> 13) & 0x3FFu);
    const uint32_t subnormal =
        std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3F000000u;
    const uint32_t normal = (magnitude + 0xFFFu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
    uint32_t result = magnitude < 0x38800000u ? subnormal : normal;
    result = magnitude >= 0x477FF000u ? 0x7C00u : result;
    result = magnitude > 0x7F800000u ? nan : result;
    to[i].bits = static_cast<uint16_t>(sign | result);
  }
}

LAMELLA_VECTORIZED void add_row(float* sums, const float* row, int64_t count) {
  for (int64_t i = 0; i < count; ++i) sums[i] += row[i];
}
LAMELLA_VECTORIZED void add_row(double* sums, const double* row, int64_t count) {
  for (int64_t i = 0; i < count; ++i) sums[i] += row[i];
}

LAMELLA_VECTORIZED void max_row(float* largest, const float* row, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    largest[i] = (row[i] > largest[i]) | (row[i] != row[i]) ? row[i] : largest[i];
  }
}
LAMELLA_VECTORIZED void max_row(double* largest, const double* row, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    largest[i] = (row[i] > largest[i]) | (row[i] != row[i]) ? row[i] : largest[i];
  }
}

namespace {

template <typename T>
[[gnu::always_inline]] inline void argmax(T* largest, int32_t* source, const T* row, int32_t number,
                                          int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const T value = row[i], known = largest[i];
    const bool taken = (value > known) | ((value != value) & (known == known)) | (source[i] < 0);
    largest[i] = taken ? value : known;
    source[i] = taken ? number : source[i];
  }
}

template <typename T>
[[gnu::always_inline]] inline void add_from(T* sums, const T* row, const int32_t* source,
                                            int32_t number, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    sums[i] = source[i] == number ? sums[i] + row[i] : sums[i];
  }
}

}  // namespace

LAMELLA_VECTORIZED void argmax_row(float* largest, int32_t* source, const float* row,
                                   int32_t number, int64_t count) {
  argmax(largest, source, row, number, count);
}
LAMELLA_VECTORIZED void argmax_row(double* largest, int32_t* source, const double* row,
                                   int32_t number, int64_t count) {
  argmax(largest, source, row, number, count);
}

LAMELLA_VECTORIZED void add_row_from(float* sums, const float* row, const int32_t* source,
                                     int32_t number, int64_t count) {
  add_from(sums, row, source, number, count);
}
LAMELLA_VECTORIZED void add_row_from(double* sums, const double* row, const int32_t* source,
                                     int32_t number, int64_t count) {
  add_from(sums, row, source, number, count);
}

LAMELLA_VECTORIZED bool any_outside(const int32_t* row, int64_t count, int64_t low, int64_t high) {
  uint32_t outside = 0;
  for (int64_t i = 0; i < count; ++i) outside |= row[i] < low || row[i] >= high ? 1u : 0u;
  return outside != 0;
}
LAMELLA_VECTORIZED bool any_outside(const int64_t* row, int64_t count, int64_t low, int64_t high) {
  uint64_t outside = 0;
  for (int64_t i = 0; i < count; ++i) outside |= row[i] < low || row[i] >= high ? 1u : 0u;
  return outside != 0;
}

}  // namespace lamella::kernels
