// Places of values in sorted rows.
#pragma once

#include "lamella/base/api.h"
#include "lamella/device/tensor_view.h"

namespace lamella::kernels {

// Which of the places that keep the order: before equal elements or behind them.
enum class SearchSide : uint8_t { Left, Right };

// For each value the place, from 0 to n, in `sequence`, whose last axis holds n elements in
// ascending order (NaN the largest): one row for all values, or the leading axes of `values` with a
// row each. `out` (int64) has the shape of `values`.
LAMELLA_API void search_sorted(const TensorView& sequence, const TensorView& values,
                               SearchSide side, const TensorView& out);

}  // namespace lamella::kernels
