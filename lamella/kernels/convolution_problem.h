// A convolution brought to the one form its kernels take.
#pragma once

#include "lamella/kernels/convolution.h"

namespace lamella::kernels {

struct ConvolutionProblem {
  int64_t batch = 0;
  int64_t in_channels = 0, out_channels = 0, groups = 1;
  Spatial in, kernel, out;  // sizes
  Spatial stride, before, after, dilation;

  uint32_t spatial_rank() const { return in.size(); }
};

// Through oneDNN, for dtypes library_takes. The views' shapes fit the problem; no size is 0. x and
// y are channels-last or row-major.
void convolution_onednn(const ConvolutionProblem& problem, const TensorView& x,
                        const TensorView& weight, const TensorView* bias, const TensorView& y,
                        Scratch scratch);
void convolution_backward_data_onednn(const ConvolutionProblem& problem, const TensorView& dy,
                                      const TensorView& weight, const TensorView& dx,
                                      Scratch scratch);
void convolution_backward_weights_onednn(const ConvolutionProblem& problem, const TensorView& x,
                                         const TensorView& dy, const TensorView& dweight,
                                         Scratch scratch);
int64_t convolution_onednn_scratch_bytes(const ConvolutionProblem& problem, const TensorView& x,
                                         const TensorView& weight, const TensorView* bias,
                                         const TensorView& y);
int64_t convolution_backward_data_onednn_scratch_bytes(const ConvolutionProblem& problem,
                                                       const TensorView& dy,
                                                       const TensorView& weight,
                                                       const TensorView& dx);
int64_t convolution_backward_weights_onednn_scratch_bytes(const ConvolutionProblem& problem,
                                                          const TensorView& x, const TensorView& dy,
                                                          const TensorView& dweight);

// Any float dtype, any strides, any sizes; direct sums in a fixed order.
void convolution_native(const ConvolutionProblem& problem, const TensorView& x,
                        const TensorView& weight, const TensorView* bias, const TensorView& y);
void convolution_backward_data_native(const ConvolutionProblem& problem, const TensorView& dy,
                                      const TensorView& weight, const TensorView& dx);
void convolution_backward_weights_native(const ConvolutionProblem& problem, const TensorView& x,
                                         const TensorView& dy, const TensorView& dweight);

// The weight gradient of depthwise convolutions over two axes, for kernels 5 and 7 wide and dilated
// ones 3 wide;
// float32 and bfloat16 (summed in float32), x and dy channels-last. dweight may have any strides.
// The same bits for any thread count.
bool takes_depthwise_weights(const ConvolutionProblem& problem, const TensorView& x,
                             const TensorView& dy);
void convolution_depthwise_weights(const ConvolutionProblem& problem, const TensorView& x,
                                   const TensorView& dy, const TensorView& dweight,
                                   Scratch scratch);
int64_t convolution_depthwise_weights_scratch_bytes(const ConvolutionProblem& problem);

// The data gradient over two axes of few input channels and several images; float32, dy and dx
// channels-last. weight may have any strides. The same bits for any thread count.
bool takes_overlapping_data(const ConvolutionProblem& problem, const TensorView& dy,
                            const TensorView& dx);
void convolution_backward_data_overlapping(const ConvolutionProblem& problem, const TensorView& dy,
                                           const TensorView& weight, const TensorView& dx,
                                           Scratch scratch);
int64_t convolution_backward_data_overlapping_scratch_bytes(const ConvolutionProblem& problem,
                                                            const TensorView& dy,
                                                            const TensorView& dx);

// dbias[k] = the sum of dy[n, k, ...]: positions in row-major order in blocks of 64, block sums
// pairwise; 16-bit floats in float32, rounded once.
void convolution_bias_gradient(const TensorView& dy, const TensorView& dbias, Scratch scratch);
int64_t convolution_bias_gradient_scratch_bytes(const TensorView& dy);

}  // namespace lamella::kernels
