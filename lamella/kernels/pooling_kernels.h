// Pooling after its arguments have been checked.
#pragma once

#include <array>
#include <optional>

#include "lamella/base/parallel.h"
#include "lamella/kernels/element.h"
#include "lamella/kernels/pooling_windows.h"

namespace lamella::kernels {

void max_pool_forward(const TensorView& x, const TensorView& y, const TensorView* indices,
                      const PoolingOptions& options);
// dx holds zeros and is float32 where x is a 16-bit float.
void max_pool_gradient(const TensorView& x, const TensorView& dy, const TensorView& dx,
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

// The same with the rows of a group in order, in one thread.
template <typename Body>
void for_each_row_of_groups(const PoolingWindows& windows, Body&& body) {
  parallel_for(windows.groups(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group) {
      for (int64_t i = 0; i < windows.rows_per_group(); ++i) body(windows.row(group, i));
    }
  });
}

}  // namespace lamella::kernels
