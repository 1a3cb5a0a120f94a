// The windows of a pooling, as rows of lanes that are computed side by side.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lamella/kernels/pooling.h"

namespace lamella::kernels {

// Lanes are channels where they are adjacent in memory, else neighbouring windows along the last
// spatial axis. Rows of different groups read and write different elements of x, so groups may run
// in parallel in a gradient too.
class PoolingWindows {
 public:
  static constexpr int64_t kMaxLanes = 256;

  // x and y stand for themselves or their cotangents; their shapes fit the options. The companions
  // are further tensors of their shapes, in any strides: dx beside x, indices beside y.
  PoolingWindows(const TensorView& x, const TensorView& y, const PoolingOptions& options)
      : PoolingWindows(x, y, options, x, y) {}
  PoolingWindows(const TensorView& x, const TensorView& y, const PoolingOptions& options,
                 const TensorView& x_companion, const TensorView& y_companion);

  // One number for each of the two tensors.
  struct Pair {
    int64_t first = 0, companion = 0;
  };

  struct Row {
    int64_t lanes;
    Pair x_offset, y_offset;  // of lane 0; x's without the place in the window
    int64_t start[3];         // where lane 0's window begins; may lie in the padding
  };
  int64_t groups() const { return groups_; }
  int64_t rows_per_group() const { return rows_per_group_; }
  // Rows of a group are in the order of y.
  Row row(int64_t group, int64_t number) const;

  // Elements from a lane to the next.
  Pair x_step() const { return x_step_; }
  Pair y_step() const { return y_step_; }

  // One tap of the window over the lanes it lies inside of x for.
  struct Tap {
    int64_t number;      // in the window's row-major order
    int64_t begin, end;  // lanes
    Pair x_offset;       // of lane `begin`
    int64_t place;       // of lane `begin`: index in x's row-major spatial extent
    int64_t place_step;  // from a lane to the next
  };
  // Calls body(tap) in the window's order.
  template <typename Body>
  void for_each_tap(const Row& row, Body&& body) const {
    for_each_tap_along<1>(row, body);
  }
  // The same with the last axis's taps from the last to the first: then one element of x meets the
  // lanes of a row in the order of y.
  template <typename Body>
  void for_each_tap_reversed(const Row& row, Body&& body) const {
    for_each_tap_along<-1>(row, body);
  }

  // The elements of x's companion that a group owns, as layers along the first spatial axis that is
  // longer than 1.
  struct Layers {
    int axis;
    int64_t count, offset, stride;  // of the layers
    Axes sizes, strides;            // within a layer
  };
  Layers companion_layers(int64_t group) const;

  struct Axis {
    int64_t in = 1, out = 1, kernel = 1, stride = 1, before = 0, after = 0, dilation = 1;
    Pair x_stride, y_stride;
  };
  const Axis& axis(int i) const { return axes_[i]; }
  bool lanes_are_channels() const { return lanes_are_channels_; }

 private:
  template <int Direction, typename Body>
  void for_each_tap_along(const Row& row, Body& body) const {
    const Axis &depth = axes_[0], &height = axes_[1], &width = axes_[2];
    for (int64_t i = 0; i < depth.kernel; ++i) {
      const int64_t d = row.start[0] + i * depth.dilation;
      if (d < 0 || d >= depth.in) continue;
      for (int64_t j = 0; j < height.kernel; ++j) {
        const int64_t h = row.start[1] + j * height.dilation;
        if (h < 0 || h >= height.in) continue;
        for (int64_t step = 0; step < width.kernel; ++step) {
          const int64_t l = Direction > 0 ? step : width.kernel - 1 - step;
          const int64_t w = row.start[2] + l * width.dilation;
          Tap tap{.number = (i * height.kernel + j) * width.kernel + l,
                  .begin = 0,
                  .end = row.lanes,
                  .place_step = 0};
          if (lanes_are_channels_) {
            if (w < 0 || w >= width.in) continue;
          } else {
            tap.place_step = width.stride;
            if (w < 0) tap.begin = (-w + width.stride - 1) / width.stride;
            tap.end =
                w >= width.in ? 0 : std::min(row.lanes, (width.in - 1 - w) / width.stride + 1);
            if (tap.begin >= tap.end) continue;
          }
          const int64_t first = w + tap.begin * tap.place_step;
          tap.place = (d * height.in + h) * width.in + first;
          tap.x_offset = {row.x_offset.first + d * depth.x_stride.first +
                              h * height.x_stride.first + first * width.x_stride.first,
                          row.x_offset.companion + d * depth.x_stride.companion +
                              h * height.x_stride.companion + first * width.x_stride.companion};
          body(static_cast<const Tap&>(tap));
        }
      }
    }
  }

  bool lanes_are_channels_;
  Axis axes_[3];
  int64_t channels_;
  Pair x_batch_stride_, y_batch_stride_, x_channel_stride_, y_channel_stride_;
  Pair x_step_, y_step_;
  int64_t chunk_;   // lanes a row
  int64_t chunks_;  // of channels, or of the last spatial axis
  int64_t groups_, rows_per_group_;
};

}  // namespace lamella::kernels
