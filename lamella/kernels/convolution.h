// Convolution over one to three spatial axes (cross-correlation, as in every framework), and its
// gradients.
#pragma once

#include "lamella/base/api.h"
#include "lamella/base/inline_vector.h"
#include "lamella/device/tensor_view.h"
#include "lamella/kernels/scratch.h"

namespace lamella::kernels {

// One number a spatial axis, outermost first.
using Spatial = InlineVector<int64_t, 3>;

struct ConvolutionOptions {
  Spatial stride;          // >= 1
  Spatial padding_before;  // zeros before the first element, >= 0
  Spatial padding_after;   // zeros behind the last element, >= 0
  Spatial dilation;        // distance between the elements a window reads, >= 1
  int64_t groups = 1;
};

// Stride and dilation 1, no padding.
inline ConvolutionOptions convolution_defaults(int spatial_rank) {
  const auto all = [&](int64_t value) {
    return Spatial(static_cast<uint32_t>(spatial_rank), value);
  };
  return {.stride = all(1),
          .padding_before = all(0),
          .padding_after = all(0),
          .dilation = all(1),
          .groups = 1};
}

// The size of one spatial axis of y:
// (size + before + after - dilation * (kernel - 1) - 1) / stride + 1, at least 0.
LAMELLA_API int64_t convolved_size(int64_t size, int64_t kernel, int64_t stride, int64_t before,
                                   int64_t after, int64_t dilation);

// For all functions:
// Shapes: x [N, C, spatial...], y [N, K, spatial...] with convolved_size, weight
// [K, C / groups, kernel...], bias [K]; C and K divide by groups. Any size but a kernel's may be 0.
// Layouts: x and y (and their cotangents) may be row-major or channels-last, each told by its
// strides; channels-last is the fast one; other strides are copied first. weight may have any
// strides (row-major is the one that is expected); nothing is cached between calls.
// Dtypes: all equal; float32; float16 and bfloat16 (computed in float32, rounded once); float64.
// Throws Value ("[conv2d] ...", conv1d, conv3d) for shapes and options, Type for dtypes.
// Bits: the same for the same signature and thread count; float64 for any thread count.

// y = convolution of x with weight, + bias if given. Overwrites y.
LAMELLA_API void convolution(const TensorView& x, const TensorView& weight, const TensorView* bias,
                             const TensorView& y, const ConvolutionOptions& options,
                             Scratch scratch = {});

// The cotangent of x from that of y. Overwrites dx. (It is also the transposed convolution of dy.)
LAMELLA_API void convolution_backward_data(const TensorView& dy, const TensorView& weight,
                                           const TensorView& dx, const ConvolutionOptions& options,
                                           Scratch scratch = {});

// The cotangent of weight, and of bias if `dbias` is given: the sum of dy over all axes but the
// channels. Overwrites both.
LAMELLA_API void convolution_backward_weights(const TensorView& x, const TensorView& dy,
                                              const TensorView& dweight, const TensorView* dbias,
                                              const ConvolutionOptions& options,
                                              Scratch scratch = {});

// Bytes of working memory of the calls; read only dtypes, sizes and strides.
LAMELLA_API int64_t convolution_scratch_bytes(const TensorView& x, const TensorView& weight,
                                              const TensorView* bias, const TensorView& y,
                                              const ConvolutionOptions& options);
LAMELLA_API int64_t convolution_backward_data_scratch_bytes(const TensorView& dy,
                                                            const TensorView& weight,
                                                            const TensorView& dx,
                                                            const ConvolutionOptions& options);
LAMELLA_API int64_t convolution_backward_weights_scratch_bytes(const TensorView& x,
                                                               const TensorView& dy,
                                                               const TensorView& dweight,
                                                               const TensorView* dbias,
                                                               const ConvolutionOptions& options);

}  // namespace lamella::kernels
