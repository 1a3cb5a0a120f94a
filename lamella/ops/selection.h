// Results whose sizes depend on data: what a mask picks, and elements without repeats. A node's
// types must be known when it is made, so these functions run what is pending, read one number, how
// many elements a mask picks (picked), and go on with nodes of that size. Everything of the kind is
// made of that step and of operators that differentiate as usual.
#pragma once

#include <vector>

#include "lamella/ops/function_types.h"

namespace lamella::ops {

// The row-major numbers of the elements of a bool tensor that are true, in order: int64 [count].
LAMELLA_API Tensor picked(const Operand& mask);

// The places of the elements that are not 0 (NaN is not): int64 [count, rank], in row-major order.
LAMELLA_API Tensor nonzero(const Operand& x);
// The same axis by axis: rank tensors of [count].
LAMELLA_API std::vector<Tensor> nonzero_by_axis(const Operand& x);

// The elements of x where mask (bool) holds, in row-major order; the two are broadcast.
LAMELLA_API Tensor masked_select(const Operand& x, const Operand& mask);

struct Unique {
  Tensor values;   // [count]
  Tensor inverse;  // x's shape: the place of each element in `values` (int64)
  Tensor counts;   // [count]: how often each occurs (int64)
};
// The different elements of x in ascending order; NaN, as one element, last.
LAMELLA_API Unique unique(const Operand& x);
// x, flat, with each run of equal elements as one.
LAMELLA_API Unique unique_consecutive(const Operand& x);

// x cut along an axis into parts of the sizes given, however many.
LAMELLA_API std::vector<Tensor> split_into(const Operand& x, const std::vector<Dim>& sizes,
                                           int64_t axis = 0);

}  // namespace lamella::ops
