// Padding: the interior is copied, then borders are filled axis by axis from what is complete.
#include <vector>

#include "lamella/base/error.h"
#include "lamella/base/parallel.h"
#include "lamella/kernels/copy.h"
#include "lamella/kernels/element.h"
#include "lamella/kernels/view.h"

namespace lamella::kernels {

namespace {

void check(const TensorView& x, const Axes& before, const Axes& after, PadMode mode,
           const TensorView& out) {
  require_same_dtype("pad", "x", x, "out", out);
  if (before.size() != x.sizes.size() || after.size() != x.sizes.size()) {
    fail(ErrorKind::Value, "[pad] {} and {} amounts for the {} axes of x", before.size(),
         after.size(), x.rank());
  }
  Axes sizes = x.sizes;
  for (uint32_t axis = 0; axis < sizes.size(); ++axis) {
    const int64_t size = x.sizes[axis], low = std::min(before[axis], after[axis]),
                  high = std::max(before[axis], after[axis]);
    const bool fits = mode == PadMode::Constant    ? size + before[axis] + after[axis] >= 0
                      : mode == PadMode::Reflect   ? high < std::max<int64_t>(size, 1)
                      : mode == PadMode::Replicate ? size > 0 || high == 0
                                                   : high <= size;
    if (!fits || (mode != PadMode::Constant && low < 0)) {
      constexpr const char* kNames[] = {"constant", "reflect", "replicate", "circular"};
      fail(ErrorKind::Value, "[pad] cannot add {} and {} elements to axis {} of {} in {} mode",
           before[axis], after[axis], axis, text(x), kNames[static_cast<size_t>(mode)]);
    }
    sizes[axis] = size + before[axis] + after[axis];
  }
  require_sizes("pad", "out", out, sizes);
}

// The range [first, first + size) along one axis.
TensorView slice(const TensorView& view, uint32_t axis, int64_t first, int64_t size) {
  TensorView part = moved(view, first * view.strides[axis]);
  part.sizes[axis] = size;
  return part;
}

// The interior of one axis: where x's elements that stay lie in x and in out.
struct Interior {
  int64_t in_x, in_out, size;
  Interior(int64_t x_size, int64_t before, int64_t after)
      : in_x(std::max<int64_t>(-before, 0)),
        in_out(std::max<int64_t>(before, 0)),
        size(std::max<int64_t>(x_size - in_x - std::max<int64_t>(-after, 0), 0)) {}
};

// The place along the padded axis that border place `at` repeats.
int64_t source_of(PadMode mode, int64_t at, const Interior& interior) {
  const int64_t first = interior.in_out, last = first + interior.size - 1;
  const bool in_front = at < first;
  switch (mode) {
    case PadMode::Reflect:
      return 2 * (in_front ? first : last) - at;
    case PadMode::Replicate:
      return in_front ? first : last;
    default:
      return in_front ? at + interior.size : at - interior.size;
  }
}

}  // namespace

void pad(const TensorView& x, const Axes& before, const Axes& after, PadMode mode,
         const void* element, const TensorView& out) {
  check(x, before, after, mode, out);
  if (out.count() == 0) return;
  alignas(16) const char zero[16] = {};
  if (element == nullptr) element = zero;
  TensorView kept = x, inner = out;
  for (uint32_t axis = 0; axis < x.sizes.size(); ++axis) {
    const Interior interior(x.sizes[axis], before[axis], after[axis]);
    kept = slice(kept, axis, interior.in_x, interior.size);
    inner = slice(inner, axis, interior.in_out, interior.size);
  }
  copy(kept, inner);
  // Axes in front of `axis` are complete, those behind it are only their interior so far.
  for (uint32_t axis = 0; axis < x.sizes.size(); ++axis) {
    const Interior interior(x.sizes[axis], before[axis], after[axis]);
    TensorView complete = out;
    for (uint32_t later = axis + 1; later < x.sizes.size(); ++later) {
      const Interior range(x.sizes[later], before[later], after[later]);
      complete = slice(complete, later, range.in_out, range.size);
    }
    const int64_t end = interior.in_out + interior.size;
    const int64_t behind = out.sizes[axis] - end;
    if (mode == PadMode::Constant) {
      fill(slice(complete, axis, 0, interior.in_out), element);
      fill(slice(complete, axis, end, behind), element);
      continue;
    }
    for (int64_t at = 0; at < out.sizes[axis]; ++at) {
      if (at == interior.in_out) at = end;
      if (at == out.sizes[axis]) break;
      copy(slice(complete, axis, source_of(mode, at, interior), 1), slice(complete, axis, at, 1));
    }
  }
}

namespace {

// For each place of one axis of x, the places of the padded axis that repeat it, in order.
std::vector<std::vector<int64_t>> readers_of(PadMode mode, int64_t x_size, int64_t out_size,
                                             const Interior& interior) {
  std::vector<std::vector<int64_t>> readers(static_cast<size_t>(x_size));
  for (int64_t at = 0; at < out_size; ++at) {
    const bool inside = at >= interior.in_out && at < interior.in_out + interior.size;
    if (!inside && mode == PadMode::Constant) continue;
    const int64_t source = inside ? at : source_of(mode, at, interior);
    readers[static_cast<size_t>(source - interior.in_out + interior.in_x)].push_back(at);
  }
  return readers;
}

using Readers = InlineVector<const std::vector<int64_t>*, kMaxRank>;

// The sum of dy over the product of the axes' readers, in row-major order.
template <typename T>
Accumulator<T> sum_over(const Readers& readers, uint32_t axis, const T* dy, const Axes& strides,
                        Accumulator<T> sum) {
  if (axis == readers.size()) return sum + static_cast<Accumulator<T>>(*dy);
  for (int64_t at : *readers[axis]) {
    sum = sum_over<T>(readers, axis + 1, dy + at * strides[axis], strides, sum);
  }
  return sum;
}

}  // namespace

void pad_backward(const TensorView& dy, const Axes& before, const Axes& after, PadMode mode,
                  const TensorView& dx) {
  check(dx, before, after, mode, dy);
  const uint32_t rank = dx.sizes.size();
  std::vector<std::vector<std::vector<int64_t>>> readers;
  for (uint32_t axis = 0; axis < rank; ++axis) {
    const Interior interior(dx.sizes[axis], before[axis], after[axis]);
    readers.push_back(readers_of(mode, dx.sizes[axis], dy.sizes[axis], interior));
  }
  with_float("pad", dx.dtype, [&]<typename T>(T*) {
    parallel_for(dx.count(), 1024, [&](int64_t begin, int64_t end) {
      for (int64_t item = begin; item < end; ++item) {
        Readers here(rank, nullptr);
        int64_t rest = item, offset = 0;
        for (uint32_t axis = rank; axis-- > 0;) {
          const int64_t at = rest % dx.sizes[axis];
          rest /= dx.sizes[axis];
          offset += at * dx.strides[axis];
          here[axis] = &readers[axis][static_cast<size_t>(at)];
        }
        dx.as<T>()[offset] = T(sum_over<T>(here, 0, dy.as<T>(), dy.strides, 0));
      }
    });
  });
}

}  // namespace lamella::kernels
