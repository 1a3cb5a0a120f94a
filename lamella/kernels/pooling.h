// Maximum and average pooling over one to three spatial axes, and their gradients.
#pragma once

#include <optional>

#include "lamella/base/api.h"
#include "lamella/kernels/convolution.h"
#include "lamella/kernels/scratch.h"

namespace lamella::kernels {

struct PoolingOptions {
  Spatial kernel;          // >= 1
  Spatial stride;          // >= 1
  Spatial padding_before;  // >= 0
  Spatial padding_after;   // >= 0
  Spatial dilation;        // >= 1; average pooling takes 1 only
};

// Whether the last window may reach past the padded input.
enum class Rounding : uint8_t {
  Floor,  // no
  Ceil,   // yes, if it begins inside the input or the padding before it
};

// The size of one spatial axis of the result:
// round((size + before + after - dilation * (kernel - 1) - 1) / stride) + 1; with Ceil one less if
// the last window would begin at or past size + before. At least 0.
LAMELLA_API int64_t pooled_size(int64_t size, int64_t kernel, int64_t stride, int64_t before,
                                int64_t after, int64_t dilation, Rounding rounding);

// What an average divides by.
struct AverageOptions {
  // Whether padding counts in the number of elements. Elements past the padding, which Ceil windows
  // can reach, never count.
  bool count_include_pad = true;
  // Divides by this instead of the number of elements; not 0.
  std::optional<int64_t> divisor_override;
};

// For all functions:
// Shapes: x [N, C, spatial...], y [N, C, spatial...]; y's sizes say which rounding was used: each
// must be the Floor or the Ceil one of pooled_size. A window of a maximum that holds no element
// gives minus infinity; of an average 0.
// Layouts: any strides; channels-last x and y are the fast ones, then row-major.
// Dtypes: the floats; averages and gradients add up in float32 (float64 for float64) in the order
// of the window, gradients in the order of y, and round once.
// Throws Value ("[max_pool2d] ...", "[avg_pool2d] ...", 1d, 3d) and Type.
// Bits: for any thread count the same.

// The largest element of each window; NaN if any element is.
LAMELLA_API void max_pool(const TensorView& x, const TensorView& y, const PoolingOptions& options);

// As max_pool; also the place of each maximum (the first one in the window's row-major order, or
// the first NaN) as its index in x's row-major spatial extent. indices: int32 or int64, shape of y;
// -1 for a window without elements.
LAMELLA_API void max_pool_with_indices(const TensorView& x, const TensorView& y,
                                       const TensorView& indices, const PoolingOptions& options);

// The cotangent of x: each of dy's elements goes to the first maximum of its window, which is
// searched for again in x. Overwrites dx.
LAMELLA_API void max_pool_backward(const TensorView& x, const TensorView& dy, const TensorView& dx,
                                   const PoolingOptions& options, Scratch scratch = {});

LAMELLA_API void average_pool(const TensorView& x, const TensorView& y,
                              const PoolingOptions& options, const AverageOptions& average);

// The cotangent of x. Overwrites dx.
LAMELLA_API void average_pool_backward(const TensorView& dy, const TensorView& dx,
                                       const PoolingOptions& options, const AverageOptions& average,
                                       Scratch scratch = {});

// Bytes of working memory of either gradient; reads only dtype and sizes.
LAMELLA_API int64_t pooling_backward_scratch_bytes(const TensorView& dx);

}  // namespace lamella::kernels
