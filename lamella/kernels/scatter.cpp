// Writing at positions that are data. Updates of one place are combined in their row-major order,
// whatever the number of threads: work is divided by destination, never by update.
#include <cstring>

#include "lamella/base/error.h"
#include "lamella/base/parallel.h"
#include "lamella/kernels/convert.h"
#include "lamella/kernels/element.h"
#include "lamella/kernels/indexing.h"
#include "lamella/kernels/indexing_checks.h"
#include "lamella/kernels/strided_loop.h"
#include "lamella/kernels/view.h"

namespace lamella::kernels {

namespace {

constexpr int64_t kRowChunk = 256;
constexpr int64_t kGrain = 16384;  // elements

// At each point of `outer` (operands: out, updates, indices), the points of `updates` (operands:
// updates, indices) are taken in row-major order; each index serves all points of `inner`
// (operands: out, updates).
struct ScatterLoops {
  StridedLoop<3> outer;
  StridedLoop<2> updates;
  StridedLoop<2> inner;
  int64_t axis_stride;  // of out along the scattered axis
  int64_t axis_size;
};

template <typename T>
T smaller(T a, T b) {
  return a < b || a != a ? a : b;
}
template <typename T>
T larger(T a, T b) {
  return a > b || a != a ? a : b;
}

// Integers wrap.
template <typename T>
T sum(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Bits = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Bits>(a) + static_cast<Bits>(b));
  } else {
    return a + b;
  }
}
template <typename T>
T product(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return a * b;
  }
}

// Runs combine(out element, update) over all updates.
template <typename Out, typename Update, typename Combine>
void run(const ScatterLoops& loops, const CheckedIndices& indices, Out* out, const Update* updates,
         Combine combine) {
  StridedLoop<2> rows = loops.inner;
  int64_t row = 1, out_step = 1, update_step = 1;
  if (rows.rank() > 0) {
    row = rows.sizes.back();
    out_step = rows.strides.back()[0];
    update_step = rows.strides.back()[1];
    rows.erase(rows.sizes.size() - 1);
  }
  const int64_t chunks = (row + kRowChunk - 1) / kRowChunk;
  const int64_t row_count = rows.count();
  const int64_t update_count = loops.updates.count();
  // One item is a place on the axes that no index decides; one task is an item and a range of the
  // indexed axis.
  const int64_t items = loops.outer.count() * row_count * chunks;
  const int64_t item_work = update_count * std::min(row, kRowChunk);
  const int64_t ranges = items >= 2 * thread_count() || item_work < kGrain
                             ? 1
                             : std::min<int64_t>(thread_count(), loops.axis_size);
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, item_work));

  parallel_for(items * ranges, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t range = task % ranges, item = task / ranges;
      const int64_t low = range * loops.axis_size / ranges;
      const int64_t high = (range + 1) * loops.axis_size / ranges;
      const int64_t first = item % chunks * kRowChunk;
      const int64_t length = std::min(kRowChunk, row - first);
      const int64_t row_at = item / chunks % row_count, outer_at = item / chunks / row_count;
      int64_t out_base = first * out_step, update_base = first * update_step, index_base = 0;
      rows.walk(row_at, row_at + 1, [&](const auto& at) {
        out_base += at[0];
        update_base += at[1];
      });
      loops.outer.walk(outer_at, outer_at + 1, [&](const auto& at) {
        out_base += at[0];
        update_base += at[1];
        index_base += at[2];
      });
      loops.updates.walk(0, update_count, [&](const auto& at) {
        const int64_t index = indices.at(index_base + at[1]);
        if (index < low || index >= high) return;
        Out* to = out + out_base + index * loops.axis_stride;
        const Update* from = updates + update_base + at[0];
        if (out_step == 1 && update_step == 1) {
          for (int64_t i = 0; i < length; ++i) combine(to[i], from[i]);
        } else {
          for (int64_t i = 0; i < length; ++i) combine(to[i * out_step], from[i * update_step]);
        }
      });
    }
  });
}

template <typename T>
void run_mode(ScatterMode mode, const ScatterLoops& loops, const CheckedIndices& indices,
              const TensorView& updates, const TensorView& out) {
  // Out is float32 where updates are 16-bit floats.
  using Sum = Accumulator<T>;
  const auto go = [&](auto combine) {
    run(loops, indices, out.as<Sum>(), updates.as<T>(),
        [combine](Sum& to, T from) { to = combine(to, static_cast<Sum>(from)); });
  };
  switch (mode) {
    case ScatterMode::Add:
      return go([](Sum a, Sum b) { return sum(a, b); });
    case ScatterMode::Multiply:
      return go([](Sum a, Sum b) { return product(a, b); });
    case ScatterMode::Minimum:
      return go([](Sum a, Sum b) { return smaller(a, b); });
    case ScatterMode::Maximum:
      return go([](Sum a, Sum b) { return larger(a, b); });
    case ScatterMode::Set:
      break;
  }
  LAMELLA_CHECK(false);
}

void run(ScatterMode mode, const ScatterLoops& loops, const CheckedIndices& indices,
         const TensorView& updates, const TensorView& out, const IndexingOptions& options) {
  if (mode == ScatterMode::Set) {
    with_element(out.dtype, [&]<typename T>(T*) {
      run(loops, indices, out.as<T>(), updates.as<T>(), [](T& to, T from) { to = from; });
    });
  } else if (is_float(updates.dtype)) {
    with_float(options.operation, updates.dtype,
               [&]<typename T>(T*) { run_mode<T>(mode, loops, indices, updates, out); });
  } else {
    with_integer(options.operation, updates.dtype,
                 [&]<typename T>(T*) { run_mode<T>(mode, loops, indices, updates, out); });
  }
}

// Makes the loops over `out` and runs them; 16-bit floats go through a float32 copy of it.
template <typename MakeLoops>
void scatter_into(ScatterMode mode, const CheckedIndices& indices, const TensorView& updates,
                  const TensorView& out, const IndexingOptions& options, Scratch scratch,
                  MakeLoops make_loops) {
  if (updates.count() == 0 || out.count() == 0) return;
  if (scatter_scratch_bytes(mode, out) == 0) {
    return run(mode, make_loops(out), indices, updates, out, options);
  }
  ScratchParts parts(scratch, scatter_scratch_bytes(mode, out));
  TensorView wide = row_major_view(nullptr, DType::Float32, out.sizes);
  wide.data = parts.take(byte_count(wide));
  convert(out, wide);
  run(mode, make_loops(wide), indices, updates, wide, options);
  convert(wide, out);
}

void check_dtypes(ScatterMode mode, const TensorView& updates, const TensorView& out,
                  const IndexingOptions& options) {
  require_same_dtype(options.operation, "updates", updates, "out", out);
  if (mode == ScatterMode::Set) return;
  if (!is_computable(out.dtype) || out.dtype == DType::Bool) {
    fail(ErrorKind::Type, "[{}] cannot compute with {}", options.operation, name(out.dtype));
  }
}

}  // namespace

int64_t scatter_scratch_bytes(ScatterMode mode, const TensorView& out) {
  const bool wide = (mode == ScatterMode::Add || mode == ScatterMode::Multiply ||
                     mode == ScatterMode::Minimum || mode == ScatterMode::Maximum) &&
                    is_low_precision(out.dtype);
  return wide ? scratch_aligned(out.count() * size_of(DType::Float32)) : 0;
}

void scatter(ScatterMode mode, const TensorView& indices, const TensorView& updates,
             const TensorView& out, const IndexingOptions& options, Scratch scratch) {
  check_axis(out, options);
  check_dtypes(mode, updates, out, options);
  require_sizes(options.operation, "updates", updates,
                gathered_sizes(out.sizes, options.axis, indices.sizes, options));
  const size_t axis = static_cast<size_t>(options.axis);
  const CheckedIndices checked(indices, out.sizes[axis], options);

  const size_t indices_end = axis + indices.sizes.size();
  const AxisRange before(updates, 0, axis), middle(updates, axis, indices_end),
      after(updates, indices_end, updates.sizes.size());
  const Axes no_index(static_cast<uint32_t>(axis), 0);
  scatter_into(mode, checked, updates, out, options, scratch, [&](const TensorView& target) {
    const AxisRange target_before(target, 0, axis),
        target_after(target, axis + 1, target.sizes.size());
    return ScatterLoops{
        .outer = {before.sizes, {&target_before.strides, &before.strides, &no_index}},
        .updates = StridedLoop<2>::in_order(middle.sizes, {&middle.strides, &indices.strides}),
        .inner = {after.sizes, {&target_after.strides, &after.strides}},
        .axis_stride = target.strides[axis],
        .axis_size = target.sizes[axis]};
  });
}

void scatter_elements(ScatterMode mode, const TensorView& indices, const TensorView& updates,
                      const TensorView& out, const IndexingOptions& options, Scratch scratch) {
  check_axis(out, options);
  check_dtypes(mode, updates, out, options);
  const size_t axis = static_cast<size_t>(options.axis);
  bool fits = indices.rank() == out.rank() && updates.rank() == out.rank();
  for (size_t i = 0; i < out.sizes.size() && fits; ++i) {
    fits = indices.sizes[i] <= updates.sizes[i] && (i == axis || indices.sizes[i] <= out.sizes[i]);
  }
  if (!fits) {
    fail(ErrorKind::Value,
         "[{}] indices must be no larger than updates, nor than out on every axis but {} (indices: "
         "{}, updates: {}, out: {})",
         options.operation, options.axis, text(indices), text(updates), text(out));
  }
  const CheckedIndices checked(indices, out.sizes[axis], options);
  if (indices.count() == 0) return;
  const auto without_axis = [&](Axes axes) {
    axes.erase(static_cast<uint32_t>(axis));
    return axes;
  };
  const Axes sizes = without_axis(indices.sizes), update_strides = without_axis(updates.strides),
             index_strides = without_axis(indices.strides);
  const Axes update_step = {updates.strides[axis]}, index_step = {indices.strides[axis]};
  scatter_into(mode, checked, updates, out, options, scratch, [&](const TensorView& target) {
    const Axes out_strides = without_axis(target.strides);
    return ScatterLoops{
        .outer = {sizes, {&out_strides, &update_strides, &index_strides}},
        .updates = StridedLoop<2>::in_order({indices.sizes[axis]}, {&update_step, &index_step}),
        .inner = {},
        .axis_stride = target.strides[axis],
        .axis_size = target.sizes[axis]};
  });
}

}  // namespace lamella::kernels
