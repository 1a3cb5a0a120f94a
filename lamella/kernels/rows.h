// Operations on rows of elements that lie side by side, computed in float32 or float64 and compiled
// for every vector width.
#pragma once

#include <cstdint>

#include "lamella/kernels/element.h"

namespace lamella::kernels {

// Exact widening and rounding of adjacent elements.
void widen_row(const Float16* from, float* to, int64_t count);
void widen_row(const BFloat16* from, float* to, int64_t count);
void narrow_row(const float* from, Float16* to, int64_t count);
void narrow_row(const float* from, BFloat16* to, int64_t count);

// sums[i] += row[i]
void add_row(float* sums, const float* row, int64_t count);
void add_row(double* sums, const double* row, int64_t count);

// largest[i] = the larger of itself and row[i], NaN if either is.
void max_row(float* largest, const float* row, int64_t count);
void max_row(double* largest, const double* row, int64_t count);

// The same; source[i] becomes `number` where row[i] is taken. A first NaN is taken, and anything
// where source[i] is negative.
void argmax_row(float* largest, int32_t* source, const float* row, int32_t number, int64_t count);
void argmax_row(double* largest, int32_t* source, const double* row, int32_t number, int64_t count);

// sums[i] += row[i] where source[i] is `number`.
void add_row_from(float* sums, const float* row, const int32_t* source, int32_t number,
                  int64_t count);
void add_row_from(double* sums, const double* row, const int32_t* source, int32_t number,
                  int64_t count);

// Whether any element lies outside [low, high).
bool any_outside(const int32_t* row, int64_t count, int64_t low, int64_t high);
bool any_outside(const int64_t* row, int64_t count, int64_t low, int64_t high);

// The elements from[i * step] as a row of accumulators: in place where they are that already, else
// in `buffer`.
template <typename T>
const Accumulator<T>* read_row(const T* from, int64_t step, int64_t count, Accumulator<T>* buffer) {
  if constexpr (std::is_same_v<T, Accumulator<T>>) {
    if (step == 1) return from;
  } else {
    if (step == 1) {
      widen_row(from, buffer, count);
      return buffer;
    }
  }
  for (int64_t i = 0; i < count; ++i) buffer[i] = static_cast<Accumulator<T>>(from[i * step]);
  return buffer;
}

// to[i * step] = row[i], rounded.
template <typename T>
void write_row(const Accumulator<T>* row, int64_t count, T* to, int64_t step) {
  if constexpr (!std::is_same_v<T, Accumulator<T>>) {
    if (step == 1) return narrow_row(row, to, count);
  }
  for (int64_t i = 0; i < count; ++i) to[i * step] = T(row[i]);
}

}  // namespace lamella::kernels
