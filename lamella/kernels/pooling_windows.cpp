// How windows are divided into groups, rows and lanes.
#include "lamella/kernels/pooling_windows.h"

#include "lamella/base/parallel.h"

namespace lamella::kernels {

namespace {

using Pair = PoolingWindows::Pair;

Pair scaled(Pair pair, int64_t factor) {
  return {pair.first * factor, pair.companion * factor};
}
Pair sum(Pair a, Pair b) {
  return {a.first + b.first, a.companion + b.companion};
}

}  // namespace

PoolingWindows::PoolingWindows(const TensorView& x, const TensorView& y,
                               const PoolingOptions& options, const TensorView& x_companion,
                               const TensorView& y_companion)
    : channels_(x.sizes[1]),
      x_batch_stride_{x.strides[0], x_companion.strides[0]},
      y_batch_stride_{y.strides[0], y_companion.strides[0]},
      x_channel_stride_{x.strides[1], x_companion.strides[1]},
      y_channel_stride_{y.strides[1], y_companion.strides[1]} {
  const uint32_t rank = options.kernel.size();
  for (uint32_t i = 0; i < rank; ++i) {
    axes_[3 - rank + i] = {.in = x.sizes[i + 2],
                           .out = y.sizes[i + 2],
                           .kernel = options.kernel[i],
                           .stride = options.stride[i],
                           .before = options.padding_before[i],
                           .after = options.padding_after[i],
                           .dilation = options.dilation[i],
                           .x_stride = {x.strides[i + 2], x_companion.strides[i + 2]},
                           .y_stride = {y.strides[i + 2], y_companion.strides[i + 2]}};
  }
  const Axis& width = axes_[2];
  lanes_are_channels_ = x_channel_stride_.first == 1 && y_channel_stride_.first == 1 &&
                        (channels_ > 1 || width.x_stride.first != 1);
  const int64_t batch = x.sizes[0], places = axes_[0].out * axes_[1].out;
  if (lanes_are_channels_) {
    x_step_ = x_channel_stride_;
    y_step_ = y_channel_stride_;
    // Enough groups for the threads, wide enough for vectors; results do not depend on it.
    const int64_t wanted = (4 * thread_count() + batch - 1) / std::max<int64_t>(batch, 1);
    chunk_ = std::clamp<int64_t>((channels_ / wanted + 15) / 16 * 16, 16, kMaxLanes);
    chunks_ = (channels_ + chunk_ - 1) / chunk_;
    groups_ = batch * chunks_;
    rows_per_group_ = places * width.out;
  } else {
    x_step_ = scaled(width.x_stride, width.stride);
    y_step_ = width.y_stride;
    chunk_ = kMaxLanes;
    chunks_ = (width.out + chunk_ - 1) / chunk_;
    groups_ = batch * channels_;
    rows_per_group_ = places * chunks_;
  }
}

PoolingWindows::Row PoolingWindows::row(int64_t group, int64_t number) const {
  const int64_t per_group = lanes_are_channels_ ? chunks_ : channels_;
  const int64_t n = group / per_group, in_group = group % per_group;
  const int64_t per_place = lanes_are_channels_ ? axes_[2].out : chunks_;
  const int64_t d = number / per_place / axes_[1].out, h = number / per_place % axes_[1].out;
  const int64_t channel = lanes_are_channels_ ? in_group * chunk_ : in_group;
  const int64_t w = lanes_are_channels_ ? number % per_place : number % per_place * chunk_;
  const int64_t extent = lanes_are_channels_ ? channels_ - channel : axes_[2].out - w;
  Row row{.lanes = std::min(chunk_, extent),
          .x_offset = sum(scaled(x_batch_stride_, n), scaled(x_channel_stride_, channel)),
          .y_offset = sum(scaled(y_batch_stride_, n), scaled(y_channel_stride_, channel)),
          .start = {d, h, w}};
  for (int i = 0; i < 3; ++i) {
    row.y_offset = sum(row.y_offset, scaled(axes_[i].y_stride, row.start[i]));
    row.start[i] = row.start[i] * axes_[i].stride - axes_[i].before;
  }
  return row;
}

PoolingWindows::Layers PoolingWindows::companion_layers(int64_t group) const {
  const int64_t per_group = lanes_are_channels_ ? chunks_ : channels_;
  const int64_t n = group / per_group;
  const int64_t channel = lanes_are_channels_ ? group % per_group * chunk_ : group % per_group;
  Layers layers{.axis = 2,
                .count = 1,
                .offset = n * x_batch_stride_.companion + channel * x_channel_stride_.companion,
                .stride = 0};
  for (int i = 2; i >= 0; --i) {
    if (axes_[i].in != 1) layers.axis = i;
  }
  layers.count = axes_[layers.axis].in;
  layers.stride = axes_[layers.axis].x_stride.companion;
  for (int i = layers.axis + 1; i < 3; ++i) {
    layers.sizes.push_back(axes_[i].in);
    layers.strides.push_back(axes_[i].x_stride.companion);
  }
  if (lanes_are_channels_) {
    layers.sizes.push_back(std::min(chunk_, channels_ - channel));
    layers.strides.push_back(x_channel_stride_.companion);
  }
  return layers;
}

}  // namespace lamella::kernels
