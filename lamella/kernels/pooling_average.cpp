// Average pooling: the windows' taps are added lane by lane and divided.
#include "lamella/kernels/pooling_kernels.h"
#include "lamella/kernels/rows.h"

namespace lamella::kernels {

namespace {

// What the window of each lane divides by.
template <typename T>
void find_divisors(const PoolingWindows& windows, const PoolingWindows::Row& row,
                   const AverageOptions& average, Lanes<T>& divisors) {
  using Number = Accumulator<T>;
  if (average.divisor_override) {
    std::fill_n(divisors.begin(), row.lanes, static_cast<Number>(*average.divisor_override));
    return;
  }
  // Elements of a window along one axis: those inside x, or with padding also those in it.
  const auto extent = [&](int i, int64_t start) {
    const PoolingWindows::Axis& axis = windows.axis(i);
    const int64_t end = std::min(start + axis.kernel, axis.in + axis.after);
    return average.count_include_pad ? end - start
                                     : std::min(end, axis.in) - std::max<int64_t>(start, 0);
  };
  const int64_t plane = extent(0, row.start[0]) * extent(1, row.start[1]);
  const int64_t width_step = windows.lanes_are_channels() ? 0 : windows.axis(2).stride;
  for (int64_t lane = 0; lane < row.lanes; ++lane) {
    const int64_t count = plane * extent(2, row.start[2] + lane * width_step);
    divisors[static_cast<size_t>(lane)] = static_cast<Number>(std::max<int64_t>(count, 1));
  }
}

template <typename T>
void forward(const PoolingWindows& windows, const AverageOptions& average, const T* x, T* y) {
  for_each_row(windows, [&](const PoolingWindows::Row& row) {
    Lanes<T> sums, buffer, divisors;
    std::fill_n(sums.begin(), row.lanes, Accumulator<T>{0});
    windows.for_each_tap(row, [&](const PoolingWindows::Tap& at) {
      const int64_t count = at.end - at.begin;
      add_row(sums.data() + at.begin,
              read_row(x + at.x_offset.first, windows.x_step().first, count, buffer.data()), count);
    });
    find_divisors<T>(windows, row, average, divisors);
    for (size_t lane = 0; lane < static_cast<size_t>(row.lanes); ++lane) {
      sums[lane] /= divisors[lane];
    }
    write_row(sums.data(), row.lanes, y + row.y_offset.first, windows.y_step().first);
  });
}

template <typename T>
void gradient(const PoolingWindows& windows, const AverageOptions& average, const T* dy,
              Accumulator<T>* dx) {
  const int64_t dx_step = windows.x_step().companion;
  for_each_row_onto_zeros(windows, dx, [&](const PoolingWindows::Row& row) {
    Lanes<T> share, buffer;
    find_divisors<T>(windows, row, average, share);
    const Accumulator<T>* cotangent =
        read_row(dy + row.y_offset.first, windows.y_step().first, row.lanes, buffer.data());
    for (size_t lane = 0; lane < static_cast<size_t>(row.lanes); ++lane) {
      share[lane] = cotangent[lane] / share[lane];
    }
    windows.for_each_tap_reversed(row, [&](const PoolingWindows::Tap& at) {
      Accumulator<T>* to = dx + at.x_offset.companion;
      const Accumulator<T>* from = share.data() + at.begin;
      const int64_t count = at.end - at.begin;
      if (dx_step == 1) return add_row(to, from, count);
      for (int64_t i = 0; i < count; ++i) to[i * dx_step] += from[i];
    });
  });
}

}  // namespace

void average_pool_forward(const TensorView& x, const TensorView& y, const PoolingOptions& options,
                          const AverageOptions& average) {
  const PoolingWindows windows(x, y, options);
  with_float("avg_pool", x.dtype,
             [&]<typename T>(T*) { forward(windows, average, x.as<T>(), y.as<T>()); });
}

void average_pool_gradient(const TensorView& dy, const TensorView& dx,
                           const PoolingOptions& options, const AverageOptions& average) {
  const PoolingWindows windows(dx, dy, options);
  with_float("avg_pool", dy.dtype, [&]<typename T>(T*) {
    gradient(windows, average, dy.as<T>(), dx.as<Accumulator<T>>());
  });
}

}  // namespace lamella::kernels
