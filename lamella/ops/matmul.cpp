// Matrix products.
#include "lamella/kernels/matmul.h"

#include "lamella/ops/functions.h"
#include "lamella/ops/infer_rules.h"
#include "lamella/ops/tensor_operators.h"

namespace lamella {

namespace {

// The last two axes exchanged.
Tensor swap_last(const Tensor& x) {
  Axes axes;
  for (int i = 0; i < x.rank() - 2; ++i) axes.push_back(i);
  axes.push_back(x.rank() - 1);
  axes.push_back(x.rank() - 2);
  return ops::transpose(x, axes);
}

// The product of stacks of matrices; operands of rank 1 were made matrices before.
void infer_matmul(InferCall& call) {
  const TensorType &x = call.operand(0), &y = call.operand(1);
  if (x.shape.size() < 2 || y.shape.size() < 2) {
    fail(ErrorKind::Value, "[matrix_product] operands need at least 2 axes (x: {}, y: {})", text(x),
         text(y));
  }
  const Dim inner = x.shape.back(), other = y.shape[y.shape.size() - 2];
  if (inner != other) {
    fail(ErrorKind::Value, "[matmul] x has {} columns, but y has {} rows (x: {}, y: {})",
         inner.text(), other.text(), text(x), text(y));
  }
  const Shape batch = broadcast_shapes(Shape(x.shape.begin(), x.shape.end() - 2),
                                       Shape(y.shape.begin(), y.shape.end() - 2), "matmul");
  TensorType result{x.dtype, Layout::RowMajor, batch};
  result.shape.push_back(x.shape[x.shape.size() - 2]);
  result.shape.push_back(y.shape.back());
  call.results.push_back(result);
}

double matmul_flops(const Node& node) {
  const Dim inner = node.operand(0)->type().shape.back();
  const Dim count = element_count(node.result()->type().shape);
  if (!inner.known() || !count.known()) return 0;
  return 2.0 * static_cast<double>(inner.value()) * static_cast<double>(count.value());
}

// The matrices in the last two axes with all leading axes' rows as one matrix.
Tensor as_rows(const Tensor& x) {
  Dim rows = 1;
  for (int axis = 0; axis + 1 < x.rank(); ++axis)
    rows = rows * x.shape()[static_cast<size_t>(axis)];
  return ops::reshape(x, Shape{rows, x.shape().back()});
}

std::vector<Tensor> batch_matrix_product(const BatchCall& call) {
  if (call.is_batched(0) && !call.is_batched(1) && call.rank(1) == 2) {
    // One product for all examples: the rows of a product do not depend on each other.
    const Tensor product = ops::matrix_product(as_rows(call.operand(0)), call.operand(1));
    return {ops::reshape(product, call.result_shape())};
  }
  const int rank = std::max(call.rank(0), call.rank(1));
  return call.record({call.aligned(0, rank), call.aligned(1, rank)});
}

std::vector<Tensor> batch_affine(const BatchCall& call) {
  if (!call.any_batched_from(1)) {
    const Tensor rows = ops::affine(as_rows(call.operand(0)), call.operand(1), call.operand(2));
    return {ops::reshape(rows, call.result_shape())};
  }
  const Tensor product = ops::matrix_product(call.operand(0), swap_last(call.operand(1)));
  return {product + call.aligned(2, 2)};
}

}  // namespace

LAMELLA_OP(matrix_product, (Operand x, Operand y),
    .doc = "The product of matrices in the last two axes; leading axes broadcast.",
    .accepts = kAnyDType, .promotion = Promotion::Common,
    .infer = infer_matmul,
    .lower = kernel({.run = [](const KernelCall& call) {
                       kernels::matmul(call.operands[0], call.operands[1], nullptr, call.results[0],
                                       call.scratch);
                     },
                     .scratch_bytes = [](const KernelCall& call) {
                       return kernels::matmul_scratch_bytes(call.operands[0], call.operands[1], nullptr,
                                                            call.results[0]);
                     },
                     .strided_operands = true}),
    .vjp = vjp([](VjpCall& call) {
      const Tensor cotangent = call.cotangent();
      if (call.needs(0)) call.give(0, ops::matrix_product(cotangent, swap_last(call.operand(1))));
      if (call.needs(1)) call.give(1, ops::matrix_product(swap_last(call.operand(0)), cotangent));
    }),
    .batch = batch::rule(batch_matrix_product),
    .reference = numpy("np.matmul(x, y)", 64), .cost = Cost{0, matmul_flops},
    .samples = Samples{"randn(3, 4), randn(4, 5)", "randn(2, 1, 3, 4), randn(5, 4, 2)", "randn(2, 0), randn(0, 3)"})

LAMELLA_OP(matmul, (Operand x, Operand y),
    .doc = "The matrix product with NumPy's rules: a vector on the left is a row, on the right a column.",
    .accepts = kAnyDType, .promotion = Promotion::Common,
    .infer = [](InferCall& call) {
      TensorType x = call.operand(0), y = call.operand(1);
      if (x.shape.empty() || y.shape.empty()) {
        fail(ErrorKind::Value, "[matmul] operands need at least 1 axis (x: {}, y: {})", text(x), text(y));
      }
      const bool row = x.shape.size() == 1, column = y.shape.size() == 1;
      if (row) x.shape.insert(0, 1);
      if (column) y.shape.push_back(1);
      const std::array<const TensorType*, 2> matrices = {&x, &y};
      InferCall inner{.op = call.op, .operands = matrices, .attributes = nullptr, .results = {}};
      infer_matmul(inner);
      TensorType result = inner.results[0];
      if (column) result.shape.pop_back();
      if (row) result.shape.erase(result.shape.size() - (column ? 1 : 2));
      call.results.push_back(result);
    },
    .lower = composite_of_moves([](const CompositeCall& call) {
      Tensor x = call[0], y = call[1];
      if (x.rank() == 1) x = ops::expand_dims(x, 0);
      if (y.rank() == 1) y = ops::expand_dims(y, 1);
      const Tensor product = ops::matrix_product(x, y);
      return std::vector{ops::reshape(product, call.result_type().shape)};
    }),
    .vjp = from_composite,
    .batch = batch::through_composite,
    .reference = numpy("np.matmul(x, y)", 64), .cost = Cost{0, matmul_flops},
    .samples = Samples{"randn(3, 4), randn(4, 5)", "randn(4), randn(4)", "randn(2, 3, 4), randn(4)",
                       "randn(4), randn(2, 4, 3)"})

LAMELLA_OP(dense, (Operand x, Operand weight, OptionalOperand bias),
    .doc = "x times the transposed weight, plus bias. x [..., in], weight [out, in], bias [out].",
    .accepts = kFloats, .promotion = Promotion::Common,
    .infer = [](InferCall& call) {
      const TensorType &x = call.operand(0), &weight = call.operand(1);
      if (x.shape.empty() || weight.shape.size() != 2) {
        fail(ErrorKind::Value, "[dense] x needs at least 1 axis and weight exactly 2 (x: {}, weight: {})",
             text(x), text(weight));
      }
      if (x.shape.back() != weight.shape[1]) {
        fail(ErrorKind::Value, "[dense] x has {} features, but weight takes {} (x: {}, weight: {})",
             x.shape.back().text(), weight.shape[1].text(), text(x), text(weight));
      }
      if (call.operands.size() > 2 && call.operand(2).shape != Shape{weight.shape[0]}) {
        fail(ErrorKind::Value, "[dense] bias must have shape [{}], got {}", weight.shape[0].text(),
             text(call.operand(2)));
      }
      TensorType result{x.dtype, Layout::RowMajor, x.shape};
      result.shape.back() = weight.shape[0];
      call.results.push_back(result);
    },
    .lower = composite_of_moves([](const CompositeCall& call) {
      const Tensor x = call[0];
      const Dim features = x.shape().back();
      Dim rows = 1;
      for (int axis = 0; axis + 1 < x.rank(); ++axis) rows = rows * x.shape()[static_cast<size_t>(axis)];
      const bool flat = x.rank() == 2;
      const Tensor matrix = flat ? x : ops::reshape(x, Shape{rows, features});
      const Tensor product = call.size() > 2 ? ops::affine(matrix, call[1], call[2])
                                             : ops::matrix_product(matrix, ops::transpose(call[1]));
      return std::vector{flat ? product : ops::reshape(product, call.result_type().shape)};
    }),
    .vjp = from_composite,
    .batch = batch::through_composite,
    .reference = numpy("np.matmul(x, weight.T) + (0 if bias is None else bias)", 64),
    .cost = Cost{0, matmul_flops},
    .samples = Samples{"randn(3, 4), randn(5, 4)", "randn(2, 3, 4), randn(5, 4), randn(5)", "randn(4), randn(5, 4)"})

LAMELLA_OP(affine, (Operand x, Operand weight, Operand bias),
    .doc = "x [n, in] times the transposed weight [out, in] plus bias [out], as one kernel.",
    .accepts = kFloats, .promotion = Promotion::Common,
    .infer = [](InferCall& call) {
      call.results.push_back({call.operand(0).dtype, Layout::RowMajor,
                              Shape{call.operand(0).shape[0], call.operand(1).shape[0]}});
    },
    .lower = kernel({.run = [](const KernelCall& call) {
                       TensorView weight = call.operands[1];
                       std::swap(weight.sizes[0], weight.sizes[1]);
                       std::swap(weight.strides[0], weight.strides[1]);
                       kernels::matmul(call.operands[0], weight, &call.operands[2], call.results[0],
                                       call.scratch);
                     },
                     .scratch_bytes = [](const KernelCall& call) {
                       TensorView weight = call.operands[1];
                       std::swap(weight.sizes[0], weight.sizes[1]);
                       std::swap(weight.strides[0], weight.strides[1]);
                       return kernels::matmul_scratch_bytes(call.operands[0], weight, &call.operands[2],
                                                            call.results[0]);
                     },
                     .strided_operands = true}),
    .vjp = vjp([](VjpCall& call) {
      const Tensor cotangent = call.cotangent();
      if (call.needs(0)) call.give(0, ops::matrix_product(cotangent, call.operand(1)));
      if (call.needs(1)) call.give(1, ops::matrix_product(ops::transpose(cotangent), call.operand(0)));
      if (call.needs(2)) call.give(2, cotangent);
    }),
    .batch = batch::rule(batch_affine),
    .reference = numpy("np.matmul(x, weight.T) + bias", 64), .cost = Cost{0, matmul_flops},
    .samples = Samples{"randn(3, 4), randn(5, 4), randn(5)"})

}  // namespace lamella
