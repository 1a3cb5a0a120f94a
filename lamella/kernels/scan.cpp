// Running sums, products, extrema, and first-order recurrences.
#include "lamella/kernels/scan.h"

#include <cmath>
#include <limits>

#include "lamella/kernels/element.h"
#include "lamella/kernels/scan_strips.h"
#include "lamella/kernels/view.h"

namespace lamella::kernels {

namespace {

// The dtype results of sums and products have.
template <typename T>
using Result = std::conditional_t<std::is_integral_v<T>, int64_t, T>;

// Integers wrap.
template <typename T>
T plus(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}
template <typename T>
T times(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return a * b;
  }
}

template <typename Body>
void with_number(const char* operation, DType dtype, Body&& body) {
  if (is_float(dtype)) return with_float(operation, dtype, body);
  with_integer(operation, dtype == DType::Bool ? DType::UInt8 : dtype, body);
}

void check_result(const char* operation, const TensorView& x, const TensorView& out) {
  require_sizes(operation, "out", out, x.sizes);
  const DType expected = is_float(x.dtype) ? x.dtype : DType::Int64;
  if (out.dtype != expected) {
    fail(ErrorKind::Type, "[{}] out must be {}, got {}", operation, name(expected),
         name(out.dtype));
  }
}

// ---- Sums ----

// Sums of the elements [begin, end) of a strip's lines, added to `base` where there is one; what
// the lines then sum up to alone is left in `sums`.
template <typename T, bool has_base, typename Sum = Accumulator<Result<T>>>
void sum_block(const Strips<2>& strips, const std::array<int64_t, 2>& start, int64_t lines,
               int64_t begin, int64_t end, ScanExtent extent, const T* x, Result<T>* out,
               const Sum* base, Sum* sums) {
  std::fill_n(sums, lines, Sum{0});
  const auto store = [&](int64_t to, int64_t line) {
    out[to] = static_cast<Result<T>>(has_base ? plus(base[line], sums[line]) : sums[line]);
  };
  if (extent == ScanExtent::Inclusive) {
    advance_strip<2>(strips, start, lines, begin, end, [&](int64_t, int64_t line, const auto& at) {
      sums[line] = plus(sums[line], static_cast<Sum>(x[at[0]]));
      store(at[1], line);
    });
  } else {
    advance_strip<2>(strips, start, lines, begin, end, [&](int64_t, int64_t line, const auto& at) {
      const auto element = static_cast<Sum>(x[at[0]]);
      store(at[1], line);
      sums[line] = plus(sums[line], element);
    });
  }
}

template <typename T>
void sum_any_block(const Strips<2>& strips, const std::array<int64_t, 2>& start, int64_t lines,
                   int64_t block, ScanExtent extent, const T* x, Result<T>* out,
                   const Accumulator<Result<T>>* base, Accumulator<Result<T>>* sums) {
  const int64_t begin = block * kScanBlock, end = std::min(strips.length, begin + kScanBlock);
  if (block == 0) {
    sum_block<T, false>(strips, start, lines, begin, end, extent, x, out, base, sums);
  } else {
    sum_block<T, true>(strips, start, lines, begin, end, extent, x, out, base, sums);
  }
}

// The sum of a whole block as sum_block finds it.
template <typename T, typename Sum = Accumulator<Result<T>>>
void total_block(const Strips<2>& strips, const std::array<int64_t, 2>& start, int64_t lines,
                 int64_t block, const T* x, Sum* sums) {
  std::fill_n(sums, lines, Sum{0});
  advance_strip<2>(strips, start, lines, block * kScanBlock, (block + 1) * kScanBlock,
                   [&](int64_t, int64_t line, const auto& at) {
                     sums[line] = plus(sums[line], static_cast<Sum>(x[at[0]]));
                   });
}

// Strips one by one, each block after the other.
template <typename T, typename Sum = Accumulator<Result<T>>>
void sum_strips(const Strips<2>& strips, ScanExtent extent, const T* x, Result<T>* out) {
  const int64_t blocks = (strips.length + kScanBlock - 1) / kScanBlock;
  strips.for_each([&](const auto& start, int64_t lines) {
    Sum base[kStripWidth] = {}, sums[kStripWidth] = {};
    for (int64_t block = 0; block < blocks; ++block) {
      sum_any_block<T>(strips, start, lines, block, extent, x, out, base, sums);
      for (int64_t line = 0; line < lines; ++line) {
        base[line] = block == 0 ? sums[line] : plus(base[line], sums[line]);
      }
    }
  });
}

// The blocks of few long lines side by side: first their sums, then what each begins from.
template <typename T, typename Sum = Accumulator<Result<T>>>
void sum_blocks(const Strips<2>& strips, ScanExtent extent, const T* x, Result<T>* out,
                Sum* bases) {
  const int64_t blocks = (strips.length + kScanBlock - 1) / kScanBlock, count = strips.count();
  const auto base_of = [&](int64_t strip, int64_t block) {
    return bases + (strip * blocks + block) * kStripWidth;
  };
  parallel_for(count * (blocks - 1), 1, [&](int64_t first, int64_t last) {
    for (int64_t item = first; item < last; ++item) {
      const int64_t strip = item / (blocks - 1), block = item % (blocks - 1);
      strips.at(strip, [&](const auto& start, int64_t lines) {
        total_block<T>(strips, start, lines, block, x, base_of(strip, block + 1));
      });
    }
  });
  for (int64_t strip = 0; strip < count; ++strip) {
    for (int64_t block = 2; block < blocks; ++block) {
      for (int64_t line = 0; line < kStripWidth; ++line) {
        Sum& base = base_of(strip, block)[line];
        base = plus(base_of(strip, block - 1)[line], base);
      }
    }
  }
  parallel_for(count * blocks, 1, [&](int64_t first, int64_t last) {
    Sum sums[kStripWidth] = {};
    for (int64_t item = first; item < last; ++item) {
      const int64_t strip = item / blocks, block = item % blocks;
      strips.at(strip, [&](const auto& start, int64_t lines) {
        sum_any_block<T>(strips, start, lines, block, extent, x, out, base_of(strip, block), sums);
      });
    }
  });
}

// Whether there are too few lines for the threads, but blocks enough.
bool shares_blocks(int64_t strips, int64_t length) {
  return strips < thread_count() && length >= 4 * kScanBlock;
}

// ---- Extrema ----

template <typename T, bool largest>
void run_extremum(const Strips<3>& strips, ScanDirection direction, const T* x, T* values,
                  int64_t* positions) {
  using Number = Accumulator<T>;
  strips.for_each([&](const auto& start, int64_t lines) {
    Number best[kStripWidth] = {};
    int64_t place[kStripWidth] = {};
    advance_strip<3>(
        strips, start, lines, 0, strips.length, [&](int64_t i, int64_t line, const auto& at) {
          const auto element = static_cast<Number>(x[at[0]]);
          const bool reaches = largest ? element >= best[line] : element <= best[line];
          if (i == 0 || element != element || reaches) {
            best[line] = element;
            place[line] = direction == ScanDirection::Forward ? i : strips.length - 1 - i;
          }
          values[at[1]] = static_cast<T>(best[line]);
          positions[at[2]] = place[line];
        });
  });
}

double log_add(double a, double b) {
  const double larger = std::max(a, b), smaller = std::min(a, b);
  if (std::isnan(a) || std::isnan(b)) return a + b;
  if (std::isinf(larger)) return larger;
  return larger + std::log1p(std::exp(smaller - larger));
}

}  // namespace

int64_t cumsum_scratch_bytes(const TensorView& x, const ScanOptions& options,
                             const TensorView& out) {
  if (x.count() == 0) return 0;
  const Strips<2> strips({&x, &out}, options);
  if (!shares_blocks(strips.count(), strips.length)) return 0;
  const int64_t blocks = (strips.length + kScanBlock - 1) / kScanBlock;
  return scratch_aligned(strips.count() * blocks * kStripWidth * size_of(compute_dtype(out.dtype)));
}

void cumsum(const TensorView& x, const ScanOptions& options, const TensorView& out,
            Scratch scratch) {
  check_result("cumsum", x, out);
  if (x.count() == 0) return;
  const Strips<2> strips({&x, &out}, options);
  with_number("cumsum", x.dtype, [&]<typename T>(T*) {
    const T* from = x.as<T>();
    Result<T>* to = out.as<Result<T>>();
    if (!shares_blocks(strips.count(), strips.length)) {
      return sum_strips<T>(strips, options.extent, from, to);
    }
    using Sum = Accumulator<Result<T>>;
    const int64_t bytes = cumsum_scratch_bytes(x, options, out);
    ScratchParts parts(scratch, bytes);
    sum_blocks<T>(strips, options.extent, from, to, static_cast<Sum*>(parts.take(bytes)));
  });
}

void cumprod(const TensorView& x, const ScanOptions& options, const TensorView& out) {
  check_result("cumprod", x, out);
  if (x.count() == 0) return;
  const Strips<2> strips({&x, &out}, options);
  const bool exclusive = options.extent == ScanExtent::Exclusive;
  with_number("cumprod", x.dtype, [&]<typename T>(T*) {
    using Product = Accumulator<Result<T>>;
    const T* from = x.as<T>();
    Result<T>* to = out.as<Result<T>>();
    strips.for_each([&](const auto& start, int64_t lines) {
      Product product[kStripWidth] = {};
      std::fill_n(product, lines, Product{1});
      advance_strip<2>(strips, start, lines, 0, strips.length,
                       [&](int64_t, int64_t line, const auto& at) {
                         const Product before = product[line];
                         product[line] = times(before, static_cast<Product>(from[at[0]]));
                         to[at[1]] = static_cast<Result<T>>(exclusive ? before : product[line]);
                       });
    });
  });
}

void running_extremum(Extremum extremum, const TensorView& x, const ScanOptions& options,
                      const TensorView& values, const TensorView& positions) {
  const char* operation = extremum == Extremum::Maximum ? "cummax" : "cummin";
  require_same_dtype(operation, "x", x, "values", values);
  require_sizes(operation, "values", values, x.sizes);
  require_sizes(operation, "positions", positions, x.sizes);
  if (x.count() == 0) return;
  const Strips<3> strips({&x, &values, &positions}, options);
  with_number(operation, x.dtype, [&]<typename T>(T*) {
    int64_t* places = positions.as<int64_t>();
    if (extremum == Extremum::Maximum) {
      run_extremum<T, true>(strips, options.direction, x.as<T>(), values.as<T>(), places);
    } else {
      run_extremum<T, false>(strips, options.direction, x.as<T>(), values.as<T>(), places);
    }
  });
}

void logcumsumexp(const TensorView& x, const ScanOptions& options, const TensorView& out) {
  check_result("logcumsumexp", x, out);
  if (x.count() == 0) return;
  const Strips<2> strips({&x, &out}, options);
  with_float("logcumsumexp", x.dtype, [&]<typename T>(T*) {
    const T* from = x.as<T>();
    T* to = out.as<T>();
    strips.for_each([&](const auto& start, int64_t lines) {
      double total[kStripWidth] = {};
      std::fill_n(total, lines, -std::numeric_limits<double>::infinity());
      advance_strip<2>(
          strips, start, lines, 0, strips.length, [&](int64_t, int64_t line, const auto& at) {
            const auto element = static_cast<double>(static_cast<Accumulator<T>>(from[at[0]]));
            total[line] = log_add(total[line], element);
            to[at[1]] = static_cast<T>(static_cast<Accumulator<T>>(total[line]));
          });
    });
  });
}

void linear_recurrence(const TensorView& factor, const TensorView& addend,
                       const ScanOptions& options, const TensorView& out) {
  require_same_dtype("linear_recurrence", "factor", factor, "addend", addend);
  require_sizes("linear_recurrence", "addend", addend, factor.sizes);
  check_result("linear_recurrence", addend, out);
  if (addend.count() == 0) return;
  const Strips<3> strips({&addend, &factor, &out}, options);
  with_float("linear_recurrence", addend.dtype, [&]<typename T>(T*) {
    using Number = Accumulator<T>;
    const T *add = addend.as<T>(), *scale = factor.as<T>();
    T* to = out.as<T>();
    strips.for_each([&](const auto& start, int64_t lines) {
      Number state[kStripWidth] = {};
      advance_strip<3>(
          strips, start, lines, 0, strips.length, [&](int64_t i, int64_t line, const auto& at) {
            const auto b = static_cast<Number>(add[at[0]]);
            state[line] = i == 0 ? b : b + static_cast<Number>(scale[at[1]]) * state[line];
            to[at[2]] = static_cast<T>(state[line]);
          });
    });
  });
}

}  // namespace lamella::kernels
