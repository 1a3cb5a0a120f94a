// Direct convolution for float64 and for shapes without elements: each result is one sum in a fixed
// order.
#include "lamella/base/parallel.h"
#include "lamella/kernels/convolution_problem.h"
#include "lamella/kernels/element.h"

namespace lamella::kernels {

namespace {

// Everything with three spatial axes; absent ones have size 1, stride 0.
struct Geometry {
  struct Axis {
    int64_t in = 1, kernel = 1, out = 1, stride = 1, before = 0, dilation = 1;
    // The input element that tap `tap` of window `window` reads; may lie in the padding.
    int64_t read(int64_t window, int64_t tap) const {
      return window * stride - before + tap * dilation;
    }
  };
  Axis axes[3];
  int64_t groups, group_in, group_out;

  explicit Geometry(const ConvolutionProblem& problem)
      : groups(problem.groups),
        group_in(problem.in_channels / problem.groups),
        group_out(problem.out_channels / problem.groups) {
    const uint32_t missing = 3 - problem.spatial_rank();
    for (uint32_t i = 0; i < problem.spatial_rank(); ++i) {
      axes[missing + i] = {.in = problem.in[i],
                           .kernel = problem.kernel[i],
                           .out = problem.out[i],
                           .stride = problem.stride[i],
                           .before = problem.before[i],
                           .dilation = problem.dilation[i]};
    }
  }
};

// A view as [outer, inner, three spatial axes].
template <typename T>
struct Array5 {
  T* data;
  int64_t strides[5];

  explicit Array5(const TensorView& view) : data(view.as<T>()) {
    const uint32_t missing = 5 - view.strides.size();
    strides[0] = view.strides[0];
    strides[1] = view.strides[1];
    for (uint32_t i = 2; i < 5; ++i) strides[i] = i < 2 + missing ? 0 : view.strides[i - missing];
  }
  T& operator()(int64_t a, int64_t b, int64_t d, int64_t h, int64_t w) const {
    return data[a * strides[0] + b * strides[1] + d * strides[2] + h * strides[3] + w * strides[4]];
  }
};

// Calls body(d, h, w) for the whole extents.
template <typename Body>
void for_each_place(int64_t depth, int64_t height, int64_t width, Body&& body) {
  for (int64_t d = 0; d < depth; ++d) {
    for (int64_t h = 0; h < height; ++h) {
      for (int64_t w = 0; w < width; ++w) body(d, h, w);
    }
  }
}

template <typename T>
void forward(const ConvolutionProblem& problem, const TensorView& x_view,
             const TensorView& weight_view, const TensorView* bias, const TensorView& y_view) {
  const Geometry geometry(problem);
  const auto& [depth, height, width] = geometry.axes;
  const Array5<T> x(x_view), weight(weight_view), y(y_view);
  parallel_for(problem.batch * problem.out_channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t n = item / problem.out_channels, k = item % problem.out_channels;
      const int64_t first_channel = k / geometry.group_out * geometry.group_in;
      for_each_place(depth.out, height.out, width.out, [&](int64_t d, int64_t h, int64_t w) {
        Accumulator<T> sum = 0;
        for (int64_t c = 0; c < geometry.group_in; ++c) {
          for_each_place(
              depth.kernel, height.kernel, width.kernel, [&](int64_t i, int64_t j, int64_t l) {
                const int64_t at_d = depth.read(d, i), at_h = height.read(h, j),
                              at_w = width.read(w, l);
                if (at_d < 0 || at_d >= depth.in || at_h < 0 || at_h >= height.in || at_w < 0 ||
                    at_w >= width.in) {
                  return;
                }
                sum += static_cast<Accumulator<T>>(x(n, first_channel + c, at_d, at_h, at_w)) *
                       static_cast<Accumulator<T>>(weight(k, c, i, j, l));
              });
        }
        if (bias != nullptr) {
          sum += static_cast<Accumulator<T>>(bias->as<T>()[k * bias->strides[0]]);
        }
        y(n, k, d, h, w) = T(sum);
      });
    }
  });
}

// The window whose tap `tap` reads element `at`, or -1.
int64_t window_of(const Geometry::Axis& axis, int64_t at, int64_t tap) {
  const int64_t from_start = at + axis.before - tap * axis.dilation;
  if (from_start < 0 || from_start % axis.stride != 0) return -1;
  const int64_t window = from_start / axis.stride;
  return window < axis.out ? window : -1;
}

template <typename T>
void backward_data(const ConvolutionProblem& problem, const TensorView& dy_view,
                   const TensorView& weight_view, const TensorView& dx_view) {
  const Geometry geometry(problem);
  const auto& [depth, height, width] = geometry.axes;
  const Array5<T> dy(dy_view), weight(weight_view), dx(dx_view);
  parallel_for(problem.batch * problem.in_channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t n = item / problem.in_channels, channel = item % problem.in_channels;
      const int64_t group = channel / geometry.group_in, c = channel % geometry.group_in;
      for_each_place(depth.in, height.in, width.in, [&](int64_t d, int64_t h, int64_t w) {
        Accumulator<T> sum = 0;
        for (int64_t k = group * geometry.group_out; k < (group + 1) * geometry.group_out; ++k) {
          for_each_place(
              depth.kernel, height.kernel, width.kernel, [&](int64_t i, int64_t j, int64_t l) {
                const int64_t at_d = window_of(depth, d, i), at_h = window_of(height, h, j),
                              at_w = window_of(width, w, l);
                if (at_d < 0 || at_h < 0 || at_w < 0) return;
                sum += static_cast<Accumulator<T>>(dy(n, k, at_d, at_h, at_w)) *
                       static_cast<Accumulator<T>>(weight(k, c, i, j, l));
              });
        }
        dx(n, channel, d, h, w) = T(sum);
      });
    }
  });
}

template <typename T>
void backward_weights(const ConvolutionProblem& problem, const TensorView& x_view,
                      const TensorView& dy_view, const TensorView& dweight_view) {
  const Geometry geometry(problem);
  const auto& [depth, height, width] = geometry.axes;
  const Array5<T> x(x_view), dy(dy_view), dweight(dweight_view);
  parallel_for(problem.out_channels * geometry.group_in, 1, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t k = item / geometry.group_in, c = item % geometry.group_in;
      const int64_t channel = k / geometry.group_out * geometry.group_in + c;
      for_each_place(
          depth.kernel, height.kernel, width.kernel, [&](int64_t i, int64_t j, int64_t l) {
            Accumulator<T> sum = 0;
            for (int64_t n = 0; n < problem.batch; ++n) {
              for_each_place(depth.out, height.out, width.out,
                             [&](int64_t d, int64_t h, int64_t w) {
                               const int64_t at_d = depth.read(d, i), at_h = height.read(h, j),
                                             at_w = width.read(w, l);
                               if (at_d < 0 || at_d >= depth.in || at_h < 0 || at_h >= height.in ||
                                   at_w < 0 || at_w >= width.in) {
                                 return;
                               }
                               sum += static_cast<Accumulator<T>>(x(n, channel, at_d, at_h, at_w)) *
                                      static_cast<Accumulator<T>>(dy(n, k, d, h, w));
                             });
            }
            dweight(k, c, i, j, l) = T(sum);
          });
    }
  });
}

}  // namespace

void convolution_native(const ConvolutionProblem& problem, const TensorView& x,
                        const TensorView& weight, const TensorView* bias, const TensorView& y) {
  with_float("convolution", x.dtype,
             [&]<typename T>(T*) { forward<T>(problem, x, weight, bias, y); });
}

void convolution_backward_data_native(const ConvolutionProblem& problem, const TensorView& dy,
                                      const TensorView& weight, const TensorView& dx) {
  with_float("convolution", dy.dtype,
             [&]<typename T>(T*) { backward_data<T>(problem, dy, weight, dx); });
}

void convolution_backward_weights_native(const ConvolutionProblem& problem, const TensorView& x,
                                         const TensorView& dy, const TensorView& dweight) {
  with_float("convolution", x.dtype,
             [&]<typename T>(T*) { backward_weights<T>(problem, x, dy, dweight); });
}

}  // namespace lamella::kernels
