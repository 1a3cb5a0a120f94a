// Matrix products of floats by tile programs. Every element is one sum in the order of k, so its
// bits do not depend on strides, on the other rows and columns, or on the number of threads.
#include <mutex>
#include <unordered_map>

#include "lamella/kernels/matmul_problem.h"
#include "lamella/tile/builder.h"
#include "lamella/tile/cpu/matmul_kernel.h"

namespace lamella::kernels {

namespace {

using tile::MatmulKernel;
using tile::MatmulLaunch;
using tile::VectorStride;

VectorStride vector_stride(int64_t stride) {
  return stride == 1 ? VectorStride::Unit : VectorStride::Any;
}

// What a kernel is compiled for.
struct Signature {
  DType dtype;
  int batch_rank;
  bool has_bias;
  VectorStride bias_stride, out_stride;

  // Whether the product is the result as it stands.
  bool is_plain() const {
    return !has_bias && dtype == tile::product_dtype(dtype) && out_stride == VectorStride::Unit;
  }
  uint32_t key() const {
    return static_cast<uint32_t>(dtype) << 16 | static_cast<uint32_t>(batch_rank) << 8 |
           static_cast<uint32_t>(has_bias) << 6 | static_cast<uint32_t>(bias_stride) << 3 |
           static_cast<uint32_t>(out_stride);
  }
};

Signature signature_of(const MatmulProblem& problem) {
  return {.dtype = problem.dtype,
          .batch_rank = static_cast<int>(problem.batch.size()),
          .has_bias = problem.has_bias,
          .bias_stride = problem.has_bias ? vector_stride(problem.bias_stride) : VectorStride::Unit,
          .out_stride = vector_stride(problem.out.column_stride)};
}

// The product plus the bias of its column, rounded to the dtype.
tile::Program epilogue_of(const Signature& signature) {
  tile::Builder b("matmul", signature.batch_rank + 1);
  const DType product = tile::product_dtype(signature.dtype);
  tile::ValueId sum = b.load_input(product);
  if (signature.has_bias) {
    const tile::ValueId bias = b.load_input(signature.dtype, signature.bias_stride);
    sum = b.apply(tile::Opcode::Add, sum, b.cast(bias, product));
  }
  b.store(b.output(signature.dtype, signature.out_stride), b.cast(sum, signature.dtype));
  return std::move(b).finish();
}

const MatmulKernel& kernel_for(const Signature& signature) {
  struct Kernels {
    std::mutex mutex;
    std::unordered_map<uint32_t, Ref<MatmulKernel>> known;
  };
  // Never destroyed: threads may still multiply while the process exits.
  static Kernels& kernels = *new Kernels;
  const std::lock_guard lock(kernels.mutex);
  Ref<MatmulKernel>& kernel = kernels.known[signature.key()];
  if (!kernel) {
    tile::MatmulProgram program = {.input = signature.dtype, .batch_rank = signature.batch_rank};
    if (!signature.is_plain()) program.epilogue = epilogue_of(signature);
    kernel = make_ref<MatmulKernel>(std::move(program), tile::native_instruction_set());
  }
  return *kernel;
}

MatmulLaunch::Matrix matrix_of(const Matrix& matrix, const Axes& batch_strides) {
  return {.data = matrix.data,
          .batch_strides = {batch_strides.begin(), batch_strides.end()},
          .row_stride = matrix.row_stride,
          .column_stride = matrix.column_stride};
}

MatmulLaunch launch_of(const MatmulProblem& problem, const Signature& signature) {
  MatmulLaunch launch = {.batch = {problem.batch.begin(), problem.batch.end()},
                         .rows = problem.m,
                         .columns = problem.n,
                         .depth = problem.k,
                         .a = matrix_of(problem.a, problem.a_batch_strides),
                         .b = matrix_of(problem.b, problem.b_batch_strides)};
  if (signature.is_plain()) {
    launch.product = matrix_of(problem.out, problem.out_batch_strides);
    return launch;
  }
  const auto add = [&](const void* data, const Axes* batch_strides, int64_t row, int64_t column) {
    tile::Launch::Buffer buffer = {const_cast<void*>(data), {}};
    for (size_t i = 0; i < problem.batch.size(); ++i) {
      buffer.strides.push_back(batch_strides != nullptr ? (*batch_strides)[i] : 0);
    }
    buffer.strides.insert(buffer.strides.end(), {row, column});
    launch.buffers.push_back(std::move(buffer));
  };
  if (problem.has_bias) add(problem.bias, nullptr, 0, problem.bias_stride);
  add(problem.out.data, &problem.out_batch_strides, problem.out.row_stride,
      problem.out.column_stride);
  return launch;
}

// A matrix times a column is the column as a row times the transposed matrix: whole vectors.
MatmulProblem as_rows(const MatmulProblem& given) {
  if (given.n != 1 || given.m == 1 || given.has_bias) return given;
  MatmulProblem turned = given;
  std::swap(turned.m, turned.n);
  std::swap(turned.a, turned.b);
  std::swap(turned.a_batch_strides, turned.b_batch_strides);
  for (Matrix* matrix : {&turned.a, &turned.b, &turned.out}) {
    std::swap(matrix->row_stride, matrix->column_stride);
  }
  return turned;
}

}  // namespace

int64_t matmul_tiles_scratch_bytes(const MatmulProblem& given) {
  const MatmulProblem problem = as_rows(given);
  const Signature signature = signature_of(problem);
  return kernel_for(signature).scratch_bytes(launch_of(problem, signature));
}

void matmul_tiles(const MatmulProblem& given, Scratch scratch) {
  const MatmulProblem problem = as_rows(given);
  const Signature signature = signature_of(problem);
  const MatmulKernel& kernel = kernel_for(signature);
  const MatmulLaunch launch = launch_of(problem, signature);
  const int64_t bytes = kernel.scratch_bytes(launch);
  ScratchParts parts(scratch, scratch_aligned(bytes));
  kernel.run(launch, parts.take(bytes));
}

}  // namespace lamella::kernels
