// Reductions. The primitives keep their axes and reduce either the innermost axes in memory (rows)
// or only outer ones (columns); what users call is made of them.
#include "lamella/ops/reduction.h"

#include "lamella/ops/functions.h"
#include "lamella/ops/infer_rules.h"
#include "lamella/ops/tensor_operators.h"
#include "lamella/types/promotion.h"

namespace lamella {

using tile::Opcode;

namespace {

// A reduction of `x` over axes that may mix inner and outer ones, keeping the axes.
Tensor reduce_in_steps(const Tensor& x, const Axes& axes,
                       Tensor (*primitive)(const Operand&, const Axes&)) {
  const ReductionSteps steps = reduction_steps(x.type(), axes);
  Tensor result = x;
  if (!steps.inner.empty()) result = primitive(result, steps.inner);
  if (!steps.outer.empty()) result = primitive(result, steps.outer);
  return result;
}

Tensor drop_axes(const Tensor& x, const Axes& axes) {
  return axes.empty() ? x : ops::squeeze(x, axes);
}

// The body of a user's reduction: attribute 0 the axes (empty: all), attribute 1 keepdims.
std::vector<Tensor> reduce_composite(const CompositeCall& call,
                                     Tensor (*primitive)(const Operand&, const Axes&)) {
  const Tensor x = call[0].dtype() == call.result_type().dtype
                       ? call[0]
                       : ops::cast(call[0], call.result_type().dtype);
  const Axes axes = normalize_axes(call.attribute<Axes>(0), x.rank(), "reduce");
  const Tensor reduced = reduce_in_steps(x, axes, primitive);
  return {call.attribute<bool>(1) ? reduced : drop_axes(reduced, axes)};
}

enum class Empty : uint8_t { Allowed, Refused };

template <DType (*result_dtype)(DType), Empty empty>
void infer_reduction(InferCall& call) {
  const TensorType& x = call.operand(0);
  const std::string_view name = call.op.name();
  const Axes axes = normalize_axes(call.attribute<Axes>(0), rank(x.shape), name);
  TensorType result{result_dtype(x.dtype), Layout::RowMajor, {}};
  const bool keep = call.attribute<bool>(1);
  size_t next = 0;
  for (int axis = 0; axis < rank(x.shape); ++axis) {
    const bool reduced = next < axes.size() && axes[next] == axis;
    next += reduced;
    const Dim size = x.shape[static_cast<size_t>(axis)];
    if (reduced && empty == Empty::Refused && size.is(0)) {
      fail(ErrorKind::Value, "[{}] axis {} has no elements (x: {}); an empty axis has no {}", name,
           axis, text(x), name);
    }
    if (!reduced) {
      result.shape.push_back(size);
    } else if (keep) {
      result.shape.push_back(1);
    }
  }
  if (keep) result.layout = x.layout;
  call.results.push_back(result);
}

DType same_dtype(DType dtype) {
  return dtype;
}
DType sum_dtype(DType dtype) {
  return is_float(dtype) ? dtype : DType::Int64;
}
DType bool_dtype(DType) {
  return DType::Bool;
}

// The cotangent of a reduction with its axes back, to broadcast against the operand.
Tensor with_axes(const Tensor& reduced, VjpCall& call) {
  if (call.attribute<bool>(1)) return reduced;
  const TensorType& x = call.node().operand(0)->type();
  Shape kept = x.shape;
  for (int64_t axis : normalize_axes(call.attribute<Axes>(0), rank(x.shape), "reduce")) {
    kept[static_cast<size_t>(axis)] = 1;
  }
  return ops::reshape(reduced, kept);
}

Axes reduced_axes(const Node& node) {
  return normalize_axes(node.attribute<Axes>(0), rank(node.operand(0)->type().shape), "reduce");
}

// One value for each reduced part, repeated to x's shape and in x's memory order, so that what
// follows stays in it.
Tensor repeated_like(const Tensor& reduced, const Tensor& x) {
  const Layout layout = x.type().layout;
  const bool other = x.rank() >= 3 && layout != reduced.type().layout;
  const Tensor ordered = other ? ops::with_layout(reduced, static_cast<int64_t>(layout)) : reduced;
  return ops::broadcast_to(ordered, x.shape());
}

// The gradient of a maximum or minimum: shared equally among the elements that reach it.
void extremum_vjp(VjpCall& call) {
  const Tensor x = call.operand(0);
  const Tensor reached = ops::equal(x, with_axes(call.result(), call));
  const Tensor share = ops::cast(reached, x.dtype());
  const Axes axes = reduced_axes(call.node());
  call.give(0, share * (with_axes(call.cotangent(), call) / ops::sum(share, axes, true)));
}

// The position of the first element that equals the extremum, NaN counting as it.
std::vector<Tensor> first_position(const CompositeCall& call, bool largest) {
  const int64_t axis = normalize_axis(call.attribute<int64_t>(0), call[0].rank(), "argmax");
  const Axes axes{axis};
  const Tensor x = call[0];
  const Tensor extremum = largest ? ops::reduce_max(x, axes) : ops::reduce_min(x, axes);
  Tensor reached = ops::equal(x, extremum);
  if (is_float(x.dtype())) reached = ops::bitwise_or(reached, ops::isnan(x));
  Shape along(static_cast<uint32_t>(x.rank()), Dim(1));
  along[static_cast<size_t>(axis)] = x.shape()[static_cast<size_t>(axis)];
  const Tensor positions = ops::element_numbers(along);
  const Tensor none = ops::size_as(DType::Int64, x.shape(), axes);
  const Tensor first = ops::reduce_min(ops::where(reached, positions, none), axes);
  return {call.attribute<bool>(1) ? first : ops::squeeze(first, axes)};
}

void infer_position(InferCall& call) {
  const TensorType& x = call.operand(0);
  const std::string_view name = call.op.name();
  const int axis = normalize_axis(call.attribute<int64_t>(0), rank(x.shape), name);
  if (x.shape[static_cast<size_t>(axis)].is(0)) {
    fail(ErrorKind::Value, "[{}] axis {} has no elements (x: {})", name, axis, text(x));
  }
  TensorType result{DType::Int64, Layout::RowMajor, x.shape};
  if (call.attribute<bool>(1)) {
    result.shape[static_cast<size_t>(axis)] = 1;
    result.layout = x.layout;
  } else {
    result.shape.erase(static_cast<uint32_t>(axis));
  }
  call.results.push_back(result);
}

void infer_extremum_step(InferCall& call) {
  infer::reduce_keeping_axes(call);
  for (int64_t axis : call.attribute<Axes>(0)) {
    if (!call.operand(0).shape[static_cast<size_t>(axis)].is(0)) continue;
    fail(ErrorKind::Value, "[{}] axis {} has no elements (x: {})", call.op.name(), axis,
         text(call.operand(0)));
  }
}

std::vector<Tensor> batch_reduce(const BatchCall& call) {
  Axes axes;
  for (int64_t axis : call.attribute<Axes>(0)) axes.push_back(axis + 1);
  const ReductionSteps steps = reduction_steps(call.operand(0).type(), axes);
  if (steps.inner.empty() || steps.outer.empty()) return call.record({call.operand(0)}, {axes});
  return call.record(call.record({call.operand(0)}, {steps.inner}), {steps.outer});
}

}  // namespace

ReductionSteps reduction_steps(const TensorType& type, const Axes& axes) {
  const auto reduces = [&](int64_t axis) {
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
  };
  const Axes order = physical_order(type.layout, rank(type.shape));
  // The innermost run of reduced axes in memory; axes of size 1 do not count.
  ReductionSteps steps;
  bool inner = true;
  for (size_t i = order.size(); i-- > 0;) {
    const int64_t axis = order[i];
    const bool single = type.shape[static_cast<size_t>(axis)].is(1);
    if (!reduces(axis)) {
      inner = inner && single;
      continue;
    }
    if (single) continue;
    (inner ? steps.inner : steps.outer).push_back(axis);
  }
  std::sort(steps.inner.begin(), steps.inner.end());
  std::sort(steps.outer.begin(), steps.outer.end());
  return steps;
}

namespace ops {

Tensor size_as(DType dtype, const Shape& shape, const Axes& axes) {
  Dim count = 1;
  for (int64_t axis : axes) count = count * shape[static_cast<size_t>(axis)];
  return Tensor(Value::size(dtype, count));
}

Tensor zeros_of(const TensorType& type) {
  return broadcast_to(Tensor(Value::scalar(type.dtype, 0)), type.shape);
}

}  // namespace ops

#define LAMELLA_REDUCTION_PRIMITIVE_FIELDS(opcode, dtypes, infer_rule, formula)         \
  .accepts = dtypes, .infer = infer_rule, .lower = tile_reduction(opcode),              \
  .vjp = not_differentiable("it is a part of the reductions users call"),               \
  .batch = batch::rule(batch_reduce), .reference = numpy(formula, 16), .cost = Cost{1}, \
  .samples = Samples{"randn(3, 5), axes=(1,)"}

LAMELLA_OP(reduce_sum, (Operand x, Axes axes),
    .doc = "The sum over inner or over outer axes, which keep size 1.",
    LAMELLA_REDUCTION_PRIMITIVE_FIELDS(Opcode::ReduceSum, kNumbers, infer::reduce_keeping_axes,
                                       "np.sum(x, axis=axes_, keepdims=True)"))

LAMELLA_OP(reduce_prod, (Operand x, Axes axes),
    .doc = "The product over inner or over outer axes, which keep size 1.",
    LAMELLA_REDUCTION_PRIMITIVE_FIELDS(Opcode::ReduceProd, kNumbers, infer::reduce_keeping_axes,
                                       "np.prod(x, axis=axes_, keepdims=True)"))

LAMELLA_OP(reduce_max, (Operand x, Axes axes),
    .doc = "The maximum over inner or over outer axes, which keep size 1; NaN if any is NaN.",
    LAMELLA_REDUCTION_PRIMITIVE_FIELDS(Opcode::ReduceMax, kAnyDType, infer_extremum_step,
                                       "np.max(x, axis=axes_, keepdims=True)"))

LAMELLA_OP(reduce_min, (Operand x, Axes axes),
    .doc = "The minimum over inner or over outer axes, which keep size 1; NaN if any is NaN.",
    LAMELLA_REDUCTION_PRIMITIVE_FIELDS(Opcode::ReduceMin, kAnyDType, infer_extremum_step,
                                       "np.min(x, axis=axes_, keepdims=True)"))

LAMELLA_OP(sum, (Operand x, Axes axis = {}, bool keepdims = false),
    .doc = "The sum along axes (none given: all). Integers and bools add up in int64; the sum of "
           "nothing is 0.",
    .accepts = kAnyDType, .infer = (infer_reduction<sum_dtype, Empty::Allowed>),
    .lower = composite([](const CompositeCall& call) {
      return reduce_composite(call, ops::reduce_sum);
    }),
    .vjp = vjp([](VjpCall& call) {
      call.give(0, repeated_like(with_axes(call.cotangent(), call), call.operand(0)));
    }),
    .batch = batch::along_axes<0>,
    .reference = numpy("np.sum(x, axis=axes(axis), keepdims=keepdims)", 16), .cost = Cost{1},
    .samples = Samples{"randn(3, 5)", "randn(3, 5, 4), axis=(0, 2)", "randn(2, 70), axis=(1,), keepdims=True",
                       "randn(200, 3), axis=(0,)", "randn(0, 3), axis=(0,)"})

LAMELLA_OP(mean, (Operand x, Axes axis = {}, bool keepdims = false),
    .doc = "The arithmetic mean along axes (none given: all); NaN of nothing. Integers give the whole "
           "number towards 0.",
    .accepts = kNumbers, .infer = (infer_reduction<same_dtype, Empty::Allowed>),
    .lower = composite([](const CompositeCall& call) {
      const Tensor x = call[0];
      const Axes axes = normalize_axes(call.attribute<Axes>(0), x.rank(), "mean");
      const DType dtype = call.result_type().dtype;
      const Tensor total = ops::sum(x, axes, call.attribute<bool>(1));
      if (is_float(dtype)) return std::vector{total / ops::size_as(dtype, x.shape(), axes)};
      const Tensor exact = ops::cast(total, DType::Float64) /
                           ops::size_as(DType::Float64, x.shape(), axes);
      return std::vector{ops::cast(exact, dtype)};
    }),
    .vjp = vjp([](VjpCall& call) {
      const Tensor x = call.operand(0);
      const Tensor share = with_axes(call.cotangent(), call) /
                           ops::size_as(x.dtype(), x.shape(), reduced_axes(call.node()));
      call.give(0, repeated_like(share, x));
    }),
    .batch = batch::along_axes<0>,
    .reference = numpy("np.mean(x, axis=axes(axis), keepdims=keepdims)", 16), .cost = Cost{1},
    .samples = Samples{"randn(3, 5)", "randn(3, 5, 4), axis=(0, 2)", "randn(2, 70), axis=(1,), keepdims=True"})

LAMELLA_OP(prod, (Operand x, Axes axis = {}, bool keepdims = false),
    .doc = "The product along axes (none given: all); 1 of nothing. Integers multiply in int64.",
    .accepts = kAnyDType, .infer = (infer_reduction<sum_dtype, Empty::Allowed>),
    .lower = composite([](const CompositeCall& call) {
      return reduce_composite(call, ops::reduce_prod);
    }),
    .vjp = vjp([](VjpCall& call) {
      // With no zero the others' product is result / x; with one zero only that element has a slope,
      // the product of the others; with two or more none has.
      const Tensor x = call.operand(0);
      const Axes axes = reduced_axes(call.node());
      const Tensor zero = ops::equal(x, 0);
      const Tensor filled = ops::where(zero, 1.0, x);
      const Tensor others = ops::prod(filled, axes, true);
      const Tensor zeros = ops::sum(ops::cast(zero, x.dtype()), axes, true);
      const Tensor none = ops::where(ops::equal(zeros, 0), others / filled, 0.0);
      const Tensor one = ops::where(ops::logical_and(ops::equal(zeros, 1), zero), others, 0.0);
      call.give(0, with_axes(call.cotangent(), call) * (none + one));
    }),
    .batch = batch::along_axes<0>,
    .reference = numpy("np.prod(x, axis=axes(axis), keepdims=keepdims)", 32), .cost = Cost{1},
    .samples = Samples{"randn(3, 5)", "randn(3, 5, 4), axis=(0, 2)", "randn(2, 7), axis=(1,), keepdims=True"})

LAMELLA_OP(max, (Operand x, Axes axis = {}, bool keepdims = false),
    .doc = "The largest element along axes (none given: all); NaN if any is NaN. Equal maxima share "
           "the gradient.",
    .accepts = kAnyDType, .infer = (infer_reduction<same_dtype, Empty::Refused>),
    .lower = composite([](const CompositeCall& call) {
      return reduce_composite(call, ops::reduce_max);
    }),
    .vjp = vjp(extremum_vjp),
    .batch = batch::along_axes<0>,
    .reference = numpy("np.max(x, axis=axes(axis), keepdims=keepdims)", 0), .cost = Cost{1},
    .samples = Samples{"randn(3, 5)", "randn(3, 5, 4), axis=(0, 2)", "randn(2, 70), axis=(1,), keepdims=True"})

LAMELLA_OP(min, (Operand x, Axes axis = {}, bool keepdims = false),
    .doc = "The smallest element along axes (none given: all); NaN if any is NaN. Equal minima share "
           "the gradient.",
    .accepts = kAnyDType, .infer = (infer_reduction<same_dtype, Empty::Refused>),
    .lower = composite([](const CompositeCall& call) {
      return reduce_composite(call, ops::reduce_min);
    }),
    .vjp = vjp(extremum_vjp),
    .batch = batch::along_axes<0>,
    .reference = numpy("np.min(x, axis=axes(axis), keepdims=keepdims)", 0), .cost = Cost{1},
    .samples = Samples{"randn(3, 5)", "randn(3, 5, 4), axis=(0, 2)", "randn(2, 70), axis=(1,), keepdims=True"})

LAMELLA_OP(any, (Operand x, Axes axis = {}, bool keepdims = false),
    .doc = "Whether any element along axes (none given: all) is not 0; false of nothing.",
    .accepts = kAnyDType, .infer = (infer_reduction<bool_dtype, Empty::Allowed>),
    .lower = composite([](const CompositeCall& call) {
      return std::vector{ops::cast(
          ops::sum(ops::not_equal(call[0], 0), call.attribute<Axes>(0), call.attribute<bool>(1)),
          DType::Bool)};
    }),
    .vjp = not_differentiable("its result is a bool"),
    .batch = batch::along_axes<0>,
    .reference = numpy("np.any(x, axis=axes(axis), keepdims=keepdims)", 0), .cost = Cost{1},
    .samples = Samples{"integers(3, 5)", "integers(3, 5, 4), axis=(0, 2)", "integers(2, 70), axis=(1,), keepdims=True"})

LAMELLA_OP(all, (Operand x, Axes axis = {}, bool keepdims = false),
    .doc = "Whether every element along axes (none given: all) is not 0; true of nothing.",
    .accepts = kAnyDType, .infer = (infer_reduction<bool_dtype, Empty::Allowed>),
    .lower = composite([](const CompositeCall& call) {
      const Tensor zeros = ops::sum(ops::equal(call[0], 0), call.attribute<Axes>(0), call.attribute<bool>(1));
      return std::vector{ops::equal(zeros, 0)};
    }),
    .vjp = not_differentiable("its result is a bool"),
    .batch = batch::along_axes<0>,
    .reference = numpy("np.all(x, axis=axes(axis), keepdims=keepdims)", 0), .cost = Cost{1},
    .samples = Samples{"integers(3, 5)", "integers(3, 5, 4), axis=(0, 2)", "integers(2, 70), axis=(1,), keepdims=True"})

LAMELLA_OP(argmax, (Operand x, int64_t axis = -1, bool keepdims = false),
    .doc = "The position of the largest element along an axis, the first of several; of the first NaN "
           "if there is one. int64.",
    .accepts = kAnyDType, .infer = infer_position,
    .lower = composite([](const CompositeCall& call) { return first_position(call, true); }),
    .vjp = not_differentiable("its result is a position"),
    .batch = batch::along_axes<0>,
    .reference = numpy("np.argmax(x, axis=axis, keepdims=keepdims)", 0), .cost = Cost{3},
    .samples = Samples{"randn(3, 5)", "randn(3, 5, 4), axis=1", "integers(2, 70), keepdims=True"})

LAMELLA_OP(argmin, (Operand x, int64_t axis = -1, bool keepdims = false),
    .doc = "The position of the smallest element along an axis, the first of several; of the first NaN "
           "if there is one. int64.",
    .accepts = kAnyDType, .infer = infer_position,
    .lower = composite([](const CompositeCall& call) { return first_position(call, false); }),
    .vjp = not_differentiable("its result is a position"),
    .batch = batch::along_axes<0>,
    .reference = numpy("np.argmin(x, axis=axis, keepdims=keepdims)", 0), .cost = Cost{3},
    .samples = Samples{"randn(3, 5)", "randn(3, 5, 4), axis=1", "integers(2, 70), keepdims=True"})

LAMELLA_OP(var, (Operand x, Axes axis = {}, bool keepdims = false, int64_t ddof = 0),
    .doc = "The mean squared distance from the mean along axes (none given: all), dividing by the "
           "number of elements less ddof; NaN of nothing.",
    .accepts = kFloats, .promotion = Promotion::Float,
    .infer = (infer_reduction<same_dtype, Empty::Allowed>),
    .lower = composite([](const CompositeCall& call) {
      const Tensor x = call[0];
      const Axes axes = normalize_axes(call.attribute<Axes>(0), x.rank(), "var");
      const Tensor distance = x - ops::mean(x, axes, true);
      const Tensor total = ops::sum(ops::square(distance), axes, call.attribute<bool>(1));
      Dim count = 1;
      for (int64_t axis : axes) count = count * x.shape()[static_cast<size_t>(axis)];
      Dim divisor = count - call.attribute<int64_t>(2);
      if (divisor.certainly_below(0)) divisor = 0;
      return std::vector{total / Tensor(Value::size(x.dtype(), divisor))};
    }),
    .vjp = from_composite,
    .batch = batch::along_axes<0>,
    .reference = numpy("np.var(x, axis=axes(axis), keepdims=keepdims, ddof=ddof)", 32),
    .cost = Cost{4},
    .samples = Samples{"randn(3, 5)", "randn(3, 5, 4), axis=(0, 2), ddof=1", "randn(2, 70), axis=(1,), keepdims=True"})

LAMELLA_OP(std, (Operand x, Axes axis = {}, bool keepdims = false, int64_t ddof = 0),
    .doc = "The square root of var.",
    .accepts = kFloats, .promotion = Promotion::Float,
    .infer = (infer_reduction<same_dtype, Empty::Allowed>),
    .lower = composite([](const CompositeCall& call) {
      return std::vector{ops::sqrt(ops::var(call[0], call.attribute<Axes>(0),
                                            call.attribute<bool>(1), call.attribute<int64_t>(2)))};
    }),
    .vjp = from_composite,
    .batch = batch::along_axes<0>,
    .reference = numpy("np.std(x, axis=axes(axis), keepdims=keepdims, ddof=ddof)", 32),
    .cost = Cost{4},
    .samples = Samples{"randn(3, 5)", "randn(3, 5, 4), axis=(0, 2), ddof=1", "randn(2, 70), axis=(1,), keepdims=True"})

}  // namespace lamella
