// Matrix products: checks, and the common form of a problem.
#include "lamella/kernels/matmul.h"

#include "lamella/base/error.h"
#include "lamella/kernels/matmul_problem.h"
#include "lamella/kernels/view.h"

namespace lamella::kernels {

namespace {

[[noreturn]] void fail_shapes(const TensorView& a, const TensorView& b, const TensorView& out,
                              const char* rule) {
  fail(ErrorKind::Value, "[matmul] {} (a: {}, b: {}, out: {})", rule, text(a), text(b), text(out));
}

void check(const TensorView& a, const TensorView& b, const TensorView* bias,
           const TensorView& out) {
  require_same_dtype("matmul", "a", a, "b", b);
  require_same_dtype("matmul", "a", a, "out", out);
  if (!is_computable(a.dtype)) {
    fail(ErrorKind::Type, "[matmul] does not take {}", name(a.dtype));
  }
  if (a.rank() < 2 || b.rank() < 2) fail_shapes(a, b, out, "a and b must have at least 2 axes");
  const size_t a_rank = a.sizes.size(), b_rank = b.sizes.size();
  const size_t rank = std::max(a_rank, b_rank);
  if (a.sizes[a_rank - 1] != b.sizes[b_rank - 2]) {
    fail_shapes(a, b, out, "a's last axis must be as long as b's last but one");
  }
  bool fits = out.sizes.size() == rank && out.sizes[rank - 2] == a.sizes[a_rank - 2] &&
              out.sizes[rank - 1] == b.sizes[b_rank - 1];
  for (size_t back = 3; back <= rank && fits; ++back) {
    const int64_t from_a = back <= a_rank ? a.sizes[a_rank - back] : 1;
    const int64_t from_b = back <= b_rank ? b.sizes[b_rank - back] : 1;
    if (from_a != from_b && from_a != 1 && from_b != 1) {
      fail_shapes(a, b, out, "the batch axes do not broadcast");
    }
    fits = out.sizes[rank - back] == (from_a == 1 ? from_b : from_a);
  }
  if (!fits) fail_shapes(a, b, out, "out does not have the shape of the product");
  if (bias != nullptr) {
    require_same_dtype("matmul", "a", a, "bias", *bias);
    require_sizes("matmul", "bias", *bias, {out.sizes[rank - 1]});
  }
}

Matrix matrix_of(const TensorView& view) {
  const size_t rank = view.sizes.size();
  return {.data = view.data,
          .row_stride = view.strides[rank - 2],
          .column_stride = view.strides[rank - 1]};
}

// The stride of `view` along the axis `back` from the end; 0 where it repeats.
int64_t batch_stride(const TensorView& view, size_t back) {
  if (back > view.sizes.size()) return 0;
  const size_t axis = view.sizes.size() - back;
  return view.sizes[axis] == 1 ? 0 : view.strides[axis];
}

// A stack of rows over one matrix b is one taller matrix.
void fold_batch_into_rows(MatmulProblem& problem) {
  while (!problem.batch.empty() && problem.b_batch_strides.back() == 0) {
    const int64_t a_stride = problem.a_batch_strides.back();
    const int64_t out_stride = problem.out_batch_strides.back();
    if (problem.m == 1) {
      problem.a.row_stride = a_stride;
      problem.out.row_stride = out_stride;
    } else if (a_stride != problem.m * problem.a.row_stride ||
               out_stride != problem.m * problem.out.row_stride) {
      return;
    }
    problem.m *= problem.batch.back();
    for (Axes* axes : {&problem.batch, &problem.a_batch_strides, &problem.b_batch_strides,
                       &problem.out_batch_strides}) {
      axes->pop_back();
    }
  }
}

MatmulProblem problem_of(const TensorView& a, const TensorView& b, const TensorView* bias,
                         const TensorView& out) {
  MatmulProblem problem;
  problem.dtype = a.dtype;
  problem.m = a.sizes[a.sizes.size() - 2];
  problem.k = a.sizes.back();
  problem.n = b.sizes.back();
  problem.a = matrix_of(a);
  problem.b = matrix_of(b);
  problem.out = matrix_of(out);
  if (bias != nullptr) {
    problem.has_bias = true;
    problem.bias = bias->data;
    problem.bias_stride = bias->strides[0];
  }
  for (size_t back = out.sizes.size(); back > 2; --back) {
    const int64_t size = out.sizes[out.sizes.size() - back];
    if (size == 1) continue;
    const int64_t a_stride = batch_stride(a, back), b_stride = batch_stride(b, back),
                  out_stride = batch_stride(out, back);
    if (!problem.batch.empty() && problem.a_batch_strides.back() == size * a_stride &&
        problem.b_batch_strides.back() == size * b_stride &&
        problem.out_batch_strides.back() == size * out_stride) {
      problem.batch.back() *= size;
      problem.a_batch_strides.back() = a_stride;
      problem.b_batch_strides.back() = b_stride;
      problem.out_batch_strides.back() = out_stride;
    } else {
      problem.batch.push_back(size);
      problem.a_batch_strides.push_back(a_stride);
      problem.b_batch_strides.push_back(b_stride);
      problem.out_batch_strides.push_back(out_stride);
    }
  }
  fold_batch_into_rows(problem);
  return problem;
}

bool is_empty(const MatmulProblem& problem) {
  return problem.m == 0 || problem.n == 0 || problem.batch_count() == 0;
}

}  // namespace

int64_t matmul_scratch_bytes(const TensorView& a, const TensorView& b, const TensorView* bias,
                             const TensorView& out) {
  check(a, b, bias, out);
  const MatmulProblem problem = problem_of(a, b, bias, out);
  if (is_empty(problem) || !is_float(problem.dtype)) return 0;
  return scratch_aligned(matmul_tiles_scratch_bytes(problem));
}

void matmul(const TensorView& a, const TensorView& b, const TensorView* bias, const TensorView& out,
            Scratch scratch) {
  check(a, b, bias, out);
  const MatmulProblem problem = problem_of(a, b, bias, out);
  if (is_empty(problem)) return;
  is_float(problem.dtype) ? matmul_tiles(problem, scratch) : matmul_native(problem);
}

}  // namespace lamella::kernels
