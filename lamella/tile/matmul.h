// Matrix products as tiles: C = A B for batches of matrices, followed by an elementwise program on
// each tile of the product while it is in cache.
//
// Bit contract: each element of the product is fma(a[k], b[k], sum) for k in order, from +0, in
// float64 for float64 inputs and in float32 for float32, float16 and bfloat16 (whose values are
// exact in float32). The bits depend on nothing but the row, the column and k.
#pragma once

#include <vector>

#include "lamella/base/api.h"
#include "lamella/tile/program.h"

namespace lamella::tile {

struct MatmulProgram {
  DType input = DType::Float32;  // of A and B: a float
  int batch_rank = 0;
  // What happens to the product: an elementwise program over (batch axes, rows, columns) whose
  // buffer 0 is the product. Without instructions the product itself is the result.
  Program epilogue;

  friend bool operator==(const MatmulProgram&, const MatmulProgram&) = default;
};

// The dtype of the product.
constexpr DType product_dtype(DType input) {
  return compute_dtype(input);
}

struct MatmulLaunch {
  // Strides in elements; any value, also 0 for batches that share a matrix.
  struct Matrix {
    void* data = nullptr;
    std::vector<int64_t> batch_strides;
    int64_t row_stride = 0;
    int64_t column_stride = 0;
  };
  std::vector<int64_t> batch;  // batch_rank sizes
  int64_t rows = 0;            // of A and the product
  int64_t columns = 0;         // of B and the product
  int64_t depth = 0;           // columns of A, rows of B
  Matrix a, b;
  // Without an epilogue, of the product's dtype and with column_stride 1.
  Matrix product;
  // With one: its buffers from number 1 on, and its scalars.
  std::vector<Launch::Buffer> buffers;
  std::vector<uint64_t> scalars;
};

// Throws Internal with the rule that is broken.
LAMELLA_API void verify(const MatmulProgram& program);

// The product by the definition, then the interpreted epilogue.
LAMELLA_API void interpret(const MatmulProgram& program, const MatmulLaunch& launch);

}  // namespace lamella::tile
