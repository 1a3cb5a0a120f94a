// Maximum pooling: the windows' taps are compared lane by lane.
#include <limits>

#include "lamella/kernels/pooling_kernels.h"
#include "lamella/kernels/rows.h"

namespace lamella::kernels {

namespace {

template <typename T>
constexpr auto kLowest = -std::numeric_limits<Accumulator<T>>::infinity();

// The first maximum of each lane, and the tap it came from; -1 if none lies inside x.
template <typename T>
struct Maxima {
  Lanes<T> largest;
  std::array<int32_t, PoolingWindows::kMaxLanes> tap;

  Maxima(const PoolingWindows& windows, const PoolingWindows::Row& row, const T* x) {
    std::fill_n(largest.begin(), row.lanes, kLowest<T>);
    std::fill_n(tap.begin(), row.lanes, -1);
    Lanes<T> buffer;
    windows.for_each_tap(row, [&](const PoolingWindows::Tap& at) {
      const int64_t count = at.end - at.begin;
      argmax_row(largest.data() + at.begin, tap.data() + at.begin,
                 read_row(x + at.x_offset.first, windows.x_step().first, count, buffer.data()),
                 static_cast<int32_t>(at.number), count);
    });
  }
};

template <typename T>
void forward(const PoolingWindows& windows, const T* x, T* y) {
  for_each_row(windows, [&](const PoolingWindows::Row& row) {
    Lanes<T> largest, buffer;
    std::fill_n(largest.begin(), row.lanes, kLowest<T>);
    windows.for_each_tap(row, [&](const PoolingWindows::Tap& at) {
      const int64_t count = at.end - at.begin;
      max_row(largest.data() + at.begin,
              read_row(x + at.x_offset.first, windows.x_step().first, count, buffer.data()), count);
    });
    write_row(largest.data(), row.lanes, y + row.y_offset.first, windows.y_step().first);
  });
}

template <typename T, typename Index>
void forward_with_indices(const PoolingWindows& windows, const T* x, T* y, Index* indices) {
  for_each_row(windows, [&](const PoolingWindows::Row& row) {
    const Maxima<T> maxima(windows, row, x);
    write_row(maxima.largest.data(), row.lanes, y + row.y_offset.first, windows.y_step().first);
    Index* out = indices + row.y_offset.companion;
    const int64_t step = windows.y_step().companion;
    for (int64_t lane = 0; lane < row.lanes; ++lane) out[lane * step] = -1;
    windows.for_each_tap(row, [&](const PoolingWindows::Tap& at) {
      for (int64_t lane = at.begin; lane < at.end; ++lane) {
        if (maxima.tap[static_cast<size_t>(lane)] != at.number) continue;
        out[lane * step] = static_cast<Index>(at.place + (lane - at.begin) * at.place_step);
      }
    });
  });
}

template <typename T>
void gradient(const PoolingWindows& windows, const T* x, const T* dy, Accumulator<T>* dx) {
  const int64_t dx_step = windows.x_step().companion;
  for_each_row_onto_zeros(windows, dx, [&](const PoolingWindows::Row& row) {
    const Maxima<T> maxima(windows, row, x);
    Lanes<T> buffer;
    const Accumulator<T>* cotangent =
        read_row(dy + row.y_offset.first, windows.y_step().first, row.lanes, buffer.data());
    windows.for_each_tap_reversed(row, [&](const PoolingWindows::Tap& at) {
      Accumulator<T>* to = dx + at.x_offset.companion;
      const int32_t number = static_cast<int32_t>(at.number);
      const int32_t* source = maxima.tap.data() + at.begin;
      const int64_t count = at.end - at.begin;
      if (dx_step == 1) return add_row_from(to, cotangent + at.begin, source, number, count);
      for (int64_t i = 0; i < count; ++i) {
        if (source[i] == number) to[i * dx_step] += cotangent[at.begin + i];
      }
    });
  });
}

}  // namespace

void max_pool_forward(const TensorView& x, const TensorView& y, const TensorView* indices,
                      const PoolingOptions& options) {
  if (indices == nullptr && max_pool_forward_disjoint(x, y, options)) return;
  const PoolingWindows windows(x, y, options, x, indices != nullptr ? *indices : y);
  with_float("max_pool", x.dtype, [&]<typename T>(T*) {
    if (indices == nullptr) {
      forward(windows, x.as<T>(), y.as<T>());
    } else if (indices->dtype == DType::Int32) {
      forward_with_indices(windows, x.as<T>(), y.as<T>(), indices->as<int32_t>());
    } else {
      forward_with_indices(windows, x.as<T>(), y.as<T>(), indices->as<int64_t>());
    }
  });
}

void max_pool_gradient(const TensorView& x, const TensorView& dy, const TensorView& dx,
                       const PoolingOptions& options) {
  if (max_pool_gradient_disjoint(x, dy, dx, options)) return;
  const PoolingWindows windows(x, dy, options, dx, dy);
  with_float("max_pool", x.dtype, [&]<typename T>(T*) {
    gradient(windows, x.as<T>(), dy.as<T>(), dx.as<Accumulator<T>>());
  });
}

}  // namespace lamella::kernels
