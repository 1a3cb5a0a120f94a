// Shapes: up to eight axes, held in place.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lamella/base/inline_vector.h"
#include "lamella/types/dim.h"

namespace lamella {

inline constexpr int kMaxRank = 8;

using Shape = InlineVector<Dim, kMaxRank>;
// Axis numbers, permutations, per-axis integers.
using Axes = InlineVector<int64_t, kMaxRank>;

inline int rank(const Shape& shape) {
  return static_cast<int>(shape.size());
}

// The number of elements; 1 for rank 0.
LAMELLA_API Dim element_count(const Shape& shape);
LAMELLA_API bool all_known(const Shape& shape);
// "[2,s0,4]"
LAMELLA_API std::string text(const Shape& shape);

// NumPy's broadcasting of two shapes. `operation` and `left`/`right` name the parties in the error.
LAMELLA_API Shape broadcast_shapes(const Shape& a, const Shape& b, std::string_view operation);

// An axis counted from the front, from one in [-rank, rank). Throws Value naming `operation`.
LAMELLA_API int normalize_axis(int64_t axis, int rank, std::string_view operation);
// Normalised, sorted axes without repeats; an empty list means every axis.
LAMELLA_API Axes normalize_axes(const Axes& axes, int rank, std::string_view operation);

}  // namespace lamella
