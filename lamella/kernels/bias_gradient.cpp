// The gradient of a convolution's bias: sums over batch and positions with one fixed tree.
#include "lamella/base/error.h"
#include "lamella/base/parallel.h"
#include "lamella/kernels/convolution_problem.h"
#include "lamella/kernels/element.h"
#include "lamella/kernels/rows.h"
#include "lamella/kernels/view.h"

namespace lamella::kernels {

namespace {

constexpr int64_t kBlockRows = 64;

// dy as a matrix of positions by channels.
struct PositionMatrix {
  int64_t batch, positions, channels;
  int64_t batch_stride, position_stride, channel_stride;

  explicit PositionMatrix(const TensorView& dy)
      : batch(dy.sizes[0]), positions(1), channels(dy.sizes[1]) {
    for (uint32_t axis = 2; axis < dy.sizes.size(); ++axis) positions *= dy.sizes[axis];
    const bool last = is_channels_last(dy);
    LAMELLA_CHECK(last || is_row_major(dy));
    batch_stride = positions * channels;
    position_stride = last ? channels : 1;
    channel_stride = last ? 1 : positions;
  }
  int64_t rows() const { return batch * positions; }
  int64_t blocks() const { return (rows() + kBlockRows - 1) / kBlockRows; }
  int64_t offset(int64_t row) const {
    return row / positions * batch_stride + row % positions * position_stride;
  }
};

// sums[channel] = the rows [begin, end) in order.
template <typename T>
void sum_block(const PositionMatrix& matrix, const T* dy, int64_t begin, int64_t end,
               Accumulator<T>* sums) {
  using Sum = Accumulator<T>;
  if (matrix.channel_stride == 1) {
    // 16-bit rows are widened piece by piece.
    constexpr int64_t kPiece = std::is_same_v<T, Sum> ? INT64_MAX : 256;
    Sum buffer[std::is_same_v<T, Sum> ? 1 : kPiece];
    std::fill_n(sums, matrix.channels, -Sum{0});  // -0 + x is x, also for x = -0
    for (int64_t row = begin; row < end; ++row) {
      const T* from = dy + matrix.offset(row);
      for (int64_t at = 0; at < matrix.channels;) {
        const int64_t count = std::min(kPiece, matrix.channels - at);
        add_row(sums + at, read_row(from + at, 1, count, buffer), count);
        at += count;
      }
    }
    return;
  }
  for (int64_t channel = 0; channel < matrix.channels; ++channel) {
    const T* column = dy + channel * matrix.channel_stride;
    Sum sum = -Sum{0};
    for (int64_t row = begin; row < end; ++row) sum += static_cast<Sum>(column[matrix.offset(row)]);
    sums[channel] = sum;
  }
}

template <typename T>
void sum_positions(const PositionMatrix& matrix, const T* dy, Accumulator<T>* partial) {
  const int64_t grain = std::max<int64_t>(1, 16384 / (kBlockRows * matrix.channels + 1));
  parallel_for(matrix.blocks(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      sum_block(matrix, dy, block * kBlockRows, std::min((block + 1) * kBlockRows, matrix.rows()),
                partial + block * matrix.channels);
    }
  });
  for (int64_t step = 1; step < matrix.blocks(); step *= 2) {
    for (int64_t block = 0; block + step < matrix.blocks(); block += 2 * step) {
      add_row(partial + block * matrix.channels, partial + (block + step) * matrix.channels,
              matrix.channels);
    }
  }
}

}  // namespace

int64_t convolution_bias_gradient_scratch_bytes(const TensorView& dy) {
  const PositionMatrix matrix(dy);
  return scratch_aligned(matrix.blocks() * matrix.channels * size_of(compute_dtype(dy.dtype)));
}

void convolution_bias_gradient(const TensorView& dy, const TensorView& dbias, Scratch scratch) {
  const PositionMatrix matrix(dy);
  const int64_t bytes = convolution_bias_gradient_scratch_bytes(dy);
  ScratchParts parts(scratch, bytes);
  with_float("convolution", dy.dtype, [&]<typename T>(T*) {
    Accumulator<T>* sums = static_cast<Accumulator<T>*>(parts.take(bytes));
    sum_positions(matrix, dy.as<T>(), sums);
    for (int64_t k = 0; k < matrix.channels; ++k) {
      dbias.as<T>()[k * dbias.strides[0]] = T(matrix.rows() > 0 ? sums[k] : Accumulator<T>{0});
    }
  });
}

}  // namespace lamella::kernels
