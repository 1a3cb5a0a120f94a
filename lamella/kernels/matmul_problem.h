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
  int64_t bias_stride = 0;  // 1 for oneDNN
  Axes batch;               // outermost first
  Axes a_batch_strides, b_batch_strides, out_batch_strides;

  int64_t batch_count() const {
    int64_t count = 1;
    for (int64_t size : batch) count *= size;
    return count;
  }
};

// By oneDNN, for dtypes library_takes. Needs m, n, k and the batch to be at least 1, and for each
// of a, b and out one adjacent matrix axis.
void matmul_onednn(const MatmulProblem& problem, Scratch scratch);
int64_t matmul_onednn_scratch_bytes(const MatmulProblem& problem);

// float32 and bfloat16, for at most four rows or columns. Needs what matmul_onednn needs, and
// is_thin. The same bits for any thread count.
bool is_thin(const MatmulProblem& problem);
void matmul_thin(const MatmulProblem& problem, Scratch scratch);
int64_t matmul_thin_scratch_bytes(const MatmulProblem& problem);

// Any compute dtype, any strides, any size; the order of the sums depends on nothing but k.
void matmul_native(const MatmulProblem& problem);

}  // namespace lamella::kernels
