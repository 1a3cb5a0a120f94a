// Bounds of indices, shapes of gathers.
#include "lamella/kernels/indexing_checks.h"

#include <atomic>

#include "lamella/base/error.h"
#include "lamella/base/parallel.h"
#include "lamella/kernels/rows.h"
#include "lamella/kernels/strided_loop.h"
#include "lamella/kernels/view.h"

namespace lamella::kernels {

namespace {

// The number, in row-major order, of the first element outside [low, high); -1 if there is none.
template <typename T>
int64_t first_outside(const TensorView& indices, int64_t low, int64_t high) {
  const auto loop = StridedLoop<1>::in_order(indices.sizes, {&indices.strides});
  const int64_t count = loop.count();
  std::atomic<int64_t> first{count};
  const bool adjacent = loop.rank() == 1 && loop.strides[0][0] == 1;
  parallel_for(count, 65536, [&](int64_t begin, int64_t end) {
    if (adjacent && !any_outside(indices.as<T>() + begin, end - begin, low, high)) return;
    int64_t position = begin;
    loop.walk(begin, end, [&](const auto& at) {
      const int64_t index = indices.as<T>()[at[0]];
      if (index < low || index >= high) [[unlikely]] {
        int64_t known = first.load();
        while (position < known && !first.compare_exchange_weak(known, position)) {
        }
      }
      ++position;
    });
  });
  return first == count ? -1 : first.load();
}

template <typename T>
void check_range(const TensorView& indices, int64_t size, const IndexingOptions& options) {
  const int64_t low = options.negative == NegativeIndex::FromEnd ? -size : 0;
  const int64_t position = first_outside<T>(indices, low, size);
  if (position < 0) return;
  const auto loop = StridedLoop<1>::in_order(indices.sizes, {&indices.strides});
  int64_t wrong = 0;
  loop.walk(position, position + 1, [&](const auto& at) { wrong = indices.as<T>()[at[0]]; });
  fail(ErrorKind::Index, "[{}] index {} is out of range for axis {} of size {}", options.operation,
       wrong, options.axis, size);
}

}  // namespace

CheckedIndices::CheckedIndices(const TensorView& indices, int64_t size,
                               const IndexingOptions& options)
    : data_(indices.data), wide_(indices.dtype == DType::Int64), size_(size) {
  if (indices.dtype == DType::Int64) {
    check_range<int64_t>(indices, size, options);
  } else if (indices.dtype == DType::Int32) {
    check_range<int32_t>(indices, size, options);
  } else {
    fail(ErrorKind::Type, "[{}] indices must be int32 or int64, got {}", options.operation,
         name(indices.dtype));
  }
}

void check_axis(const TensorView& view, const IndexingOptions& options) {
  if (options.axis >= 0 && options.axis < view.rank()) return;
  fail(ErrorKind::Value, "[{}] axis {} is out of range for {}", options.operation, options.axis,
       text(view));
}

Axes gathered_sizes(const Axes& sizes, int axis, const Axes& indices,
                    const IndexingOptions& options) {
  if (sizes.size() - 1 + indices.size() > kMaxRank) {
    fail(ErrorKind::Value, "[{}] the result would have {} axes, at most {} are supported",
         options.operation, sizes.size() - 1 + indices.size(), kMaxRank);
  }
  const size_t at = static_cast<size_t>(axis);
  Axes all(sizes.begin(), sizes.begin() + at);
  all = joined(all, indices);
  return joined(all, Axes(sizes.begin() + at + 1, sizes.end()));
}

}  // namespace lamella::kernels
