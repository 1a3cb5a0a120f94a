// Sorting rows: elements become entries of key and position, which are all different, so that any
// correct sort gives the stable order.
#include "lamella/kernels/sort.h"

#include <limits>

#include "lamella/base/parallel.h"
#include "lamella/kernels/sort_entries.h"
#include "lamella/kernels/sort_keys.h"
#include "lamella/kernels/strided_loop.h"
#include "lamella/kernels/view.h"

namespace lamella::kernels {

namespace {

constexpr int64_t kTaskElements = 8192;           // enough for a task of its own
constexpr int64_t kShortRow = 64;                 // sorted whole where only k are wanted
constexpr int64_t kSharedRow = int64_t{1} << 16;  // from here on threads may share a row

bool fits_packed(const TensorView& x, int64_t length) {
  return size_of(x.dtype) <= 4 && length <= std::numeric_limits<uint32_t>::max();
}

int64_t entry_bytes(const TensorView& x, int64_t length) {
  return fits_packed(x, length) ? static_cast<int64_t>(sizeof(PackedEntry))
                                : static_cast<int64_t>(sizeof(WideEntry));
}

// How the rows are shared out: `tasks` runs of rows side by side, or, where there are few long
// ones, one after the other with each cut into `chunks`.
struct Division {
  int64_t rows = 1, length, tasks, chunks;

  Division(const TensorView& x, int axis) : length(x.sizes[static_cast<size_t>(axis)]) {
    for (uint32_t i = 0; i < x.sizes.size(); ++i)
      rows *= static_cast<int>(i) == axis ? 1 : x.sizes[i];
    const int64_t threads = thread_count();
    const bool shared = rows < threads && length >= kSharedRow;
    chunks = shared ? threads : 1;
    tasks =
        shared ? 1 : std::clamp<int64_t>(std::min(rows, rows * length / kTaskElements), 1, threads);
  }
};

// The rows along an axis of x, values and positions.
struct Rows {
  StridedLoop<3> loop;
  int64_t x_step, values_step, positions_step;

  Rows(const TensorView& x, int axis, const TensorView& values, const TensorView& positions) {
    const auto at = static_cast<uint32_t>(axis);
    Axes sizes = x.sizes, a = x.strides, b = values.strides, c = positions.strides;
    x_step = a[at], values_step = b[at], positions_step = c[at];
    sizes.erase(at), a.erase(at), b.erase(at), c.erase(at);
    loop = StridedLoop<3>(sizes, {&a, &b, &c});
  }
};

// Runs body(row of x, row of values, row of positions, the task's scratch) for every row.
template <typename Element, typename Entry, typename Body>
void for_each_row(const Division& division, const Rows& rows, const TensorView& x,
                  const TensorView& values, const TensorView& positions, Entry* scratch,
                  int64_t entries_per_task, Body body) {
  parallel_for(division.tasks, 1, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      rows.loop.walk(task * division.rows / division.tasks,
                     (task + 1) * division.rows / division.tasks, [&](const auto& at) {
                       body(x.as<Element>() + at[0], values.as<Element>() + at[1],
                            positions.as<int64_t>() + at[2], scratch + task * entries_per_task);
                     });
    }
  });
}

// Calls body(Order, Entry) with the types that fit x.
template <typename Body>
void with_types(const char* operation, const TensorView& x, int64_t length, Body&& body) {
  const bool packed = fits_packed(x, length);
  with_order(operation, x.dtype, [&]<typename Order>(Order order) {
    if constexpr (sizeof(typename Order::Key) <= 4) {
      if (packed) return body(order, PackedEntry{});
    }
    body(order, WideEntry{});
  });
}

// An element's entry; the keys of a descending order are turned around.
template <typename Order, typename Entry>
Entry entry_of(typename Order::Element element, int64_t position, bool descending) {
  using Key = typename Order::Key;
  const Key key = Order::key(element);
  return Entry::of(descending ? static_cast<Key>(~key) : key, position);
}

// Fewer than `capacity` entries of the elements [begin, end) of a row, the k smallest among them,
// in no order, in `kept`. Returns how many there are.
template <typename Order, typename Entry>
int64_t keep_smallest(const typename Order::Element* row, int64_t step, int64_t begin, int64_t end,
                      bool descending, int64_t k, Entry* kept, int64_t capacity) {
  int64_t count = 0;
  bool bounded = false;
  Entry bound{};
  for (int64_t i = begin; i < end; ++i) {
    const Entry entry = entry_of<Order, Entry>(row[i * step], i, descending);
    if (bounded && !(entry < bound)) continue;
    kept[count++] = entry;
    if (count < capacity) continue;
    std::nth_element(kept, kept + k - 1, kept + count);
    bound = kept[k - 1];
    bounded = true;
    count = k;
  }
  return count;
}

// The same of a whole row cut into chunks that threads share; `kept` has room for each of them.
template <typename Order, typename Entry>
int64_t keep_smallest_of_chunks(const typename Order::Element* row, int64_t step, int64_t n,
                                int64_t chunks, bool descending, int64_t k, Entry* kept,
                                int64_t capacity) {
  std::vector<int64_t> counts(static_cast<size_t>(chunks));
  parallel_for(chunks, 1, [&](int64_t first, int64_t last) {
    for (int64_t chunk = first; chunk < last; ++chunk) {
      counts[static_cast<size_t>(chunk)] =
          keep_smallest<Order, Entry>(row, step, chunk * n / chunks, (chunk + 1) * n / chunks,
                                      descending, k, kept + chunk * capacity, capacity);
    }
  });
  int64_t count = counts[0];
  for (int64_t chunk = 1; chunk < chunks; ++chunk) {
    const int64_t more = counts[static_cast<size_t>(chunk)];
    std::copy_n(kept + chunk * capacity, more, kept + count);
    count += more;
  }
  return count;
}

int64_t top_k_capacity(int64_t length, int64_t k) {
  return std::min(length + 1, 2 * k + 256);  // short rows never fill it
}

void check_rows(const char* operation, const TensorView& x, const TensorView& values,
                const TensorView& positions) {
  require_same_dtype(operation, "x", x, "values", values);
  require_sizes(operation, "positions", positions, values.sizes);
  if (positions.dtype != DType::Int64) {
    fail(ErrorKind::Type, "[{}] positions must be int64, got {}", operation, name(positions.dtype));
  }
}

}  // namespace

int64_t sort_scratch_bytes(const TensorView& x, int axis) {
  const Division division(x, axis);
  return scratch_aligned(division.tasks * 2 * division.length * entry_bytes(x, division.length));
}

void sort(const TensorView& x, int axis, SortOrder order, const TensorView& values,
          const TensorView& positions, Scratch scratch) {
  check_rows("sort", x, values, positions);
  require_sizes("sort", "values", values, x.sizes);
  if (x.count() == 0) return;
  const Division division(x, axis);
  const Rows rows(x, axis, values, positions);
  const int64_t n = division.length, bytes = sort_scratch_bytes(x, axis);
  const bool descending = order == SortOrder::Descending;
  ScratchParts parts(scratch, bytes);
  void* memory = parts.take(bytes);
  with_types("sort", x, n, [&]<typename Order, typename Entry>(Order, Entry) {
    using Element = typename Order::Element;
    for_each_row<Element>(
        division, rows, x, values, positions, static_cast<Entry*>(memory), 2 * n,
        [&](const Element* row, Element* sorted, int64_t* places, Entry* entries) {
          parallel_for(division.chunks, 1, [&](int64_t first, int64_t last) {
            const int64_t end = last * n / division.chunks;
            for (int64_t i = first * n / division.chunks; i < end; ++i) {
              entries[i] = entry_of<Order, Entry>(row[i * rows.x_step], i, descending);
            }
          });
          if (n < kRadixFrom) {
            std::sort(entries, entries + n);
          } else {
            entries =
                radix_sort(entries, entries + n, n, sizeof(typename Order::Key), division.chunks);
          }
          parallel_for(division.chunks, 1, [&](int64_t first, int64_t last) {
            const int64_t end = last * n / division.chunks;
            for (int64_t i = first * n / division.chunks; i < end; ++i) {
              const int64_t place = entries[i].position();
              sorted[i * rows.values_step] = row[place * rows.x_step];
              places[i * rows.positions_step] = place;
            }
          });
        });
  });
}

int64_t top_k_scratch_bytes(const TensorView& x, int axis, int64_t k) {
  const Division division(x, axis);
  return scratch_aligned(division.tasks * division.chunks * top_k_capacity(division.length, k) *
                         entry_bytes(x, division.length));
}

void top_k(const TensorView& x, int axis, SortOrder order, const TensorView& values,
           const TensorView& positions, Scratch scratch) {
  check_rows("top_k", x, values, positions);
  const Division division(x, axis);
  const int64_t n = division.length, k = values.sizes[static_cast<size_t>(axis)];
  if (k > n) fail(ErrorKind::Value, "[top_k] cannot take {} of {} elements", k, n);
  if (values.count() == 0) return;
  const Rows rows(x, axis, values, positions);
  const int64_t capacity = top_k_capacity(n, k), bytes = top_k_scratch_bytes(x, axis, k);
  const bool descending = order == SortOrder::Descending;
  ScratchParts parts(scratch, bytes);
  void* memory = parts.take(bytes);
  with_types("top_k", x, n, [&]<typename Order, typename Entry>(Order, Entry) {
    using Element = typename Order::Element;
    for_each_row<Element>(
        division, rows, x, values, positions, static_cast<Entry*>(memory),
        division.chunks * capacity,
        [&](const Element* row, Element* best, int64_t* places, Entry* kept) {
          int64_t count;
          if (division.chunks == 1) {
            count =
                keep_smallest<Order, Entry>(row, rows.x_step, 0, n, descending, k, kept, capacity);
          } else {
            count = keep_smallest_of_chunks<Order, Entry>(row, rows.x_step, n, division.chunks,
                                                          descending, k, kept, capacity);
          }
          if (count > kShortRow) std::nth_element(kept, kept + k - 1, kept + count);
          std::sort(kept, kept + (count > kShortRow ? k : count));
          for (int64_t i = 0; i < k; ++i) {
            const int64_t place = kept[i].position();
            best[i * rows.values_step] = row[place * rows.x_step];
            places[i * rows.positions_step] = place;
          }
        });
  });
}

int64_t median_scratch_bytes(const TensorView& x, int axis) {
  const Division division(x, axis);
  return scratch_aligned(division.tasks * division.length * entry_bytes(x, division.length));
}

void median(const TensorView& x, int axis, const TensorView& values, const TensorView& positions,
            Scratch scratch) {
  check_rows("median", x, values, positions);
  if (values.count() == 0) return;
  const Division division(x, axis);
  const Rows rows(x, axis, values, positions);
  const int64_t n = division.length, bytes = median_scratch_bytes(x, axis);
  ScratchParts parts(scratch, bytes);
  void* memory = parts.take(bytes);
  with_types("median", x, n, [&]<typename Order, typename Entry>(Order, Entry) {
    using Element = typename Order::Element;
    for_each_row<Element>(division, rows, x, values, positions, static_cast<Entry*>(memory), n,
                          [&](const Element* row, Element* middle, int64_t* place, Entry* entries) {
                            int64_t chosen = n;  // a NaN
                            for (int64_t i = 0; i < n; ++i) {
                              const Element element = row[i * rows.x_step];
                              if (Order::kHasNaN && chosen == n && Order::is_nan(element))
                                chosen = i;
                              entries[i] = entry_of<Order, Entry>(element, i, false);
                            }
                            if (chosen == n) {
                              std::nth_element(entries, entries + (n - 1) / 2, entries + n);
                              chosen = entries[(n - 1) / 2].position();
                            }
                            *middle = row[chosen * rows.x_step];
                            *place = chosen;
                          });
  });
}

}  // namespace lamella::kernels
