// Tensors made from nothing but a shape, and triangles of matrices. Nothing is stored until
// something asks for memory: they are numbers and element numbers that fold into what uses them.
#include "lamella/ops/functions.h"
#include "lamella/ops/infer_rules.h"
#include "lamella/ops/tensor_operators.h"
#include "lamella/ops/zero_gradient.h"

namespace lamella {

namespace {

void check_shape(std::string_view op, const Shape& shape) {
  for (Dim size : shape) {
    if (size.certainly_below(0))
      fail(ErrorKind::Value, "[{}] sizes must not be negative, got {}", op, text(shape));
  }
}

// Attribute 0 the shape, attribute 1 the dtype.
void infer_made(InferCall& call) {
  check_shape(call.op.name(), call.attribute<Shape>(0));
  const DType dtype = call.attribute<DType>(1);
  if (!is_computable(dtype))
    fail(ErrorKind::Unsupported, "[{}] dtype {} is not supported", call.op.name(), name(dtype));
  call.results.push_back({dtype, Layout::RowMajor, call.attribute<Shape>(0)});
}

// The column number less the row number of each element of the last two axes.
Tensor diagonal_numbers(const Shape& shape) {
  const Shape row{shape.back()}, column{shape[shape.size() - 2], 1};
  return ops::element_numbers(row) - ops::element_numbers(column);
}

void infer_triangle(InferCall& call) {
  if (call.operand(0).shape.size() < 2) {
    fail(ErrorKind::Value, "[{}] x needs at least 2 axes, got {}", call.op.name(),
         text(call.operand(0)));
  }
  call.results.push_back(call.operand(0));
}

}  // namespace

LAMELLA_OP(full, (Operand value, Shape shape, DType dtype),
    .doc = "A tensor of one value; the value may change without a new graph.",
    .accepts = kAnyDType,
    .infer = [](InferCall& call) {
      infer_made(call);
      if (!element_count(call.operand(0).shape).is(1)) {
        fail(ErrorKind::Value, "[full] value must be one number, got {}", text(call.operand(0)));
      }
    },
    .lower = composite_of_moves([](const CompositeCall& call) {
      const Tensor value = ops::cast(ops::reshape(call[0], Shape{}), call.attribute<DType>(1));
      return std::vector{ops::broadcast_to(value, call.result_type().shape)};
    }),
    .vjp = vjp([](VjpCall& call) {
      call.give(0, ops::reshape(ops::cast(ops::sum(call.cotangent()), call.operand(0).dtype()), call.operand(0).shape()));
    }),
    .batch = batch::through_composite,
    .reference = numpy("np.full(shape, value)", 0), .cost = Cost{1},
    .samples = Samples{"2.5, shape=(3, 4), dtype='float32'", "7, shape=(0, 2), dtype='int32'"})

LAMELLA_OP(zeros_like, (Operand x),
    .doc = "Zeros of x's type.",
    .accepts = kAnyDType, .infer = infer::same,
    .lower = composite_of_moves([](const CompositeCall& call) { return std::vector{ops::zeros_of(call.result_type())}; }),
    .vjp = zero_gradient,  // constant
    .batch = batch::elementwise,
    .reference = numpy("np.zeros_like(x)", 0), .cost = Cost{0}, .samples = Samples{"randn(3, 4)"})

LAMELLA_OP(ones_like, (Operand x),
    .doc = "Ones of x's type.",
    .accepts = kAnyDType, .infer = infer::same,
    .lower = composite_of_moves([](const CompositeCall& call) {
      const TensorType& type = call.result_type();
      return std::vector{ops::broadcast_to(Tensor::scalar(type.dtype, 1), type.shape)};
    }),
    .vjp = zero_gradient,  // constant
    .batch = batch::elementwise,
    .reference = numpy("np.ones_like(x)", 0), .cost = Cost{0}, .samples = Samples{"randn(3, 4)"})

LAMELLA_OP(arange, (Operand start, Operand step, Shape size, DType dtype),
    .doc = "start, start + step, start + 2 step, ...: as many as the one size says.",
    .accepts = kNumbers,
    .infer = [](InferCall& call) {
      infer_made(call);
      if (call.attribute<Shape>(0).size() != 1) {
        fail(ErrorKind::Value, "[arange] takes one size, got {}", text(call.attribute<Shape>(0)));
      }
    },
    .lower = composite([](const CompositeCall& call) {
      // Each element by one multiplication and addition, so that errors do not add up.
      const DType dtype = call.attribute<DType>(1);
      const DType inside = is_float(dtype) ? DType::Float64 : DType::Int64;
      const Tensor numbers = ops::cast(ops::element_numbers(call.result_type().shape), inside);
      const Tensor elements = numbers * ops::cast(call[1], inside) + ops::cast(call[0], inside);
      return std::vector{ops::cast(elements, dtype)};
    }),
    .vjp = not_differentiable("its operands are positions"),
    .batch = batch::through_composite,
    .reference = numpy("start + step * np.arange(size[0])", 1), .cost = Cost{2},
    .samples = Samples{"0, 1, size=(5,), dtype='int64'", "1.5, -0.25, size=(40,), dtype='float32'", "0, 1, size=(0,), dtype='int32'"})

LAMELLA_OP(linspace, (Operand start, Operand end, Shape size, DType dtype),
    .doc = "Evenly spaced numbers from start to end, both included.",
    .accepts = kNumbers, .infer = infer_made,
    .lower = composite([](const CompositeCall& call) {
      const Shape& shape = call.result_type().shape;
      const Tensor numbers = ops::cast(ops::element_numbers(shape), DType::Float64);
      const Tensor start = ops::cast(call[0], DType::Float64), end = ops::cast(call[1], DType::Float64);
      const Dim last = element_count(shape) - 1;
      if (last.certainly_below(1)) return std::vector{ops::cast(ops::broadcast_to(start, shape), call.attribute<DType>(1))};
      const Tensor steps = Tensor(Value::size(DType::Float64, last));
      const Tensor elements = numbers / steps * (end - start) + start;
      const Tensor exact = ops::where(ops::equal(numbers, steps), end, elements);
      return std::vector{ops::cast(exact, call.attribute<DType>(1))};
    }),
    .vjp = not_differentiable("its operands are positions"),
    .batch = batch::through_composite,
    .reference = numpy("np.linspace(start, end, size[0])", 2), .cost = Cost{4},
    .samples = Samples{"0.0, 1.0, size=(11,), dtype='float32'", "-2, 5, size=(1,), dtype='float32'"})

LAMELLA_OP(eye, (Shape shape, DType dtype, int64_t diagonal = 0),
    .doc = "1 on a diagonal of the last two axes, counted to the right from the main one, else 0.",
    .accepts = kAnyDType,
    .infer = [](InferCall& call) {
      infer_made(call);
      if (call.attribute<Shape>(0).size() < 2) fail(ErrorKind::Value, "[eye] takes at least 2 sizes, got {}", text(call.attribute<Shape>(0)));
    },
    .lower = composite_of_moves([](const CompositeCall& call) {
      const Shape& shape = call.result_type().shape;
      const Tensor here = ops::equal(diagonal_numbers(shape), call.attribute<int64_t>(2));
      return std::vector{ops::broadcast_to(ops::cast(here, call.attribute<DType>(1)), shape)};
    }),
    .vjp = not_differentiable("it has no operand"),
    .batch = batch::through_composite,
    .reference = numpy("np.broadcast_to(np.eye(shape[-2], shape[-1], diagonal), shape)", 0), .cost = Cost{3},
    .samples = Samples{"shape=(3, 4), dtype='float32'", "shape=(4, 3), dtype='int32', diagonal=-1"})

LAMELLA_OP(tril, (Operand x, int64_t diagonal = 0),
    .doc = "x with 0 above a diagonal of the last two axes.",
    .accepts = kAnyDType, .infer = infer_triangle,
    .lower = composite_of_moves([](const CompositeCall& call) {
      const Tensor kept = ops::less_equal(diagonal_numbers(call[0].shape()), call.attribute<int64_t>(0));
      return std::vector{ops::where(kept, call[0], Tensor::scalar(call[0].dtype(), 0))};
    }),
    .vjp = vjp([](VjpCall& call) { call.give(0, ops::tril(call.cotangent(), call.attribute<int64_t>(0))); }),
    .batch = batch::leading_axis,
    .reference = numpy("np.tril(x, diagonal)", 0), .cost = Cost{3},
    .samples = Samples{"randn(4, 5)", "randn(2, 3, 3), diagonal=-1"})

LAMELLA_OP(triu, (Operand x, int64_t diagonal = 0),
    .doc = "x with 0 below a diagonal of the last two axes.",
    .accepts = kAnyDType, .infer = infer_triangle,
    .lower = composite_of_moves([](const CompositeCall& call) {
      const Tensor kept = ops::greater_equal(diagonal_numbers(call[0].shape()), call.attribute<int64_t>(0));
      return std::vector{ops::where(kept, call[0], Tensor::scalar(call[0].dtype(), 0))};
    }),
    .vjp = vjp([](VjpCall& call) { call.give(0, ops::triu(call.cotangent(), call.attribute<int64_t>(0))); }),
    .batch = batch::leading_axis,
    .reference = numpy("np.triu(x, diagonal)", 0), .cost = Cost{3},
    .samples = Samples{"randn(4, 5)", "randn(2, 3, 3), diagonal=1"})

}  // namespace lamella
