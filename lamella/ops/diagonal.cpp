// Diagonals of matrices, read and written, and outer products.
#include "lamella/ops/functions.h"
#include "lamella/ops/infer_rules.h"
#include "lamella/ops/tensor_operators.h"

namespace lamella {

namespace {

struct Plane {
  size_t first, second;  // the axes of the matrices
};

// Attributes 1 and 2 as two different axes of a tensor of `rank`.
Plane plane_of(int64_t first, int64_t second, int rank, const char* op) {
  const int a = normalize_axis(first, rank, op), b = normalize_axis(second, rank, op);
  if (a == b) fail(ErrorKind::Value, "[{}] axis1 and axis2 must differ, both are {}", op, a);
  return {static_cast<size_t>(a), static_cast<size_t>(b)};
}

// The axes but two.
Axes others(int rank, const Plane& plane) {
  Axes axes;
  for (int axis = 0; axis < rank; ++axis) {
    const auto at = static_cast<size_t>(axis);
    if (at != plane.first && at != plane.second) axes.push_back(axis);
  }
  return axes;
}

// Attribute 0: a number of which minus and sizes can be taken.
int64_t checked_offset(int64_t offset, const char* op) {
  constexpr int64_t kMost = int64_t{1} << 62;
  if (offset > kMost || offset < -kMost) {
    fail(ErrorKind::Value, "[{}] offset {} is too large", op, offset);
  }
  return offset;
}

struct Diagonal {
  int64_t row, column, count;  // where it begins, how long it is
};

Diagonal diagonal_of(Dim rows, Dim columns, int64_t offset) {
  const int64_t row = std::max<int64_t>(0, -offset), column = std::max<int64_t>(0, offset);
  const int64_t count = std::min(rows.value() - row, columns.value() - column);
  return {row, column, std::max<int64_t>(0, count)};
}

}  // namespace

LAMELLA_OP(diagonal, (Operand x, int64_t offset = 0, int64_t axis1 = 0, int64_t axis2 = 1),
    .doc = "The elements of two axes whose second place less the first is `offset`, on a new last axis.",
    .accepts = kAnyDType,
    .infer = [](InferCall& call) {
      const TensorType& x = call.operand(0);
      const Plane plane = plane_of(call.attribute<int64_t>(1), call.attribute<int64_t>(2), rank(x.shape), "diagonal");
      TensorType result{x.dtype, Layout::RowMajor, {}};
      for (int64_t axis : others(rank(x.shape), plane)) result.shape.push_back(x.shape[static_cast<size_t>(axis)]);
      result.shape.push_back(diagonal_of(x.shape[plane.first], x.shape[plane.second], checked_offset(call.attribute<int64_t>(0), "diagonal")).count);
      call.results.push_back(result);
    },
    .lower = composite_of_moves([](const CompositeCall& call) {
      const Tensor x = call[0];
      const Plane plane = plane_of(call.attribute<int64_t>(1), call.attribute<int64_t>(2), x.rank(), "diagonal");
      const Dim rows = x.shape()[plane.first], columns = x.shape()[plane.second];
      const Diagonal diagonal = diagonal_of(rows, columns, call.attribute<int64_t>(0));
      Axes order = others(x.rank(), plane);
      order.push_back(static_cast<int64_t>(plane.first));
      order.push_back(static_cast<int64_t>(plane.second));
      const Tensor turned = ops::transpose(x, order);
      Shape flat(turned.shape().begin(), turned.shape().end() - 2);
      flat.push_back(rows * columns);
      const int64_t start = diagonal.count == 0 ? 0 : diagonal.row * columns.value() + diagonal.column;
      return std::vector{ops::narrow(ops::reshape(turned, flat), start, -1, Shape{diagonal.count}, columns.value() + 1)};
    }),
    .vjp = from_composite,
    .batch = batch::along_axes<1, 2>,
    .reference = numpy("np.diagonal(x, offset, axis1, axis2)", 0), .cost = Cost{0},
    .samples = Samples{"randn(4, 4)", "randn(3, 5), offset=2", "randn(2, 5, 3), offset=-1, axis1=1, axis2=2", "randn(3, 2), offset=7",
                       "randn(3, 2, 4), axis1=2, axis2=0"})

LAMELLA_OP(diag_embed, (Operand x, int64_t offset = 0, int64_t axis1 = -2, int64_t axis2 = -1),
    .doc = "Matrices on the two axes with x's last axis on a diagonal, 0 elsewhere: diagonal turned round.",
    .accepts = kAnyDType,
    .infer = [](InferCall& call) {
      const TensorType& x = call.operand(0);
      if (x.shape.empty()) fail(ErrorKind::Value, "[diag_embed] x needs at least 1 axis, got {}", text(x));
      const Plane plane = plane_of(call.attribute<int64_t>(1), call.attribute<int64_t>(2), rank(x.shape) + 1, "diag_embed");
      const int64_t offset = checked_offset(call.attribute<int64_t>(0), "diag_embed");
      Shape shape(x.shape.begin(), x.shape.end() - 1);
      const Dim size = x.shape.back() + (offset < 0 ? -offset : offset);
      for (size_t axis : {std::min(plane.first, plane.second), std::max(plane.first, plane.second)}) {
        shape.insert(static_cast<uint32_t>(axis), size);
      }
      call.results.push_back({x.dtype, Layout::RowMajor, shape});
    },
    .lower = composite_of_moves([](const CompositeCall& call) {
      const Tensor x = call[0];
      const int rank = x.rank() + 1;
      const Plane plane = plane_of(call.attribute<int64_t>(1), call.attribute<int64_t>(2), rank, "diag_embed");
      const int64_t offset = call.attribute<int64_t>(0);
      const Dim size = x.shape().back() + (offset < 0 ? -offset : offset);
      // Beside the diagonal of a row (or column, below the main one) there are only zeros.
      const Tensor numbers = ops::element_numbers(Shape{size});
      const Tensor here = ops::equal(numbers - ops::expand_dims(numbers, 1), offset);
      Axes before(static_cast<uint32_t>(x.rank()), 0), after = before;
      after.back() = offset < 0 ? -offset : offset;
      const Tensor line = ops::expand_dims(ops::pad(x, 0, before, after), offset < 0 ? -2 : -1);
      const Tensor matrices = ops::where(here, line, Tensor::scalar(x.dtype(), 0));
      Axes order(static_cast<uint32_t>(rank), 0);
      const Axes rest = others(rank, plane);
      for (size_t i = 0; i < rest.size(); ++i) order[static_cast<size_t>(rest[i])] = static_cast<int64_t>(i);
      order[plane.first] = rank - 2;
      order[plane.second] = rank - 1;
      return std::vector{ops::transpose(matrices, order)};
    }),
    .vjp = vjp([](VjpCall& call) {
      call.give(0, ops::diagonal(call.cotangent(), call.attribute<int64_t>(0), call.attribute<int64_t>(1), call.attribute<int64_t>(2)));
    }),
    .batch = batch::along_axes<1, 2>,
    .reference = numpy("diag_embed(x, offset, axis1, axis2)", 0), .cost = Cost{2},
    .samples = Samples{"randn(4)", "randn(2, 3), offset=1", "randn(2, 3), offset=-2, axis1=0, axis2=2"})

LAMELLA_OP(outer, (Operand x, Operand y),
    .doc = "The products of each element of x with each of y, both taken as vectors.",
    .accepts = kNumbers, .promotion = Promotion::Common,
    .infer = [](InferCall& call) {
      const TensorType &x = call.operand(0), &y = call.operand(1);
      call.results.push_back({x.dtype, Layout::RowMajor, {element_count(x.shape), element_count(y.shape)}});
    },
    .lower = composite([](const CompositeCall& call) {
      const Shape& shape = call.result_type().shape;
      return std::vector{ops::reshape(call[0], Shape{shape[0], 1}) * ops::reshape(call[1], Shape{1, shape[1]})};
    }),
    .vjp = from_composite,
    .batch = batch::through_composite,
    .reference = numpy("np.outer(x, y)", 0.5), .cost = Cost{1},
    .samples = Samples{"randn(3), randn(4)", "randn(2, 2), randn(3)"})

}  // namespace lamella
