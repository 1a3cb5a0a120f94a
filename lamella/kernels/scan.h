// Running results along an axis: each element combined with those before it. One element after the
// other, whatever the number of threads; sums alone go block by block (see cumsum). All take
// strided views of equal sizes. 16-bit floats are computed in float32, integers wrap.
#pragma once

#include "lamella/base/api.h"
#include "lamella/device/tensor_view.h"
#include "lamella/kernels/scratch.h"

namespace lamella::kernels {

enum class ScanDirection : uint8_t { Forward, Backward };
// Whether the element itself is part of its result.
enum class ScanExtent : uint8_t { Inclusive, Exclusive };

struct ScanOptions {
  int axis = 0;
  ScanDirection direction = ScanDirection::Forward;
  ScanExtent extent = ScanExtent::Inclusive;
};

// Sums. The order: blocks of kScanBlock elements from where the scan begins; in a block one element
// after the other; the sums of whole blocks added one after the other; the two added last. `out`
// has x's dtype if that is a float, else int64.
inline constexpr int64_t kScanBlock = 4096;
LAMELLA_API void cumsum(const TensorView& x, const ScanOptions& options, const TensorView& out,
                        Scratch scratch = {});
LAMELLA_API int64_t cumsum_scratch_bytes(const TensorView& x, const ScanOptions& options,
                                         const TensorView& out);

// Products, in the same dtypes.
LAMELLA_API void cumprod(const TensorView& x, const ScanOptions& options, const TensorView& out);

// The largest (smallest) element so far and its position (int64), the last of equal ones; from a
// NaN on NaN, at the position of the last one. Options' extent must be Inclusive.
enum class Extremum : uint8_t { Maximum, Minimum };
LAMELLA_API void running_extremum(Extremum extremum, const TensorView& x,
                                  const ScanOptions& options, const TensorView& values,
                                  const TensorView& positions);

// log(sum(exp(x))) so far, for floats, computed in float64. Options' extent must be Inclusive.
LAMELLA_API void logcumsumexp(const TensorView& x, const ScanOptions& options,
                              const TensorView& out);

// s = addend + factor * (s of the element before), the first s its addend; for floats.
LAMELLA_API void linear_recurrence(const TensorView& factor, const TensorView& addend,
                                   const ScanOptions& options, const TensorView& out);

}  // namespace lamella::kernels
