// Strided copies: rows by memcpy, transpositions tile by tile, filling, joining and cutting.
#include "lamella/kernels/copy.h"

#include <cstring>

#include "lamella/base/error.h"
#include "lamella/base/parallel.h"
#include "lamella/kernels/element.h"
#include "lamella/kernels/strided_loop.h"
#include "lamella/kernels/view.h"

namespace lamella::kernels {

namespace {

constexpr int64_t kGrainBytes = 64 << 10;
constexpr int64_t kTile = 32;

using CopyLoop = StridedLoop<2>;  // operand 0 is written, operand 1 read
constexpr size_t kTo = 0, kFrom = 1;

template <typename T>
void copy_row(T* to, int64_t to_stride, const T* from, int64_t from_stride, int64_t count) {
  if (to_stride == 1 && from_stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
  } else if (to_stride == 1 && from_stride == 0) {
    std::fill_n(to, count, *from);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i * to_stride] = from[i * from_stride];
  }
}

// Rows along the loop's innermost axis; a loop of one row is cut into pieces.
template <typename T>
void copy_rows(CopyLoop loop, T* to, const T* from) {
  const int64_t row = loop.sizes.back();
  const CopyLoop::Strides stride = loop.strides.back();
  constexpr int64_t kGrain = kGrainBytes / static_cast<int64_t>(sizeof(T));
  if (loop.rank() == 1) {
    // One call a thread: memcpy goes past the caches only if it is given enough at a time.
    const int64_t share = (row + thread_count() - 1) / thread_count();
    parallel_for(row, std::max(kGrain, share), [&](int64_t begin, int64_t end) {
      copy_row(to + begin * stride[kTo], stride[kTo], from + begin * stride[kFrom], stride[kFrom],
               end - begin);
    });
    return;
  }
  loop.erase(loop.sizes.size() - 1);
  parallel_for(loop.count(), std::max<int64_t>(1, kGrain / row), [&](int64_t begin, int64_t end) {
    loop.walk(begin, end, [&](const CopyLoop::Strides& at) {
      copy_row(to + at[kTo], stride[kTo], from + at[kFrom], stride[kFrom], row);
    });
  });
}

// to[i * to_stride + j] = from[j * from_stride + i] for i < rows, j < columns.
template <typename T>
void transpose_tile(T* to, int64_t to_stride, const T* from, int64_t from_stride, int64_t rows,
                    int64_t columns) {
  if (rows == kTile && columns == kTile) {
    T tile[kTile][kTile];
    for (int64_t j = 0; j < kTile; ++j) {
      for (int64_t i = 0; i < kTile; ++i) tile[i][j] = from[j * from_stride + i];
    }
    for (int64_t i = 0; i < kTile; ++i) std::memcpy(to + i * to_stride, tile[i], sizeof tile[i]);
    return;
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) to[i * to_stride + j] = from[j * from_stride + i];
  }
}

// The innermost axis is adjacent in `to`, `across` in `from`.
template <typename T>
void copy_transposed(CopyLoop loop, uint32_t across, T* to, const T* from) {
  const int64_t columns = loop.sizes.back(), rows = loop.sizes[across];
  const int64_t from_stride = loop.strides.back()[kFrom], to_stride = loop.strides[across][kTo];
  loop.erase(loop.sizes.size() - 1);
  loop.erase(across);
  const int64_t row_tiles = (rows + kTile - 1) / kTile;
  const int64_t column_tiles = (columns + kTile - 1) / kTile;
  const int64_t tiles = row_tiles * column_tiles;
  parallel_for(loop.count() * tiles, 16, [&](int64_t begin, int64_t end) {
    for (int64_t point = begin / tiles; point * tiles < end; ++point) {
      loop.walk(point, point + 1, [&](const CopyLoop::Strides& at) {
        const int64_t last = std::min(end - point * tiles, tiles);
        for (int64_t tile = std::max<int64_t>(begin - point * tiles, 0); tile < last; ++tile) {
          const int64_t i = tile / column_tiles * kTile, j = tile % column_tiles * kTile;
          transpose_tile(to + at[kTo] + i * to_stride + j, to_stride,
                         from + at[kFrom] + j * from_stride + i, from_stride,
                         std::min(kTile, rows - i), std::min(kTile, columns - j));
        }
      });
    }
  });
}

template <typename T>
void copy_elements(const CopyLoop& loop, T* to, const T* from) {
  if (loop.rank() == 0) {
    *to = *from;
    return;
  }
  if (loop.strides.back()[kTo] == 1 && loop.strides.back()[kFrom] > 1) {
    for (uint32_t axis = 0; axis + 1 < loop.sizes.size(); ++axis) {
      if (loop.strides[axis][kFrom] == 1) return copy_transposed(loop, axis, to, from);
    }
  }
  copy_rows(loop, to, from);
}

}  // namespace

void copy(const TensorView& from, const TensorView& to) {
  require_same_dtype("copy", "from", from, "to", to);
  require_sizes("copy", "to", to, from.sizes);
  const CopyLoop loop(to.sizes, {&to.strides, &from.strides});
  if (loop.count() == 0) return;
  with_element(to.dtype, [&]<typename T>(T*) { copy_elements(loop, to.as<T>(), from.as<T>()); });
}

void fill(const TensorView& out, const void* element) {
  const Axes repeated(out.sizes.size(), 0);
  const CopyLoop loop(out.sizes, {&out.strides, &repeated});
  if (loop.count() == 0) return;
  with_element(out.dtype, [&]<typename T>(T*) {
    copy_elements(loop, out.as<T>(), static_cast<const T*>(element));
  });
}

void fill_zero(const TensorView& out) {
  alignas(16) const char zero[16] = {};
  fill(out, zero);
}

namespace {

// The part of `whole` that begins at `first` along `axis` and has the sizes of `part`.
TensorView part_of(const TensorView& whole, int axis, int64_t first, const TensorView& part) {
  TensorView view = moved(whole, first * whole.strides[static_cast<size_t>(axis)]);
  view.sizes = part.sizes;
  return view;
}

void check_parts(const char* operation, std::span<const TensorView> parts, int axis,
                 const TensorView& whole) {
  if (axis < 0 || axis >= whole.rank()) {
    fail(ErrorKind::Value, "[{}] axis {} is out of range for rank {}", operation, axis,
         whole.rank());
  }
  const size_t at = static_cast<size_t>(axis);
  int64_t total = 0;
  for (const TensorView& part : parts) {
    require_same_dtype(operation, "a part", part, "the whole", whole);
    Axes sizes = whole.sizes;
    if (part.rank() == whole.rank()) sizes[at] = part.sizes[at];
    require_sizes(operation, "a part", part, sizes);
    total += part.sizes[at];
  }
  if (total != whole.sizes[at]) {
    fail(ErrorKind::Value, "[{}] the parts have {} elements along axis {}, the whole has {}",
         operation, total, axis, whole.sizes[at]);
  }
}

}  // namespace

void concat(std::span<const TensorView> parts, int axis, const TensorView& out) {
  check_parts("concat", parts, axis, out);
  int64_t first = 0;
  for (const TensorView& part : parts) {
    copy(part, part_of(out, axis, first, part));
    first += part.sizes[static_cast<size_t>(axis)];
  }
}

void split(const TensorView& x, int axis, std::span<const TensorView> parts) {
  check_parts("split", parts, axis, x);
  int64_t first = 0;
  for (const TensorView& part : parts) {
    copy(part_of(x, axis, first, part), part);
    first += part.sizes[static_cast<size_t>(axis)];
  }
}

}  // namespace lamella::kernels
