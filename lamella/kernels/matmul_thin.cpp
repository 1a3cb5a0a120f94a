// Products with at most four rows (or columns) in float32 or bfloat16: the large matrix is read
// once, as fast as memory gives it. Sums are one chain of fused multiply-adds a lane, cut and
// combined by shape alone.
#include <algorithm>
#include <cmath>

#include "lamella/base/parallel.h"
#include "lamella/kernels/element.h"
#include "lamella/kernels/matmul_problem.h"
#include "lamella/kernels/vectorized.h"

namespace lamella::kernels {

namespace {

constexpr int64_t kMostRows = 4;
constexpr int64_t kColumns = 512;  // of a task where columns are adjacent
constexpr int64_t kLanes = 32;     // of a dot product where k is
constexpr int64_t kDots = 16;      // columns of a task where k is adjacent
constexpr int64_t kGrain = 32768;  // elements of the large matrix

// out[r, j] = sum over k of x[r, k] * matrix[k, j] + bias for r < rows: the problem itself, or its
// transpose.
struct ThinProblem {
  int64_t rows, columns, k;
  Matrix x, matrix, out;
  const void* bias;
  int64_t bias_row_stride, bias_column_stride;

  explicit ThinProblem(const MatmulProblem& problem)
      : rows(problem.m),
        columns(problem.n),
        k(problem.k),
        x(problem.a),
        matrix(problem.b),
        out(problem.out),
        bias(problem.has_bias ? problem.bias : nullptr),
        bias_row_stride(0),
        bias_column_stride(problem.bias_stride) {
    if (problem.m <= problem.n) return;
    std::swap(rows, columns);
    std::swap(x, matrix);
    std::swap(bias_row_stride, bias_column_stride);
    for (Matrix* part : {&x, &matrix, &out}) std::swap(part->row_stride, part->column_stride);
  }

  bool columns_adjacent() const { return columns == 1 || matrix.column_stride == 1; }
  // Elements of k that one task adds up; depends on the shape alone.
  int64_t block() const {
    if (columns_adjacent()) return columns <= 4 * kColumns ? 512 : k;
    return columns < 4 * kDots ? 8192 : k;
  }
  int64_t blocks() const { return (k + block() - 1) / block(); }
};

[[gnu::always_inline]] inline float widen(float value) {
  return value;
}
[[gnu::always_inline]] inline float widen(BFloat16 value) {
  return static_cast<float>(value);
}

// sums[r][j] += x[r][i] * matrix[i][j] in the order of i, for j < count.
template <int Rows, typename T>
[[gnu::always_inline]] inline void add_products(const float* __restrict x, int64_t x_stride,
                                                const T* __restrict matrix, int64_t stride,
                                                int64_t k, int64_t count, float* __restrict sums) {
  int64_t i = 0;
  for (; i + 4 <= k; i += 4) {
    const T* row = matrix + i * stride;
    for (int r = 0; r < Rows; ++r) {
      const float* factor = x + r * x_stride + i;
      float* sum = sums + r * kColumns;
      for (int64_t j = 0; j < count; ++j) {
        float s = std::fma(factor[0], widen(row[j]), sum[j]);
        s = std::fma(factor[1], widen(row[stride + j]), s);
        s = std::fma(factor[2], widen(row[2 * stride + j]), s);
        sum[j] = std::fma(factor[3], widen(row[3 * stride + j]), s);
      }
    }
  }
  for (; i < k; ++i) {
    for (int r = 0; r < Rows; ++r) {
      for (int64_t j = 0; j < count; ++j) {
        float& sum = sums[r * kColumns + j];
        sum = std::fma(x[r * x_stride + i], widen(matrix[i * stride + j]), sum);
      }
    }
  }
}

// sums[r] = the dot product of x[r] and the column, over kLanes interleaved chains that are added
// pairwise.
template <int Rows, typename T>
[[gnu::always_inline]] inline void dot(const float* __restrict x, int64_t x_stride,
                                       const T* __restrict column, int64_t k,
                                       float* __restrict sums) {
  float lanes[Rows][kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= k; i += kLanes) {
    for (int r = 0; r < Rows; ++r) {
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        lanes[r][lane] =
            std::fma(x[r * x_stride + i + lane], widen(column[i + lane]), lanes[r][lane]);
      }
    }
  }
  for (int r = 0; r < Rows; ++r) {
    for (int64_t lane = 0; i + lane < k; ++lane) {
      lanes[r][lane] =
          std::fma(x[r * x_stride + i + lane], widen(column[i + lane]), lanes[r][lane]);
    }
    for (int64_t half = kLanes / 2; half > 0; half /= 2) {
      for (int64_t lane = 0; lane < half; ++lane) lanes[r][lane] += lanes[r][lane + half];
    }
    sums[r] = lanes[r][0];
  }
}

template <typename T>
[[gnu::always_inline]] inline void add_products_of(int64_t rows, const float* x, int64_t x_stride,
                                                   const T* matrix, int64_t stride, int64_t k,
                                                   int64_t count, float* sums) {
  switch (rows) {
    case 1:
      return add_products<1>(x, x_stride, matrix, stride, k, count, sums);
    case 2:
      return add_products<2>(x, x_stride, matrix, stride, k, count, sums);
    case 3:
      return add_products<3>(x, x_stride, matrix, stride, k, count, sums);
    default:
      return add_products<4>(x, x_stride, matrix, stride, k, count, sums);
  }
}

template <typename T>
[[gnu::always_inline]] inline void dot_of(int64_t rows, const float* x, int64_t x_stride,
                                          const T* column, int64_t k, float* sums) {
  switch (rows) {
    case 1:
      return dot<1>(x, x_stride, column, k, sums);
    case 2:
      return dot<2>(x, x_stride, column, k, sums);
    case 3:
      return dot<3>(x, x_stride, column, k, sums);
    default:
      return dot<4>(x, x_stride, column, k, sums);
  }
}

LAMELLA_VECTORIZED void add_products_of_rows(int64_t rows, const float* x, int64_t x_stride,
                                             const float* matrix, int64_t stride, int64_t k,
                                             int64_t count, float* sums) {
  add_products_of(rows, x, x_stride, matrix, stride, k, count, sums);
}
LAMELLA_VECTORIZED void add_products_of_rows(int64_t rows, const float* x, int64_t x_stride,
                                             const BFloat16* matrix, int64_t stride, int64_t k,
                                             int64_t count, float* sums) {
  add_products_of(rows, x, x_stride, matrix, stride, k, count, sums);
}
LAMELLA_VECTORIZED void dot_of_rows(int64_t rows, const float* x, int64_t x_stride,
                                    const float* column, int64_t k, float* sums) {
  dot_of(rows, x, x_stride, column, k, sums);
}
LAMELLA_VECTORIZED void dot_of_rows(int64_t rows, const float* x, int64_t x_stride,
                                    const BFloat16* column, int64_t k, float* sums) {
  dot_of(rows, x, x_stride, column, k, sums);
}

// Stores a finished sum.
template <typename T>
void store(const ThinProblem& problem, int64_t row, int64_t column, float sum) {
  if (problem.bias != nullptr) {
    sum += widen(static_cast<const T*>(
        problem.bias)[row * problem.bias_row_stride + column * problem.bias_column_stride]);
  }
  static_cast<T*>(
      problem.out.data)[row * problem.out.row_stride + column * problem.out.column_stride] = T(sum);
}

// The columns [first, first + count) over one block of k: keep(row, column, sum) for each result.
template <typename T, typename Keep>
void multiply_columns(const ThinProblem& problem, const float* x, int64_t block, int64_t first,
                      int64_t count, Keep&& keep) {
  const int64_t begin = block * problem.block();
  const int64_t depth = std::min(problem.block(), problem.k - begin);
  const T* matrix = static_cast<const T*>(problem.matrix.data) + begin * problem.matrix.row_stride +
                    first * problem.matrix.column_stride;
  float sums[kMostRows * kColumns];
  if (problem.columns_adjacent()) {
    for (int64_t r = 0; r < problem.rows; ++r) std::fill_n(sums + r * kColumns, count, 0.0f);
    add_products_of_rows(problem.rows, x + begin, problem.k, matrix, problem.matrix.row_stride,
                         depth, count, sums);
  } else {
    for (int64_t j = 0; j < count; ++j) {
      float results[kMostRows];
      dot_of_rows(problem.rows, x + begin, problem.k, matrix + j * problem.matrix.column_stride,
                  depth, results);
      for (int64_t r = 0; r < problem.rows; ++r) sums[r * kColumns + j] = results[r];
    }
  }
  for (int64_t r = 0; r < problem.rows; ++r) {
    for (int64_t j = 0; j < count; ++j) keep(r, first + j, sums[r * kColumns + j]);
  }
}

int64_t partial_bytes(const ThinProblem& problem) {
  if (problem.blocks() == 1) return 0;
  return scratch_aligned(problem.blocks() * problem.rows * problem.columns *
                         static_cast<int64_t>(sizeof(float)));
}

// x as adjacent float32 rows.
int64_t packed_bytes(const ThinProblem& problem, DType dtype) {
  const bool packed = dtype == DType::Float32 && problem.x.column_stride == 1 &&
                      (problem.rows == 1 || problem.x.row_stride == problem.k);
  if (packed) return 0;
  return scratch_aligned(problem.rows * problem.k * static_cast<int64_t>(sizeof(float)));
}

template <typename T>
void multiply(const ThinProblem& thin, const float* x, float* partial) {
  const int64_t width = thin.columns_adjacent() ? kColumns : kDots;
  const int64_t chunks = (thin.columns + width - 1) / width, blocks = thin.blocks();
  const int64_t results = thin.rows * thin.columns;
  const int64_t task_elements = std::min(thin.block(), thin.k) * std::min(width, thin.columns);
  const int64_t grain = std::max<int64_t>(1, kGrain / task_elements);
  parallel_for(chunks * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t block = task / chunks, first = task % chunks * width;
      const int64_t count = std::min(width, thin.columns - first);
      multiply_columns<T>(thin, x, block, first, count,
                          [&](int64_t row, int64_t column, float sum) {
                            if (partial == nullptr) return store<T>(thin, row, column, sum);
                            partial[block * results + row * thin.columns + column] = sum;
                          });
    }
  });
  if (partial == nullptr) return;
  for (int64_t row = 0; row < thin.rows; ++row) {
    for (int64_t column = 0; column < thin.columns; ++column) {
      const float* sums = partial + row * thin.columns + column;
      float sum = sums[0];
      for (int64_t block = 1; block < blocks; ++block) sum += sums[block * results];
      store<T>(thin, row, column, sum);
    }
  }
}

template <typename T>
void pack_rows(const ThinProblem& thin, float* packed) {
  const T* x = static_cast<const T*>(thin.x.data);
  for (int64_t r = 0; r < thin.rows; ++r) {
    for (int64_t i = 0; i < thin.k; ++i) {
      packed[r * thin.k + i] = widen(x[r * thin.x.row_stride + i * thin.x.column_stride]);
    }
  }
}

}  // namespace

bool is_thin(const MatmulProblem& problem) {
  if (problem.dtype != DType::Float32 && problem.dtype != DType::BFloat16) return false;
  const ThinProblem thin(problem);
  return thin.rows <= kMostRows && problem.batch.empty() &&
         (thin.columns_adjacent() || thin.matrix.row_stride == 1);
}

int64_t matmul_thin_scratch_bytes(const MatmulProblem& problem) {
  const ThinProblem thin(problem);
  return packed_bytes(thin, problem.dtype) + partial_bytes(thin);
}

void matmul_thin(const MatmulProblem& problem, Scratch scratch) {
  const ThinProblem thin(problem);
  ScratchParts parts(scratch, matmul_thin_scratch_bytes(problem));
  const auto run = [&]<typename T>(T*) {
    const float* x = static_cast<const float*>(thin.x.data);
    if (packed_bytes(thin, problem.dtype) > 0) {
      float* packed = static_cast<float*>(parts.take(packed_bytes(thin, problem.dtype)));
      pack_rows<T>(thin, packed);
      x = packed;
    }
    float* partial =
        thin.blocks() > 1 ? static_cast<float*>(parts.take(partial_bytes(thin))) : nullptr;
    multiply<T>(thin, x, partial);
  };
  problem.dtype == DType::Float32 ? run(static_cast<float*>(nullptr))
                                  : run(static_cast<BFloat16*>(nullptr));
}

}  // namespace lamella::kernels
