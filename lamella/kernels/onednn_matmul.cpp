// Matrix products through oneDNN.
#include "lamella/base/error.h"
#include "lamella/kernels/matmul_problem.h"
#include "lamella/kernels/onednn.h"

namespace lamella::kernels {

namespace {

enum class Kind : int64_t { Matmul = 1 };

// The stride along an axis of size 1 says nothing; oneDNN wants it as in a dense matrix.
struct Strides {
  int64_t row, column;
  Strides(const Matrix& matrix, int64_t rows, int64_t columns)
      : row(rows == 1 ? 1 : matrix.row_stride), column(columns == 1 ? 1 : matrix.column_stride) {
    if (rows == 1 && column == 1) row = columns;
  }
};

// The innermost batch axis goes to the library, the ones outside are a loop here.
struct Call {
  onednn::Signature signature;
  int64_t batch = 1;
  int64_t a_stride = 0, b_stride = 0, out_stride = 0;
};

// A stack whose batch stride is 0 is one matrix that oneDNN broadcasts.
dnnl::memory::desc describe(DType dtype, const Matrix& matrix, int64_t rows, int64_t columns,
                            int64_t batch, int64_t batch_stride) {
  const Strides strides(matrix, rows, columns);
  if (batch == 1) return onednn::plain(dtype, {rows, columns}, {strides.row, strides.column});
  if (batch_stride == 0) {
    const int64_t extent = std::max(strides.row * rows, strides.column * columns);
    return onednn::plain(dtype, {1, rows, columns}, {extent, strides.row, strides.column});
  }
  return onednn::plain(dtype, {batch, rows, columns}, {batch_stride, strides.row, strides.column});
}

Call call_of(const MatmulProblem& problem) {
  Call call;
  if (!problem.batch.empty()) {
    call.batch = problem.batch.back();
    call.a_stride = problem.a_batch_strides.back();
    call.b_stride = problem.b_batch_strides.back();
    call.out_stride = problem.out_batch_strides.back();
  }
  const Strides a(problem.a, problem.m, problem.k), b(problem.b, problem.k, problem.n),
      out(problem.out, problem.m, problem.n);
  call.signature = {static_cast<int64_t>(Kind::Matmul),
                    static_cast<int64_t>(problem.dtype),
                    call.batch,
                    call.a_stride,
                    call.b_stride,
                    call.out_stride,
                    problem.m,
                    problem.n,
                    problem.k,
                    a.row,
                    a.column,
                    b.row,
                    b.column,
                    out.row,
                    out.column,
                    problem.has_bias};
  return call;
}

void build(onednn::Plan& plan, const MatmulProblem& problem, const Call& call) {
  const DType dtype = problem.dtype;
  const auto [m, n, k] = std::tuple(problem.m, problem.n, problem.k);
  const dnnl::memory::desc a = describe(dtype, problem.a, m, k, call.batch, call.a_stride);
  const dnnl::memory::desc b = describe(dtype, problem.b, k, n, call.batch, call.b_stride);
  const dnnl::memory::desc out = describe(dtype, problem.out, m, n, call.batch, call.out_stride);
  const int a_slot = plan.caller_slot(a), b_slot = plan.caller_slot(b),
            out_slot = plan.caller_slot(out);
  if (!problem.has_bias) {
    const dnnl::matmul::primitive_desc desc(onednn::engine(), a, b, out, onednn::attributes());
    plan.add(dnnl::matmul(desc),
             {{DNNL_ARG_SRC, a_slot}, {DNNL_ARG_WEIGHTS, b_slot}, {DNNL_ARG_DST, out_slot}});
    return;
  }
  const dnnl::memory::desc bias = call.batch > 1 ? onednn::plain(dtype, {1, 1, n}, {n, n, 1})
                                                 : onednn::plain(dtype, {1, n}, {n, 1});
  const int bias_slot = plan.caller_slot(bias);
  const dnnl::matmul::primitive_desc desc(onednn::engine(), a, b, bias, out, onednn::attributes());
  plan.add(dnnl::matmul(desc), {{DNNL_ARG_SRC, a_slot},
                                {DNNL_ARG_WEIGHTS, b_slot},
                                {DNNL_ARG_BIAS, bias_slot},
                                {DNNL_ARG_DST, out_slot}});
}

std::shared_ptr<const onednn::Plan> plan_of(const MatmulProblem& problem, const Call& call) {
  return onednn::plan_for(call.signature, [&](onednn::Plan& plan) { build(plan, problem, call); });
}

}  // namespace

int64_t matmul_onednn_scratch_bytes(const MatmulProblem& problem) {
  return plan_of(problem, call_of(problem))->scratch_bytes();
}

void matmul_onednn(const MatmulProblem& problem, Scratch scratch) {
  const auto plan = plan_of(problem, call_of(problem));
  ScratchParts parts(scratch, plan->scratch_bytes());
  void* working = parts.take(plan->scratch_bytes());
  const auto at = [&](const Matrix& matrix, int64_t elements) -> void* {
    return static_cast<char*>(matrix.data) + elements * size_of(problem.dtype);
  };
  const int64_t outer = problem.batch.empty() ? 1 : problem.batch_count() / problem.batch.back();
  Axes position(problem.batch.size(), 0);
  for (int64_t point = 0; point < outer; ++point) {
    int64_t a = 0, b = 0, out = 0, rest = point;
    for (uint32_t axis = problem.batch.size(); axis-- > 0;) {
      if (axis + 1 == problem.batch.size()) continue;
      const int64_t step = rest % problem.batch[axis];
      rest /= problem.batch[axis];
      a += step * problem.a_batch_strides[axis];
      b += step * problem.b_batch_strides[axis];
      out += step * problem.out_batch_strides[axis];
    }
    void* const pointers[] = {at(problem.a, a), at(problem.b, b), at(problem.out, out),
                              const_cast<void*>(problem.bias)};
    plan->run(pointers, working);
  }
}

}  // namespace lamella::kernels
