// Maximum pooling in the form networks use most: float32 pictures, channels last, windows that do
// not overlap, no padding. Whole rows of a picture are compared at once, so that few channels cost
// no more than many.
#include <algorithm>
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

// largest[i] and source[i]: the first maximum of a column of the window and its row; NaN is
// largest.
LAMELLA_VECTORIZED void take_larger(float* largest, int32_t* source, const float* row,
                                    int32_t number, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const bool is_nan = row[i] != row[i], was_nan = largest[i] != largest[i];
    const bool take = !was_nan && (is_nan || row[i] > largest[i]);
    largest[i] = take ? row[i] : largest[i];
    source[i] = take ? number : source[i];
  }
}

LAMELLA_VECTORIZED void give_where(float* to, const float* cotangent, const int32_t* source,
                                   int32_t number, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = source[i] == number ? cotangent[i] : 0.0f;
}

// The same across the columns of each window: the k-th column replaces the best so far if it is
// larger, or equal and from an earlier row (the order within a window is row by row).
LAMELLA_VECTORIZED void take_better_column(float* __restrict value, int32_t* __restrict row,
                                           int32_t* __restrict column,
                                           const float* __restrict other_value,
                                           const int32_t* __restrict other_row, int32_t number,
                                           int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const float other = other_value[i], best = value[i];
    const int32_t is_nan = other != other, was_nan = best != best;
    const int32_t earlier = other_row[i]<row[i], larger = other> best, equal = other == best;
    const int32_t take =
        (is_nan & ((was_nan ^ 1) | earlier)) | ((was_nan ^ 1) & (larger | (equal & earlier)));
    value[i] = take ? other : best;
    row[i] = take ? other_row[i] : row[i];
    column[i] = take ? number : column[i];
  }
}

// The maxima of one row of windows; `value` etc. have one entry a window and channel.
class WindowRow {
 public:
  explicit WindowRow(const Pictures& pictures)
      : pictures_(pictures),
        largest_(static_cast<size_t>(pictures.row())),
        source_(largest_.size()),
        value(static_cast<size_t>(pictures.out_row())),
        row(value.size()),
        column(value.size()),
        other_value_(value.size()),
        other_row_(value.size()) {}

  void read(const float* rows) {
    const int64_t count = pictures_.row();
    std::copy_n(rows, count, largest_.data());
    std::fill(source_.begin(), source_.end(), 0);
    for (int64_t i = 1; i < pictures_.kernel_height; ++i) {
      take_larger(largest_.data(), source_.data(), rows + i * count, static_cast<int32_t>(i),
                  count);
    }
    std::fill(column.begin(), column.end(), 0);
    take_column(0, value.data(), row.data());
    for (int64_t k = 1; k < pictures_.kernel_width; ++k) {
      take_column(k, other_value_.data(), other_row_.data());
      take_better_column(value.data(), row.data(), column.data(), other_value_.data(),
                         other_row_.data(), static_cast<int32_t>(k), pictures_.out_row());
    }
  }

  // Where the maximum of window w and a channel lies in a row of the picture.
  int64_t place(int64_t window, int64_t channel, size_t entry) const {
    return (window * pictures_.kernel_width + column[entry]) * pictures_.channels + channel;
  }

 private:
  // The k-th column of every window, side by side.
  void take_column(int64_t k, float* values, int32_t* rows) const {
    const int64_t channels = pictures_.channels;
    for (int64_t w = 0; w < pictures_.out_width; ++w) {
      const int64_t from = (w * pictures_.kernel_width + k) * channels;
      std::copy_n(largest_.data() + from, channels, values + w * channels);
      std::copy_n(source_.data() + from, channels, rows + w * channels);
    }
  }

  const Pictures& pictures_;
  std::vector<float> largest_;   // of each column, over the window's rows
  std::vector<int32_t> source_;  // the row it comes from

 public:
  std::vector<float> value;
  std::vector<int32_t> row, column;  // of the maximum, within the window

 private:
  std::vector<float> other_value_;
  std::vector<int32_t> other_row_;
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

// Pictures that one thread takes at a time.
int64_t grain(const Pictures& pictures) {
  return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, pictures.height * pictures.row()));
}

}  // namespace

bool max_pool_forward_disjoint(const TensorView& x, const TensorView& y,
                               const PoolingOptions& options) {
  const std::optional<Pictures> pictures = pictures_of(x, y, options);
  if (!pictures || !is_channels_last(y)) return false;
  parallel_for(pictures->count, grain(*pictures), [&](int64_t begin, int64_t end) {
    WindowRow windows(*pictures);
    for (int64_t n = begin; n < end; ++n) {
      const float* rows = x.as<float>() + n * pictures->height * pictures->row();
      float* out = y.as<float>() + n * pictures->out_height * pictures->out_row();
      for (int64_t h = 0; h < pictures->out_height; ++h, out += pictures->out_row()) {
        windows.read(rows + h * pictures->kernel_height * pictures->row());
        std::copy(windows.value.begin(), windows.value.end(), out);
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
  parallel_for(pictures->count, grain(*pictures), [&](int64_t begin, int64_t end) {
    WindowRow windows(*pictures);
    std::vector<float> cotangent(static_cast<size_t>(row));
    std::vector<int32_t> source(static_cast<size_t>(row));
    for (int64_t n = begin; n < end; ++n) {
      const float* rows = x.as<float>() + n * pictures->height * row;
      const float* from = dy.as<float>() + n * dy.strides[0];
      float* to = dx.as<float>() + n * pictures->height * row;
      for (int64_t h = 0; h < pictures->out_height; ++h, to += pictures->kernel_height * row) {
        windows.read(rows + h * pictures->kernel_height * row);
        std::fill(source.begin(), source.end(), -1);
        size_t next = 0;
        for (int64_t w = 0; w < pictures->out_width; ++w) {
          const float* column = from + h * dy.strides[2] + w * dy.strides[3];
          for (int64_t c = 0; c < pictures->channels; ++c, ++next) {
            const auto place = static_cast<size_t>(windows.place(w, c, next));
            source[place] = windows.row[next];
            cotangent[place] = column[c * dy.strides[1]];
          }
        }
        for (int64_t i = 0; i < pictures->kernel_height; ++i) {
          give_where(to + i * row, cotangent.data(), source.data(), static_cast<int32_t>(i), row);
        }
      }
      const int64_t rest = pictures->height - pictures->out_height * pictures->kernel_height;
      std::fill_n(to, rest * row, 0.0f);
    }
  });
  return true;
}

}  // namespace lamella::kernels
