// The matrix product for the integers and bool: packed panels, a register tile, sums in the order
// of k.
#include <cstring>
#include <vector>

#include "lamella/base/parallel.h"
#include "lamella/kernels/element.h"
#include "lamella/kernels/matmul_problem.h"
#include "lamella/kernels/vectorized.h"

namespace lamella::kernels {

namespace {

constexpr int64_t kRows = 4, kColumns = 16, kDepth = 256;

// Integers wrap in an unsigned accumulator, wide enough that the product of two does not promote to
// a signed type.
template <typename T>
struct Arithmetic {
  using Sum = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  static Sum load(T value) { return static_cast<Sum>(value); }
  static void add_product(Sum& sum, Sum a, Sum b) { sum += a * b; }
  static T store(Sum sum) { return static_cast<T>(sum); }
};
template <>
struct Arithmetic<bool> {
  using Sum = uint32_t;
  static Sum load(bool value) { return value ? 1 : 0; }
  static void add_product(Sum& sum, Sum a, Sum b) { sum |= a & b; }
  static bool store(Sum sum) { return sum != 0; }
};

// sums[i][j] += sum over k of a[k][i] * b[k][j], in the order of k.
template <typename T, typename Sum = typename Arithmetic<T>::Sum>
[[gnu::always_inline]] inline void tile(const Sum* a, const Sum* b, int64_t depth, Sum* sums) {
  Sum local[kRows][kColumns];
  std::memcpy(local, sums, sizeof local);
  for (int64_t k = 0; k < depth; ++k) {
    for (int64_t i = 0; i < kRows; ++i) {
      for (int64_t j = 0; j < kColumns; ++j) {
        Arithmetic<T>::add_product(local[i][j], a[k * kRows + i], b[k * kColumns + j]);
      }
    }
  }
  std::memcpy(sums, local, sizeof local);
}

LAMELLA_VECTORIZED void tile_u32(const uint32_t* a, const uint32_t* b, int64_t depth,
                                 uint32_t* sums) {
  tile<uint32_t>(a, b, depth, sums);
}
LAMELLA_VECTORIZED void tile_u64(const uint64_t* a, const uint64_t* b, int64_t depth,
                                 uint64_t* sums) {
  tile<uint64_t>(a, b, depth, sums);
}
LAMELLA_VECTORIZED void tile_bool(const uint32_t* a, const uint32_t* b, int64_t depth,
                                  uint32_t* sums) {
  tile<bool>(a, b, depth, sums);
}

template <typename T, typename Sum>
void run_tile(const Sum* a, const Sum* b, int64_t depth, Sum* sums) {
  if constexpr (std::is_same_v<T, bool>) return tile_bool(a, b, depth, sums);
  if constexpr (std::is_same_v<Sum, uint32_t> && !std::is_same_v<T, bool>) {
    return tile_u32(a, b, depth, sums);
  }
  if constexpr (std::is_same_v<Sum, uint64_t>) return tile_u64(a, b, depth, sums);
}

// packed[k * width + i] = source[i * across + k * along] for k < depth, i < count; the rest of a
// row of `width` is 0.
template <typename T, typename Sum>
void pack(const T* source, int64_t across, int64_t along, int64_t count, int64_t depth,
          int64_t width, Sum* packed) {
  for (int64_t k = 0; k < depth; ++k) {
    for (int64_t i = 0; i < count; ++i) {
      packed[k * width + i] = Arithmetic<T>::load(source[i * across + k * along]);
    }
    std::fill(packed + k * width + count, packed + (k + 1) * width, Sum{});
  }
}

// One panel of kColumns columns of one product: B's panel is packed once, A's rows go by.
template <typename T>
void multiply_panel(const MatmulProblem& problem, const T* a, const T* b, T* out,
                    int64_t first_column) {
  using Sum = typename Arithmetic<T>::Sum;
  const int64_t columns = std::min(kColumns, problem.n - first_column);
  const int64_t row_tiles = (problem.m + kRows - 1) / kRows;
  std::vector<Sum> sums(static_cast<size_t>(row_tiles * kRows * kColumns));
  std::vector<Sum> packed_a(static_cast<size_t>(kDepth * kRows));
  std::vector<Sum> packed_b(static_cast<size_t>(kDepth * kColumns));
  for (int64_t k = 0; k < problem.k; k += kDepth) {
    const int64_t depth = std::min(kDepth, problem.k - k);
    pack(b + k * problem.b.row_stride + first_column * problem.b.column_stride,
         problem.b.column_stride, problem.b.row_stride, columns, depth, kColumns, packed_b.data());
    for (int64_t t = 0; t < row_tiles; ++t) {
      const int64_t rows = std::min(kRows, problem.m - t * kRows);
      pack(a + t * kRows * problem.a.row_stride + k * problem.a.column_stride, problem.a.row_stride,
           problem.a.column_stride, rows, depth, kRows, packed_a.data());
      run_tile<T>(packed_a.data(), packed_b.data(), depth, sums.data() + t * kRows * kColumns);
    }
  }
  const T* bias = static_cast<const T*>(problem.bias);
  for (int64_t i = 0; i < problem.m; ++i) {
    T* row = out + i * problem.out.row_stride + first_column * problem.out.column_stride;
    for (int64_t j = 0; j < columns; ++j) {
      Sum sum = sums[static_cast<size_t>(i * kColumns + j)];
      if (problem.has_bias) {
        const Sum added = Arithmetic<T>::load(bias[(first_column + j) * problem.bias_stride]);
        if constexpr (std::is_same_v<T, bool>) {
          sum |= added;
        } else {
          sum += added;
        }
      }
      row[j * problem.out.column_stride] = Arithmetic<T>::store(sum);
    }
  }
}

template <typename T>
void multiply(const MatmulProblem& problem) {
  const int64_t panels = (problem.n + kColumns - 1) / kColumns;
  const int64_t work = std::max<int64_t>(problem.m * problem.k * kColumns, 1);
  parallel_for(problem.batch_count() * panels, std::max<int64_t>(1, 65536 / work),
               [&](int64_t begin, int64_t end) {
                 for (int64_t item = begin; item < end; ++item) {
                   int64_t a = 0, b = 0, out = 0, rest = item / panels;
                   for (uint32_t axis = problem.batch.size(); axis-- > 0;) {
                     const int64_t at = rest % problem.batch[axis];
                     rest /= problem.batch[axis];
                     a += at * problem.a_batch_strides[axis];
                     b += at * problem.b_batch_strides[axis];
                     out += at * problem.out_batch_strides[axis];
                   }
                   multiply_panel(problem, static_cast<const T*>(problem.a.data) + a,
                                  static_cast<const T*>(problem.b.data) + b,
                                  static_cast<T*>(problem.out.data) + out,
                                  item % panels * kColumns);
                 }
               });
}

}  // namespace

void matmul_native(const MatmulProblem& problem) {
  const DType dtype = problem.dtype;
  if (dtype == DType::Bool) {
    multiply<bool>(problem);
  } else {
    with_integer("matmul", dtype, [&]<typename T>(T*) { multiply<T>(problem); });
  }
}

}  // namespace lamella::kernels
