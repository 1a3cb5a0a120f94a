// A matrix product brought to the one form its kernels take.
#pragma once

#include "lamella/device/tensor_view.h"
#include "lamella/kernels/scratch.h"

namespace lamella::kernels {

// A stack of matrices: rows and columns strides in elements.
struct Matrix {
  void* data = nullptr;
  int64_t row_stride = 0;
  int64_t column_stride = 0;
};

// out[b] = a[b] * b[b] (+ bias) for the points of the batch loop. Batch axes of size 1 are gone,
// the others merged where they allow it, also into m.
struct MatmulProblem {
  DType dtype = DType::Float32;
  int64_t m = 0, n = 0, k = 0;
  Matrix a, b, out;
  bool has_bias = false;
  const void* bias = nullptr;
  int64_t bias_stride = 0;
  Axes batch;  // outermost first
  Axes a_batch_strides, b_batch_strides, out_batch_strides;

  int64_t batch_count() const {
    int64_t count = 1;
    for (int64_t size : batch) count *= size;
    return count;
  }
};

// Floats, any strides and sizes.
void matmul_tiles(const MatmulProblem& problem, Scratch scratch);
int64_t matmul_tiles_scratch_bytes(const MatmulProblem& problem);

// Integers and bool, any strides and sizes; the order of the sums depends on nothing but k.
void matmul_native(const MatmulProblem& problem);

}  // namespace lamella::kernels
