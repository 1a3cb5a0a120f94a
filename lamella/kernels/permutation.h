// Random permutations.
#pragma once

#include <cstdint>

#include "lamella/base/api.h"
#include "lamella/device/tensor_view.h"

namespace lamella::kernels {

// Fills `out` (rank 1, int32 or int64, n elements) with a random order of 0 ... n-1: the numbers
// sorted by the 64-bit words key(i) = word 0 | word 1 << 32 of Philox philox_at(seed, offset, i),
// equal words by i. The same on every machine and for any thread count. Throws Value if int32
// cannot hold n - 1, or out is not of rank 1; Type for other dtypes.
LAMELLA_API void permutation(uint64_t seed, uint64_t offset, const TensorView& out);

}  // namespace lamella::kernels
