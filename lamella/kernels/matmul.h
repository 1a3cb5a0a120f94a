// Matrix products.
#pragma once

#include "lamella/base/api.h"
#include "lamella/device/tensor_view.h"
#include "lamella/kernels/scratch.h"

namespace lamella::kernels {

// out[..., m, n] = sum over k of a[..., m, k] * b[..., k, n], + bias[n] if `bias` is given.
//
// Shapes: a and b have rank >= 2; leading (batch) axes broadcast as in NumPy, aligned at the last
// one, and out has exactly the broadcast batch axes. K = 0 gives 0 (or bias). bias is rank 1 of
// size N.
// Strides: any for a, b and bias, with 0 for repeated elements (a transposed matrix is a view, no
// copy is made of it); out may be any dense or strided
// view whose elements do not overlap. out must not overlap an operand.
// Dtypes: all equal; float32, float16, bfloat16 (accumulated in float32, rounded once), float64,
// and the integers (wrapping) and bool (and, or).
// Throws Value for shapes that do not fit, Type for dtypes.
// Bits: each element is one sum in the order of k, whatever the strides, the other sizes and the
// number of threads.
LAMELLA_API void matmul(const TensorView& a, const TensorView& b, const TensorView* bias,
                        const TensorView& out, Scratch scratch = {});

// Bytes of working memory of the call; reads only dtypes, sizes and strides.
LAMELLA_API int64_t matmul_scratch_bytes(const TensorView& a, const TensorView& b,
                                         const TensorView* bias, const TensorView& out);

}  // namespace lamella::kernels
