// The inner loops of matrix products: a block of the product in registers, and the functions that
// bring matrices into the layout it reads.
#pragma once

#include <string>

#include "lamella/tile/cpu/ir.h"
#include "lamella/types/dtype.h"

namespace lamella::tile {

// The part of the product one microkernel computes: `rows` rows by `vectors` vectors of columns.
struct MicroShape {
  int rows = 0;
  int vectors = 0;
};

// Elements of a vector: one 512-bit register where there is one.
constexpr int64_t matmul_lanes(DType product) {
  return product == DType::Float64 ? 8 : 16;
}

// So few rows compute less than it takes to read b: if it is large, in panels of so many vectors
// that are fetched ahead.
inline constexpr int kRowsReadingOnce = 4;
inline constexpr int kVectorsReadOnce = 4;

// product[i][j] (+)= sum over k of a[i][k] b[k][j]; a is adjacent along k, b and the product along
// j. Strides are in bytes. Of the last vector only `lanes` columns exist: no others are touched.
struct MicroArguments {
  const char* a;
  int64_t a_row_stride;
  const char* b;
  int64_t b_row_stride;
  char* product;
  char* next_product;  // as large, of the next call: memory to have at hand by then
  int64_t product_row_stride;
  int64_t depth;
  int64_t lanes;
  int64_t b_is_padded;  // not 0: of b all columns of the last vector may be read
  int64_t accumulate;   // 0: the product starts at 0
};
using MicroFunction = void(const MicroArguments* arguments);
std::string micro_function_name(MicroShape shape);
// One function, of that name.
void emit_microkernel(Ir& ir, DType product, MicroShape shape);

// Copies rows of `columns` adjacent elements, converting them to the product's dtype; and the same
// with rows and columns exchanged in the target. Rows of the target are filled up with zeros to
// whole vectors of matmul_lanes(). Strides are in bytes.
struct PackArguments {
  char* target;
  int64_t target_row_stride;
  const char* source;
  int64_t source_row_stride;
  int64_t rows;     // of the source
  int64_t columns;  // of the source
};
using PackFunction = void(const PackArguments* arguments);
inline constexpr const char* kCopyRowsFunction = "lamella_copy_rows";
inline constexpr const char* kTransposeFunction = "lamella_transpose";
void emit_packing(Ir& ir, DType input);

}  // namespace lamella::tile
