// Maximum pooling in the form networks use most: float32 pictures, channels last, windows that do
// not overlap, no padding. Whole rows of a picture are compared at once, so that few channels cost
// no more than many.
#include <algorithm>
#include <cstring>
#include <vector>

#include "lamella/kernels/pooling_kernels.h"
#include "lamella/kernels/vectorized.h"

namespace lamella::kernels {

namespace {

// Pictures of `height` rows, each `width` positions of `channels` numbers.
struct Pictures {
  int64_t count, channels, height, width, out_height, out_width, kernel_height, kernel_width;

  int64_t row() const { return width * channels; }
  int64_t out_row() const { return out_width * channels; }
};

// largest[i]: the first maximum of what was compared so far; NaN is largest.
LAMELLA_VECTORIZED void take_larger(float* __restrict largest, const float* __restrict other,
                                    int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const bool is_nan = other[i] != other[i], was_nan = largest[i] != largest[i];
    const bool take = (is_nan | (other[i] > largest[i])) & (!was_nan);
    largest[i] = take ? other[i] : largest[i];
  }
}

// And source[i], the tap it comes from.
LAMELLA_VECTORIZED void take_larger(float* __restrict largest, int32_t* __restrict source,
                                    const float* __restrict other, int32_t tap, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const bool is_nan = other[i] != other[i], was_nan = largest[i] != largest[i];
    const bool take = (is_nan | (other[i] > largest[i])) & (!was_nan);
    largest[i] = take ? other[i] : largest[i];
    source[i] = take ? tap : source[i];
  }
}

// to[i] = cotangent[i] where the window's maximum is the tap of row `first` / kernel width in the
// column of i.
LAMELLA_VECTORIZED void give_where(float* __restrict to, const float* __restrict cotangent,
                                   const int32_t* __restrict source,
                                   const int32_t* __restrict column, int32_t first, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = source[i] == first + column[i] ? cotangent[i] : 0.0f;
}

// The channels of a position are moved in whole pieces; what a last piece has too much is written
// over by the next position, or lies in the room behind a row.
constexpr int64_t kPiece = 16;

template <typename T>
void copy_channels(const T* from, int64_t channels, T* to) {
  for (int64_t c = 0; c < channels; c += kPiece) std::memcpy(to + c, from + c, kPiece * sizeof(T));
}

template <typename T>
std::vector<T> row_with_room(int64_t count) {
  return std::vector<T>(static_cast<size_t>(count + kPiece));
}

// One row of windows. Every position of a row of the picture is compared with what would be its
// window if one began there, so that all comparisons are of adjacent numbers: only every
// kernel_width-th position is one.
class WindowRow {
 public:
  explicit WindowRow(const Pictures& pictures)
      : pictures_(pictures),
        largest_(row_with_room<float>(pictures.row())),
        source_(row_with_room<int32_t>(pictures.row())),
        packed_(row_with_room<float>(pictures.out_row())),
        spread_(row_with_room<float>(pictures.row())),
        spread_source_(row_with_room<int32_t>(pictures.row())),
        column_(row_with_room<int32_t>(pictures.row())) {
    auto at = column_.begin();
    for (int64_t position = 0; position < pictures.width; ++position) {
      const auto column = static_cast<int32_t>(position % pictures.kernel_width);
      at = std::fill_n(at, pictures.channels, column);
    }
  }

  // The maxima of the windows over `rows` of the picture: out_row numbers.
  void maxima(const float* rows, float* out) {
    std::copy_n(rows, pictures_.row(), largest_.data());
    for_each_later_tap([&](int64_t offset, int32_t, int64_t count) {
      take_larger(largest_.data(), rows + offset, count);
    });
    for (int64_t w = 0; w < pictures_.out_width; ++w)
      copy_channels(largest_.data() + begin(w), pictures_.channels, packed_.data() + place(w));
    std::copy_n(packed_.data(), pictures_.out_row(), out);
  }

  // The windows' cotangents, at their maxima, as `rows` of the picture's cotangent.
  void gradient(const float* rows, const float* cotangent, const Axes& strides, float* to) {
    std::copy_n(rows, pictures_.row(), largest_.data());
    std::fill(source_.begin(), source_.end(), 0);
    for_each_later_tap([&](int64_t offset, int32_t tap, int64_t count) {
      take_larger(largest_.data(), source_.data(), rows + offset, tap, count);
    });
    pack(cotangent, strides);
    const int64_t channels = pictures_.channels;
    for (int64_t w = 0; w < pictures_.out_width; ++w) {
      for (int64_t k = 0; k < pictures_.kernel_width; ++k) {
        const int64_t at = begin(w) + k * channels;
        copy_channels(packed_.data() + place(w), channels, spread_.data() + at);
        copy_channels(source_.data() + begin(w), channels, spread_source_.data() + at);
      }
    }
    // Positions behind the last window have none.
    const int64_t covered = begin(pictures_.out_width);
    for (int64_t i = 0; i < pictures_.kernel_height; ++i, to += pictures_.row()) {
      give_where(to, spread_.data(), spread_source_.data(), column_.data(),
                 static_cast<int32_t>(i * pictures_.kernel_width), covered);
      std::fill(to + covered, to + pictures_.row(), 0.0f);
    }
  }

 private:
  int64_t begin(int64_t window) const {
    return window * pictures_.kernel_width * pictures_.channels;
  }
  int64_t place(int64_t window) const { return window * pictures_.channels; }

  // Calls body(offset of the tap from the first one, its number, how many positions have it) for
  // the taps after the first, row by row.
  template <typename Body>
  void for_each_later_tap(Body body) const {
    for (int64_t i = 0; i < pictures_.kernel_height; ++i) {
      for (int64_t k = 0; k < pictures_.kernel_width; ++k) {
        const int64_t tap = i * pictures_.kernel_width + k, ahead = k * pictures_.channels;
        if (tap == 0) continue;
        body(i * pictures_.row() + ahead, static_cast<int32_t>(tap), pictures_.row() - ahead);
      }
    }
  }

  // One row of cotangents, side by side.
  void pack(const float* cotangent, const Axes& strides) {
    const int64_t channels = pictures_.channels;
    if (strides[1] == 1 && strides[3] == channels) {
      std::copy_n(cotangent, pictures_.out_row(), packed_.data());
      return;
    }
    for (int64_t w = 0; w < pictures_.out_width; ++w) {
      for (int64_t c = 0; c < channels; ++c)
        packed_[static_cast<size_t>(place(w) + c)] = cotangent[w * strides[3] + c * strides[1]];
    }
  }

  const Pictures& pictures_;
  std::vector<float> largest_;
  std::vector<int32_t> source_;
  std::vector<float> packed_;  // one number a window and channel
  std::vector<float> spread_;  // the same in every column of its window
  std::vector<int32_t> spread_source_;
  std::vector<int32_t> column_;  // of each position within its window
};

bool is_channels_last(const TensorView& view) {
  return view.strides[1] == 1 && view.strides[3] == view.sizes[1] &&
         view.strides[2] == view.strides[3] * view.sizes[3] &&
         view.strides[0] == view.strides[2] * view.sizes[2];
}

std::optional<Pictures> pictures_of(const TensorView& x, const TensorView& y,
                                    const PoolingOptions& options) {
  if (x.dtype != DType::Float32 || x.rank() != 4 || !is_channels_last(x)) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    const bool plain = options.stride[i] == options.kernel[i] && options.padding_before[i] == 0 &&
                       options.padding_after[i] == 0 && options.dilation[i] == 1 &&
                       y.sizes[2 + i] * options.kernel[i] <= x.sizes[2 + i];
    if (!plain) return std::nullopt;
  }
  return Pictures{x.sizes[0], x.sizes[1], x.sizes[2],        x.sizes[3],
                  y.sizes[2], y.sizes[3], options.kernel[0], options.kernel[1]};
}

// Calls body(windows, begin, end) for ranges of the pictures; each thread has one row of windows.
template <typename Body>
void for_pictures(const Pictures& pictures, Body body) {
  const int64_t grain =
      std::max<int64_t>(1, 16384 / std::max<int64_t>(1, pictures.height * pictures.row()));
  std::vector<std::optional<WindowRow>> rows(static_cast<size_t>(thread_count()));
  const auto run = [&](int64_t begin, int64_t end, int64_t thread) {
    std::optional<WindowRow>& windows = rows[static_cast<size_t>(thread)];
    if (!windows) windows.emplace(pictures);
    body(*windows, begin, end);
  };
  parallel_for_threads(pictures.count, grain, run, std::ssize(rows));
}

}  // namespace

bool max_pool_forward_disjoint(const TensorView& x, const TensorView& y,
                               const PoolingOptions& options) {
  const std::optional<Pictures> pictures = pictures_of(x, y, options);
  if (!pictures || !is_channels_last(y)) return false;
  for_pictures(*pictures, [&](WindowRow& windows, int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const float* rows = x.as<float>() + n * pictures->height * pictures->row();
      float* out = y.as<float>() + n * pictures->out_height * pictures->out_row();
      for (int64_t h = 0; h < pictures->out_height; ++h, out += pictures->out_row()) {
        windows.maxima(rows + h * pictures->kernel_height * pictures->row(), out);
      }
    }
  });
  return true;
}

bool max_pool_gradient_disjoint(const TensorView& x, const TensorView& dy, const TensorView& dx,
                                const PoolingOptions& options) {
  const std::optional<Pictures> pictures = pictures_of(x, dy, options);
  if (!pictures || !is_channels_last(dx)) return false;
  const int64_t row = pictures->row();
  for_pictures(*pictures, [&](WindowRow& windows, int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const float* rows = x.as<float>() + n * pictures->height * row;
      const float* from = dy.as<float>() + n * dy.strides[0];
      float* to = dx.as<float>() + n * pictures->height * row;
      for (int64_t h = 0; h < pictures->out_height; ++h, to += pictures->kernel_height * row) {
        windows.gradient(rows + h * pictures->kernel_height * row, from + h * dy.strides[2],
                         dy.strides, to);
      }
      const int64_t rest = pictures->height - pictures->out_height * pictures->kernel_height;
      std::fill_n(to, rest * row, 0.0f);
    }
  });
  return true;
}

}  // namespace lamella::kernels
