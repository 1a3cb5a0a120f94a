// Binary search.
#include "lamella/kernels/search.h"

#include "lamella/base/parallel.h"
#include "lamella/kernels/sort_keys.h"
#include "lamella/kernels/strided_loop.h"
#include "lamella/kernels/view.h"

namespace lamella::kernels {

namespace {

// The number of elements that stand before `key`.
template <typename Order>
int64_t place_of(const typename Order::Element* row, int64_t step, int64_t n,
                 typename Order::Key key, SearchSide side) {
  int64_t low = 0, high = n;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    const auto there = Order::key(row[middle * step]);
    const bool before = side == SearchSide::Left ? there < key : there <= key;
    (before ? low : high) = before ? middle + 1 : middle;
  }
  return low;
}

}  // namespace

void search_sorted(const TensorView& sequence, const TensorView& values, SearchSide side,
                   const TensorView& out) {
  require_same_dtype("search_sorted", "sequence", sequence, "values", values);
  require_sizes("search_sorted", "out", out, values.sizes);
  if (values.count() == 0) return;
  // Along which the sequence does not move: the values' last axis, or all of them.
  Axes rows(values.sizes.size(), 0);
  for (uint32_t i = 0; i + 1 < sequence.sizes.size(); ++i) rows[i] = sequence.strides[i];
  const int64_t n = sequence.sizes.back(), step = sequence.strides.back();
  const StridedLoop<3> loop(values.sizes, {&values.strides, &rows, &out.strides});
  with_order("search_sorted", values.dtype, [&]<typename Order>(Order) {
    using Element = typename Order::Element;
    parallel_for(loop.count(), 1024, [&](int64_t begin, int64_t end) {
      loop.walk(begin, end, [&](const auto& at) {
        const auto key = Order::key(values.as<Element>()[at[0]]);
        out.as<int64_t>()[at[2]] =
            place_of<Order>(sequence.as<Element>() + at[1], step, n, key, side);
      });
    });
  });
}

}  // namespace lamella::kernels
