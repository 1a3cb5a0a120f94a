// Pooling after its arguments have been checked.
#pragma once

#include <array>
#include <optional>

#include "lamella/base/parallel.h"
#include "lamella/kernels/element.h"
#include "lamella/kernels/pooling_windows.h"
#include "lamella/kernels/strided_loop.h"

namespace lamella::kernels {

void max_pool_forward(const TensorView& x, const TensorView& y, const TensorView* indices,
                      const PoolingOptions& options);
// dx is float32 where x is a 16-bit float.
void max_pool_gradient(const TensorView& x, const TensorView& dy, const TensorView& dx,
                       const PoolingOptions& options);
// The same where the form is the common one they are made for (false: it is not).
bool max_pool_forward_disjoint(const TensorView& x, const TensorView& y,
                               const PoolingOptions& options);
bool max_pool_gradient_disjoint(const TensorView& x, const TensorView& dy, const TensorView& dx,
                                const PoolingOptions& options);
void average_pool_forward(const TensorView& x, const TensorView& y, const PoolingOptions& options,
                          const AverageOptions& average);
// As max_pool_gradient.
void average_pool_gradient(const TensorView& dy, const TensorView& dx,
                           const PoolingOptions& options, const AverageOptions& average);

// One accumulator a lane.
template <typename T>
using Lanes = std::array<Accumulator<T>, PoolingWindows::kMaxLanes>;

// Calls body(row) for all rows, in parallel.
template <typename Body>
void for_each_row(const PoolingWindows& windows, Body&& body) {
  int64_t taps = 1;
  for (int i = 0; i < 3; ++i) taps *= windows.axis(i).kernel;
  const int64_t rows = windows.rows_per_group();
  parallel_for(windows.groups() * rows, std::max<int64_t>(1, 512 / taps),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) body(windows.row(i / rows, i % rows));
               });
}

// Sets the layers of a group to zero as the windows reach them, so that they are still in the cache
// when they are added to.
template <typename T>
class ZeroedLayers {
 public:
  ZeroedLayers(const PoolingWindows& windows, int64_t group, T* data)
      : windows_(windows),
        layers_(windows.companion_layers(group)),
        loop_(layers_.sizes, {&layers_.strides}),
        next_(data + layers_.offset) {}

  // Zeroes what the windows of a row can touch.
  void reach(const PoolingWindows::Row& row) {
    if (layers_.axis == 2) return reach_all();
    const PoolingWindows::Axis& axis = windows_.axis(layers_.axis);
    reach(row.start[layers_.axis] + (axis.kernel - 1) * axis.dilation + 1);
  }
  void reach_all() { reach(layers_.count); }

 private:
  void reach(int64_t end) {
    for (; zeroed_ < std::min(end, layers_.count); ++zeroed_, next_ += layers_.stride) {
      zero(next_);
    }
  }
  void zero(T* layer) {
    StridedLoop<1> rows = loop_;
    int64_t row = 1;
    if (rows.rank() > 0 && rows.strides.back()[0] == 1) {
      row = rows.sizes.back();
      rows.erase(rows.sizes.size() - 1);
    }
    rows.walk(0, rows.count(), [&](const auto& at) { std::fill_n(layer + at[0], row, T{0}); });
  }

  const PoolingWindows& windows_;
  PoolingWindows::Layers layers_;
  StridedLoop<1> loop_;
  T* next_;
  int64_t zeroed_ = 0;
};

// Calls body(row) for all rows, those of a group in order and in one thread; `sums`, the companion
// of x, is zero in what a row adds to.
template <typename T, typename Body>
void for_each_row_onto_zeros(const PoolingWindows& windows, T* sums, Body&& body) {
  parallel_for(windows.groups(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group) {
      ZeroedLayers<T> zeroed(windows, group, sums);
      for (int64_t i = 0; i < windows.rows_per_group(); ++i) {
        const PoolingWindows::Row row = windows.row(group, i);
        zeroed.reach(row);
        body(row);
      }
      zeroed.reach_all();
    }
  });
}

}  // namespace lamella::kernels
