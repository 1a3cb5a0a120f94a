// Elements of an axis in order: all of them, the first k, the middle one.
#pragma once

#include "lamella/base/api.h"
#include "lamella/device/tensor_view.h"
#include "lamella/kernels/scratch.h"

namespace lamella::kernels {

enum class SortOrder : uint8_t { Ascending, Descending };

// NaN counts as the largest element; of equal elements the one at the lower position comes first,
// in both orders. So every result is unique, whatever the number of threads. Views may be strided;
// `values` has x's dtype, `positions` is int64.

// Every element along `axis`, and where it stood.
LAMELLA_API void sort(const TensorView& x, int axis, SortOrder order, const TensorView& values,
                      const TensorView& positions, Scratch scratch = {});
LAMELLA_API int64_t sort_scratch_bytes(const TensorView& x, int axis);

// The first k of them, k the size of `values` along `axis`, at most x's.
LAMELLA_API void top_k(const TensorView& x, int axis, SortOrder order, const TensorView& values,
                       const TensorView& positions, Scratch scratch = {});
LAMELLA_API int64_t top_k_scratch_bytes(const TensorView& x, int axis, int64_t k);

// The lower of the two middle ones, or the first NaN if there is any; values and positions have
// size 1 along `axis`, x at least 1.
LAMELLA_API void median(const TensorView& x, int axis, const TensorView& values,
                        const TensorView& positions, Scratch scratch = {});
LAMELLA_API int64_t median_scratch_bytes(const TensorView& x, int axis);

}  // namespace lamella::kernels
