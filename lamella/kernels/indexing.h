// Reading and writing elements at positions that are data: gather and scatter.
#pragma once

#include "lamella/base/api.h"
#include "lamella/device/tensor_view.h"
#include "lamella/kernels/scratch.h"

namespace lamella::kernels {

// What a negative index means.
enum class NegativeIndex : uint8_t {
  Error,    // out of range
  FromEnd,  // counted from the end: -1 is the last; below -size out of range
};

enum class ScatterMode : uint8_t {
  Set,  // of several updates to one place the last in row-major order of the updates stays
  Add,  // all are added in that order; float16 and bfloat16 in float32, rounded once
  Multiply,
  Minimum,  // NaN if any is NaN
  Maximum,
};

// For all functions:
// Indices are int32 or int64. Data of any dtype, any strides; results must not overlap operands.
// `operation` begins the errors. All indices are checked before anything is written: throws Index
// "[gather] index -10000 is out of range for axis 0 of size 7". Throws Value for shapes, Type for
// dtypes (bool takes Set only; x, updates and out are of one dtype).
// Bits: for any thread count the same.
struct IndexingOptions {
  int axis = 0;  // in [0, rank)
  NegativeIndex negative = NegativeIndex::Error;
  const char* operation = "gather";
};

// out[o..., j..., i...] = x[o..., indices[j...], i...]: out's shape is x's with the axis replaced
// by the shape of indices (of any rank). An embedding is a gather over axis 0 of its table.
LAMELLA_API void gather(const TensorView& x, const TensorView& indices, const TensorView& out,
                        const IndexingOptions& options);

// out[..., j, ...] = x[..., indices[..., j, ...], ...]: indices and out have one shape, of x's
// rank, no larger than x on the other axes.
LAMELLA_API void gather_elements(const TensorView& x, const TensorView& indices,
                                 const TensorView& out, const IndexingOptions& options);

// out[o..., indices[j...], i...] is combined with updates[o..., j..., i...]: the reverse of gather,
// and with Add its gradient (on an out of zeros). Elements of out that no index names stay.
LAMELLA_API void scatter(ScatterMode mode, const TensorView& indices, const TensorView& updates,
                         const TensorView& out, const IndexingOptions& options,
                         Scratch scratch = {});

// The reverse of gather_elements: out[..., indices[..., j, ...], ...] is combined with
// updates[..., j, ...]. indices is no larger than updates on any axis, nor than out on the others.
LAMELLA_API void scatter_elements(ScatterMode mode, const TensorView& indices,
                                  const TensorView& updates, const TensorView& out,
                                  const IndexingOptions& options, Scratch scratch = {});

// Bytes of working memory of either scatter; reads only dtypes and sizes.
LAMELLA_API int64_t scatter_scratch_bytes(ScatterMode mode, const TensorView& out);

}  // namespace lamella::kernels
