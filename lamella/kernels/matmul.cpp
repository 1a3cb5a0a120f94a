// Matrix products: checks, the common form of a problem, and the choice of the kernel.
#include "lamella/kernels/matmul.h"

#include <optional>

#include "lamella/base/error.h"
#include "lamella/kernels/convert.h"
#include "lamella/kernels/copy.h"
#include "lamella/kernels/library_dtypes.h"
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

// Whether oneDNN takes the view's matrices as they lie.
bool has_adjacent_axis(const TensorView& view) {
  const size_t rank = view.sizes.size();
  const int64_t rows = view.sizes[rank - 2], columns = view.sizes[rank - 1];
  const int64_t row = view.strides[rank - 2], column = view.strides[rank - 1];
  for (size_t i = 0; i < rank - 2; ++i) {
    if (view.strides[i] < 0) return false;
  }
  if (rows == 1 && columns == 1) return true;
  if (rows == 1) return column >= 1;
  if (columns == 1) return row >= 1;
  return (column == 1 && row >= columns) || (row == 1 && column >= rows);
}

// A dense tensor of the view's sizes, its matrices in the view's own order.
TensorView dense_like(const TensorView& view, DType dtype) {
  TensorView dense = row_major_view(nullptr, dtype, view.sizes);
  const size_t rank = view.sizes.size();
  if (rank >= 2 && view.strides[rank - 2] < view.strides[rank - 1]) {
    dense.strides[rank - 2] = 1;
    dense.strides[rank - 1] = std::max<int64_t>(view.sizes[rank - 2], 1);
  }
  return dense;
}

// The operands as the library takes them: themselves, or copies in scratch memory.
struct Prepared {
  TensorView a, b, out;
  std::optional<TensorView> bias;
  bool copied_a, copied_b, copied_out, copied_bias = false;
  int64_t bytes = 0;  // of the copies

  Prepared(const TensorView& given_a, const TensorView& given_b, const TensorView* given_bias,
           const TensorView& given_out) {
    const DType dtype = library_takes(given_a.dtype) ? given_a.dtype : DType::Float32;
    const auto place = [&](const TensorView& given, TensorView& used, bool adjacent) {
      if (dtype == given.dtype && adjacent) {
        used = given;
        return false;
      }
      used = dense_like(given, dtype);
      bytes += scratch_aligned(byte_count(used));
      return true;
    };
    copied_a = place(given_a, a, has_adjacent_axis(given_a));
    copied_b = place(given_b, b, has_adjacent_axis(given_b));
    copied_out = place(given_out, out, has_adjacent_axis(given_out));
    if (given_bias != nullptr) {
      bias.emplace();
      const bool adjacent = given_bias->sizes[0] == 1 || given_bias->strides[0] == 1;
      copied_bias = place(*given_bias, *bias, adjacent);
    }
  }
  const TensorView* bias_or_null() const { return bias ? &*bias : nullptr; }
};

void move_elements(const TensorView& from, const TensorView& to) {
  from.dtype == to.dtype ? copy(from, to) : convert(from, to);
}

bool is_empty(const MatmulProblem& problem) {
  return problem.m == 0 || problem.n == 0 || problem.batch_count() == 0;
}

// The kernel is chosen by dtype, shape and strides alone.
bool is_native(const MatmulProblem& problem) {
  return problem.k == 0 || !(problem.dtype == DType::Float32 || is_low_precision(problem.dtype));
}
void run(const MatmulProblem& problem, Scratch scratch) {
  is_thin(problem) ? matmul_thin(problem, scratch) : matmul_onednn(problem, scratch);
}
int64_t scratch_bytes(const MatmulProblem& problem) {
  return is_thin(problem) ? matmul_thin_scratch_bytes(problem)
                          : matmul_onednn_scratch_bytes(problem);
}

}  // namespace

int64_t matmul_scratch_bytes(const TensorView& a, const TensorView& b, const TensorView* bias,
                             const TensorView& out) {
  check(a, b, bias, out);
  const MatmulProblem problem = problem_of(a, b, bias, out);
  if (is_empty(problem) || is_native(problem)) return 0;
  if (is_thin(problem)) return matmul_thin_scratch_bytes(problem);
  const Prepared prepared(a, b, bias, out);
  return prepared.bytes + scratch_aligned(scratch_bytes(problem_of(
                              prepared.a, prepared.b, prepared.bias_or_null(), prepared.out)));
}

void matmul(const TensorView& a, const TensorView& b, const TensorView* bias, const TensorView& out,
            Scratch scratch) {
  check(a, b, bias, out);
  const MatmulProblem given = problem_of(a, b, bias, out);
  if (is_empty(given)) return;
  if (is_native(given)) return matmul_native(given);
  if (is_thin(given)) return matmul_thin(given, scratch);
  Prepared prepared(a, b, bias, out);
  if (prepared.bytes == 0) return run(given, scratch);

  const MatmulProblem described =
      problem_of(prepared.a, prepared.b, prepared.bias_or_null(), prepared.out);
  ScratchParts parts(scratch, prepared.bytes + scratch_aligned(scratch_bytes(described)));
  const auto fill_in = [&](bool copied, const TensorView& from, TensorView& to) {
    if (!copied) return;
    to.data = parts.take(byte_count(to));
    move_elements(from, to);
  };
  fill_in(prepared.copied_a, a, prepared.a);
  fill_in(prepared.copied_b, b, prepared.b);
  if (bias != nullptr) fill_in(prepared.copied_bias, *bias, *prepared.bias);
  if (prepared.copied_out) prepared.out.data = parts.take(byte_count(prepared.out));
  run(problem_of(prepared.a, prepared.b, prepared.bias_or_null(), prepared.out), parts.rest());
  if (prepared.copied_out) move_elements(prepared.out, out);
}

}  // namespace lamella::kernels
