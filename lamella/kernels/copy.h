// Moving elements without computing: strided copies and transpositions, filling, joining, cutting
// and padding.
#pragma once

#include <span>

#include "lamella/base/api.h"
#include "lamella/device/tensor_view.h"

namespace lamella::kernels {

// For all functions: any dtype, any strides (0 in what is read repeats an element). What is written
// must not overlap what is read, nor itself. Throws Value for shapes that do not fit, Type for
// dtypes that differ.

// to = from, of equal sizes.
LAMELLA_API void copy(const TensorView& from, const TensorView& to);

// Every element of `out` becomes the one `element` points to (size_of(out.dtype) bytes).
LAMELLA_API void fill(const TensorView& out, const void* element);
// The same with all bytes 0: zero in every dtype.
LAMELLA_API void fill_zero(const TensorView& out);

// out = the parts one behind the other along `axis`, in [0, rank).
LAMELLA_API void concat(std::span<const TensorView> parts, int axis, const TensorView& out);

// The reverse of concat.
LAMELLA_API void split(const TensorView& x, int axis, std::span<const TensorView> parts);

enum class PadMode : uint8_t {
  Constant,
  Reflect,    // mirrored at the edge element, which is not repeated: c b | a b c | b a
  Replicate,  // the edge element repeated: a a | a b c | c c
  Circular,   // from the other end: b c | a b c | a b
};

// out = x with before[i] elements added before and after[i] behind axis i. Negative numbers cut
// elements off (Constant only). Reflect needs amounts below the axis's size, Circular at most the
// size, Replicate a size that is not 0 where it adds. `element` (Constant) as in fill; null is
// zero.
LAMELLA_API void pad(const TensorView& x, const Axes& before, const Axes& after, PadMode mode,
                     const void* element, const TensorView& out);

// The cotangent of pad's x: elements of dy added up over the places x's elements went to, in
// row-major order of dy, float16 and bfloat16 in float32. Floats only. Overwrites dx.
LAMELLA_API void pad_backward(const TensorView& dy, const Axes& before, const Axes& after,
                              PadMode mode, const TensorView& dx);

}  // namespace lamella::kernels
