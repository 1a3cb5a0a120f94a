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

// Whether a column's maximum replaces the best so far: it is larger, or equal and in an earlier row
// (the columns come from left to right, the order within a window is row by row).
bool replaces(float value, int32_t row, float best, int32_t best_row) {
  const bool is_nan = value != value, best_is_nan = best != best;
  if (is_nan || best_is_nan) return is_nan && (!best_is_nan || row < best_row);
  return value > best || (value == best && row < best_row);
}

// The columns' maxima of one row of windows.
class Columns {
 public:
  explicit Columns(const Pictures& pictures)
      : pictures_(pictures),
        largest(static_cast<size_t>(pictures.row())),
        source(static_cast<size_t>(pictures.row())) {}

  void read(const float* rows) {
    const int64_t count = pictures_.row();
    std::copy_n(rows, count, largest.data());
    std::fill(source.begin(), source.end(), 0);
    for (int64_t i = 1; i < pictures_.kernel_height; ++i) {
      take_larger(largest.data(), source.data(), rows + i * count, static_cast<int32_t>(i), count);
    }
  }

  // The window's best column of each channel: its position in the row.
  int64_t best(int64_t window, int64_t channel) const {
    const int64_t channels = pictures_.channels;
    int64_t at = window * pictures_.kernel_width * channels + channel, found = at;
    for (int64_t k = 1; k < pictures_.kernel_width; ++k) {
      at += channels;
      const auto i = static_cast<size_t>(at), j = static_cast<size_t>(found);
      if (replaces(largest[i], source[i], largest[j], source[j])) found = at;
    }
    return found;
  }

 private:
  const Pictures& pictures_;

 public:
  std::vector<float> largest;
  std::vector<int32_t> source;
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
    Columns columns(*pictures);
    for (int64_t n = begin; n < end; ++n) {
      const float* rows = x.as<float>() + n * pictures->height * pictures->row();
      float* out = y.as<float>() + n * pictures->out_height * pictures->out_row();
      for (int64_t h = 0; h < pictures->out_height; ++h) {
        columns.read(rows + h * pictures->kernel_height * pictures->row());
        for (int64_t w = 0; w < pictures->out_width; ++w) {
          for (int64_t c = 0; c < pictures->channels; ++c) {
            *out++ = columns.largest[static_cast<size_t>(columns.best(w, c))];
          }
        }
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
    Columns columns(*pictures);
    std::vector<float> cotangent(static_cast<size_t>(row));
    std::vector<int32_t> source(static_cast<size_t>(row));
    for (int64_t n = begin; n < end; ++n) {
      const float* rows = x.as<float>() + n * pictures->height * row;
      const float* from = dy.as<float>() + n * dy.strides[0];
      float* to = dx.as<float>() + n * pictures->height * row;
      for (int64_t h = 0; h < pictures->out_height; ++h, to += pictures->kernel_height * row) {
        columns.read(rows + h * pictures->kernel_height * row);
        std::fill(source.begin(), source.end(), -1);
        for (int64_t w = 0; w < pictures->out_width; ++w) {
          for (int64_t c = 0; c < pictures->channels; ++c) {
            const auto best = static_cast<size_t>(columns.best(w, c));
            source[best] = columns.source[best];
            cotangent[best] = from[c * dy.strides[1] + h * dy.strides[2] + w * dy.strides[3]];
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
