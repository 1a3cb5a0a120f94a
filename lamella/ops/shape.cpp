// Shapes and order of axes: views that move no data, and joining and cutting.
#include "lamella/kernels/copy.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/infer_rules.h"
#include "lamella/ops/tensor_operators.h"

namespace lamella {

namespace {

// A map in which result axis i is operand axis i, whole.
ViewMap identity_map(int rank) {
  ViewMap map;
  for (int i = 0; i < rank; ++i) {
    map.source_axis.push_back(static_cast<int8_t>(i));
    map.step.push_back(1);
    map.start.push_back(0);
    map.dynamic_start.push_back(-1);
  }
  return map;
}

Axes inverse(const Axes& permutation) {
  Axes result(permutation.size(), 0);
  for (size_t i = 0; i < permutation.size(); ++i) {
    result[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  }
  return result;
}

// The permutation with its axes counted from the front.
Axes normalized_permutation(const Axes& given, int rank, const char* name) {
  if (given.empty()) {
    Axes reversed;
    for (int i = rank; i-- > 0;) reversed.push_back(i);
    return reversed;
  }
  Axes result;
  for (int64_t axis : given) result.push_back(normalize_axis(axis, rank, name));
  Axes sorted = result;
  std::sort(sorted.begin(), sorted.end());
  bool whole = static_cast<int>(sorted.size()) == rank;
  for (size_t i = 0; i < sorted.size(); ++i) whole = whole && sorted[i] == static_cast<int64_t>(i);
  if (!whole) {
    fail(ErrorKind::Value, "[{}] axes {} do not name each of {} axes once", name,
         text(AttributeValue(given)), rank);
  }
  return result;
}

// A requested shape in which one size may be -1: what is left over.
Shape resolve_reshape(const TensorType& x, const Shape& asked) {
  Shape result = asked;
  std::optional<size_t> open;
  Dim known = 1;
  for (size_t i = 0; i < asked.size(); ++i) {
    if (asked[i].is(-1)) {
      if (open) fail(ErrorKind::Value, "[reshape] only one size may be -1, got {}", text(asked));
      open = i;
      continue;
    }
    if (asked[i].certainly_below(0)) {
      fail(ErrorKind::Value, "[reshape] size {} in {} is negative", asked[i].text(), text(asked));
    }
    known = known * asked[i];
  }
  const Dim count = element_count(x.shape);
  if (open) {
    if (known.is(0)) {
      fail(ErrorKind::Value, "[reshape] the size for -1 in {} is not determined: x is {}",
           text(asked), text(x));
    }
    const Dim rest = floor_div(count, known);
    result[*open] = rest;
    known = known * rest;
  }
  if (known != count) {
    fail(ErrorKind::Value, "[reshape] {} has {} elements, which do not fill shape {}", text(x),
         count.text(), text(asked));
  }
  return result;
}

std::vector<Tensor> batch_transpose(const BatchCall& call) {
  Axes axes{0};
  for (int64_t axis : normalized_permutation(call.attribute<Axes>(0), call.rank(0), "transpose")) {
    axes.push_back(axis + 1);
  }
  return {ops::transpose(call.operand(0), axes)};
}

std::vector<Tensor> batch_broadcast_to(const BatchCall& call) {
  const Shape shape = call.result_shape();
  return {ops::broadcast_to(call.aligned(0, lamella::rank(shape) - 1), shape)};
}

// Where narrow and narrow_update begin is one number for all examples: nothing but data could make
// it differ, and that is refused when it is recorded.
std::vector<Tensor> batch_narrow(const BatchCall& call) {
  LAMELLA_CHECK(!call.is_batched(1));
  std::vector<AttributeValue> attributes = call.attributes();
  attributes[0] = batch::moved(call.attribute<int64_t>(0));
  std::vector<Tensor> operands{call.stacked(0), call.operand(1)};
  if (call.operand_count() > 2) operands.push_back(call.stacked(2));
  return call.record(operands, std::move(attributes));
}

// The order in memory is that of one example's axes; of the batch's nobody asked for one.
std::vector<Tensor> batch_with_layout(const BatchCall& call) {
  return {call.operand(0)};
}

}  // namespace

LAMELLA_OP(reshape, (Operand x, Shape shape),
    .doc = "The same elements in row-major order under another shape; one size may be -1.",
    .accepts = kAnyDType,
    .infer = [](InferCall& call) {
      const TensorType& x = call.operand(0);
      call.results.push_back({x.dtype, Layout::RowMajor, resolve_reshape(x, call.attribute<Shape>(0))});
    },
    .lower = view([](const Node&) {
      ViewMap map;
      map.reshape = true;
      return map;
    }),
    .vjp = vjp([](VjpCall& call) {
      call.give(0, ops::reshape(call.cotangent(), call.operand(0).shape()));
    }),
    .batch = batch::another_shape,
    .reference = numpy("np.reshape(x, shape)", 0), .cost = Cost{0},
    .samples = Samples{"randn(3, 4), shape=(2, -1)", "randn(2, 3, 4), shape=(24,)", "randn(1), shape=()"})

LAMELLA_OP(transpose, (Operand x, Axes axes = {}),
    .doc = "Axes in another order: result axis i is axis axes[i] of x; reversed if none are given.",
    .accepts = kAnyDType,
    .infer = [](InferCall& call) {
      const TensorType& x = call.operand(0);
      TensorType result{x.dtype, Layout::RowMajor, {}};
      for (int64_t axis : normalized_permutation(call.attribute<Axes>(0), rank(x.shape), "transpose")) {
        result.shape.push_back(x.shape[static_cast<size_t>(axis)]);
      }
      call.results.push_back(result);
    },
    .lower = view([](const Node& node) {
      const int rank = lamella::rank(node.operand(0)->type().shape);
      ViewMap map = identity_map(rank);
      const Axes axes = normalized_permutation(node.attribute<Axes>(0), rank, "transpose");
      for (size_t i = 0; i < axes.size(); ++i) map.source_axis[i] = static_cast<int8_t>(axes[i]);
      return map;
    }),
    .vjp = vjp([](VjpCall& call) {
      call.give(0, ops::transpose(call.cotangent(),
                                  inverse(normalized_permutation(call.attribute<Axes>(0),
                                                                 call.operand(0).rank(), "transpose"))));
    }),
    .batch = batch::rule(batch_transpose),
    .reference = numpy("np.transpose(x, axes(axes_))", 0), .cost = Cost{0},
    .samples = Samples{"randn(3, 4)", "randn(2, 3, 4), axes=(2, 0, 1)"})

LAMELLA_OP(broadcast_to, (Operand x, Shape shape),
    .doc = "x repeated along new and size-1 axes until it has the shape; -1 keeps x's size.",
    .accepts = kAnyDType,
    .infer = [](InferCall& call) {
      const TensorType& x = call.operand(0);
      const Shape& asked = call.attribute<Shape>(0);
      TensorType result{x.dtype, asked.size() == x.shape.size() ? x.layout : Layout::RowMajor, asked};
      const uint32_t shift = asked.size() - x.shape.size();
      bool fits = asked.size() >= x.shape.size();
      for (uint32_t i = 0; fits && i < asked.size(); ++i) {
        if (i < shift) {
          fits = !asked[i].is(-1);
          continue;
        }
        const Dim size = x.shape[i - shift];
        if (asked[i].is(-1)) result.shape[i] = size;
        fits = size.is(1) || result.shape[i] == size;
      }
      if (!fits) {
        fail(ErrorKind::Value, "[broadcast_to] x of type {} does not broadcast to shape {}", text(x),
             text(asked));
      }
      call.results.push_back(result);
    },
    .lower = view([](const Node& node) {
      const Shape& from = node.operand(0)->type().shape;
      const Shape& to = node.result()->type().shape;
      ViewMap map = identity_map(rank(from));
      map.source_axis.clear();
      map.step.clear();
      for (uint32_t i = 0; i < to.size(); ++i) {
        const int source = static_cast<int>(i + from.size()) - static_cast<int>(to.size());
        const bool repeats = source < 0 || (from[static_cast<size_t>(source)].is(1) && !to[i].is(1));
        map.source_axis.push_back(static_cast<int8_t>(repeats ? -1 : source));
        map.step.push_back(1);
      }
      return map;
    }),
    .vjp = vjp([](VjpCall& call) { call.give(0, call.cotangent()); }),
    .batch = batch::rule(batch_broadcast_to),
    .reference = numpy("np.broadcast_to(x, shape)", 0), .cost = Cost{0},
    .samples = Samples{"randn(3, 1), shape=(2, 3, 4)", "randn(4), shape=(0, 4)"})

LAMELLA_OP(expand_dims, (Operand x, int64_t axis),
    .doc = "A new axis of size 1 at a place of the result.",
    .accepts = kAnyDType,
    .infer = [](InferCall& call) {
      const TensorType& x = call.operand(0);
      TensorType result{x.dtype, Layout::RowMajor, x.shape};
      const int axis = normalize_axis(call.attribute<int64_t>(0), rank(x.shape) + 1, "expand_dims");
      result.shape.insert(static_cast<uint32_t>(axis), 1);
      call.results.push_back(result);
    },
    .lower = composite_of_moves([](const CompositeCall& call) {
      return std::vector{ops::reshape(call[0], call.result_type().shape)};
    }),
    .vjp = vjp([](VjpCall& call) {
      call.give(0, ops::reshape(call.cotangent(), call.operand(0).shape()));
    }),
    .batch = batch::another_shape,
    .reference = numpy("np.expand_dims(x, axis)", 0), .cost = Cost{0},
    .samples = Samples{"randn(3, 4), axis=0", "randn(3), axis=-1"})

LAMELLA_OP(squeeze, (Operand x, Axes axis = {}),
    .doc = "Without the given axes, which must have size 1; without all such axes if none are given.",
    .accepts = kAnyDType,
    .infer = [](InferCall& call) {
      const TensorType& x = call.operand(0);
      const bool all = call.attribute<Axes>(0).empty();
      const Axes axes = normalize_axes(call.attribute<Axes>(0), rank(x.shape), "squeeze");
      TensorType result{x.dtype, Layout::RowMajor, {}};
      size_t next = 0;
      for (int axis = 0; axis < rank(x.shape); ++axis) {
        const Dim size = x.shape[static_cast<size_t>(axis)];
        const bool named = next < axes.size() && axes[next] == axis;
        next += named;
        if (named && !all && !size.is(1)) {
          fail(ErrorKind::Value, "[squeeze] axis {} has size {}, only size 1 can go (x: {})", axis,
               size.text(), text(x));
        }
        if (!named || !size.is(1)) result.shape.push_back(size);
      }
      call.results.push_back(result);
    },
    .lower = composite_of_moves([](const CompositeCall& call) {
      return std::vector{ops::reshape(call[0], call.result_type().shape)};
    }),
    .vjp = vjp([](VjpCall& call) {
      call.give(0, ops::reshape(call.cotangent(), call.operand(0).shape()));
    }),
    .batch = batch::another_shape,
    .reference = numpy("np.squeeze(x, axes(axis))", 0), .cost = Cost{0},
    .samples = Samples{"randn(3, 1, 4), axis=(1,)", "randn(1, 3, 1)"})

LAMELLA_OP(narrow, (Operand x, Operand start, int64_t axis, Shape length, int64_t step = 1),
    .doc = "Every step-th of the elements of one axis, `length` of them from `start` on. start is a "
           "number and may change from call to call without a new graph. step may be negative.",
    .accepts = kAnyDType, .accepts_each = {kAnyDType, DTypeSet::of({DType::Int64})},
    .infer = [](InferCall& call) {
      TensorType result = call.operand(0);
      const int axis = normalize_axis(call.attribute<int64_t>(0), rank(result.shape), "narrow");
      const Dim size = result.shape[static_cast<size_t>(axis)], length = call.attribute<Shape>(1)[0];
      const int64_t step = call.attribute<int64_t>(2);
      const Dim reach = (length - 1) * (step < 0 ? -step : step) + 1;
      if (length.certainly_below(0) || (!length.is(0) && (size - reach).certainly_below(0))) {
        fail(ErrorKind::Value, "[narrow] {} elements with step {} reach beyond axis {} of size {} (x: {})",
             length.text(), step, axis, size.text(), text(call.operand(0)));
      }
      result.shape[static_cast<size_t>(axis)] = length;
      call.results.push_back(result);
    },
    .lower = view([](const Node& node) {
      const int rank = lamella::rank(node.operand(0)->type().shape);
      ViewMap map = identity_map(rank);
      const auto axis = static_cast<size_t>(normalize_axis(node.attribute<int64_t>(0), rank, "narrow"));
      map.step[axis] = node.attribute<int64_t>(2);
      map.dynamic_start[axis] = 1;
      return map;
    }),
    .vjp = vjp([](VjpCall& call) {
      const Tensor x = call.operand(0);
      call.give(0, ops::narrow_update(ops::zeros_of(x.type()), call.operand(1), call.cotangent(),
                                      call.attribute<int64_t>(0), call.attribute<int64_t>(2)));
    }),
    .batch = batch::rule(batch_narrow),
    .reference = numpy("narrow(x, start, axis, length, step)", 0), .cost = Cost{0},
    .samples = Samples{"randn(3, 6), 1, axis=1, length=(3,)", "randn(5), 4, axis=0, length=(3,), step=-2"})

LAMELLA_OP(narrow_update, (Operand x, Operand start, Operand part, int64_t axis, int64_t step = 1),
    .doc = "x with the elements that narrow would read replaced by `part`.",
    .accepts = kAnyDType, .accepts_each = {kAnyDType, DTypeSet::of({DType::Int64}), kAnyDType},
    .infer = [](InferCall& call) {
      const TensorType &x = call.operand(0), &part = call.operand(2);
      const int axis = normalize_axis(call.attribute<int64_t>(0), rank(x.shape), "narrow_update");
      bool fits = part.shape.size() == x.shape.size();
      for (int i = 0; fits && i < rank(x.shape); ++i) {
        fits = i == axis || part.shape[static_cast<size_t>(i)] == x.shape[static_cast<size_t>(i)];
      }
      if (!fits || part.dtype != x.dtype) {
        fail(ErrorKind::Value, "[narrow_update] part ({}) must be like x ({}) but along axis {}", text(part),
             text(x), axis);
      }
      call.results.push_back(x);
    },
    .lower = kernel({.run = [](const KernelCall& call) {
                       const TensorView& out = call.results[0];
                       kernels::copy(call.operands[0], out);
                       const auto axis = static_cast<size_t>(
                           normalize_axis(call.attribute<int64_t>(0), out.rank(), "narrow_update"));
                       const TensorView& part = call.operands[2];
                       const int64_t start = call.number<int64_t>(1), step = call.attribute<int64_t>(1);
                       const int64_t size = out.sizes[axis], last = start + (part.sizes[axis] - 1) * step;
                       const bool inside = start >= 0 && start < size && last >= 0 && last < size;
                       if (part.sizes[axis] > 0 && !inside) {
                         fail(ErrorKind::Index,
                              "[narrow_update] elements {} to {} are out of range for axis {} of size {}",
                              start, last, axis, size);
                       }
                       TensorView target = out;
                       target.data = static_cast<char*>(out.data) +
                                     (part.sizes[axis] > 0 ? start : 0) * out.strides[axis] * size_of(out.dtype);
                       target.strides[axis] *= step;
                       target.sizes[axis] = part.sizes[axis];
                       kernels::copy(part, target);
                     },
                     .strided_operands = true,
                     .may_fail = true}),
    .vjp = vjp([](VjpCall& call) {
      const Tensor part = call.operand(2);
      const int64_t axis = call.attribute<int64_t>(0), step = call.attribute<int64_t>(1);
      const auto at = static_cast<size_t>(normalize_axis(axis, part.rank(), "narrow_update"));
      if (call.needs(0)) {
        call.give(0, ops::narrow_update(call.cotangent(), call.operand(1), ops::zeros_of(part.type()),
                                        axis, step));
      }
      if (call.needs(2)) {
        call.give(2, ops::narrow(call.cotangent(), call.operand(1), axis, Shape{part.shape()[at]}, step));
      }
    }),
    .batch = batch::rule(batch_narrow),
    .reference = numpy("narrow_update(x, start, part, axis, step)", 0), .cost = Cost{0},
    .samples = Samples{"randn(3, 6), 1, randn(3, 3), axis=1", "randn(5), 4, randn(3), axis=0, step=-2"})

LAMELLA_OP(concat, (Operands tensors, int64_t axis = 0),
    .doc = "Tensors one behind the other along an axis; the other sizes must agree.",
    .accepts = kAnyDType, .promotion = Promotion::Common,
    .infer = [](InferCall& call) {
      if (call.operands.empty()) fail(ErrorKind::Value, "[concat] tensors is empty");
      TensorType result = call.operand(0);
      const int axis = normalize_axis(call.attribute<int64_t>(0), rank(result.shape), "concat");
      Dim total = 0;
      for (const TensorType* operand : call.operands) {
        Shape other = operand->shape;
        if (other.size() == result.shape.size()) {
          total = total + other[static_cast<size_t>(axis)];
          other[static_cast<size_t>(axis)] = call.operand(0).shape[static_cast<size_t>(axis)];
        }
        if (other != call.operand(0).shape) {
          fail(ErrorKind::Value, "[concat] {} does not fit {}: sizes may differ along axis {} only",
               text(*operand), text(call.operand(0)), axis);
        }
      }
      result.shape[static_cast<size_t>(axis)] = total;
      call.results.push_back(result);
    },
    .lower = kernel({.run = [](const KernelCall& call) {
                       const int axis = normalize_axis(call.attribute<int64_t>(0),
                                                       call.results[0].rank(), "concat");
                       kernels::concat(call.operands, axis, call.results[0]);
                     },
                     .strided_operands = true}),
    .vjp = vjp([](VjpCall& call) {
      const int64_t axis = call.attribute<int64_t>(0);
      Dim start = 0;
      for (size_t i = 0; i < call.node().operands().size(); ++i) {
        const Dim size = call.operand(i).size(axis);
        if (call.needs(i)) {
          call.give(i, ops::narrow(call.cotangent(), Tensor(Value::size(DType::Int64, start)), axis,
                                   Shape{size}));
        }
        start = start + size;
      }
    }),
    .batch = batch::along_axes<0>,
    .reference = numpy("np.concatenate(tensors, axis)", 0), .cost = Cost{0},
    .samples = Samples{"[randn(2, 3), randn(4, 3)]", "[randn(2, 3), randn(2, 1), randn(2, 0)], axis=1"})

LAMELLA_OP(stack, (Operands tensors, int64_t axis = 0),
    .doc = "Tensors of one shape side by side along a new axis.",
    .accepts = kAnyDType, .promotion = Promotion::Common,
    .infer = [](InferCall& call) {
      if (call.operands.empty()) fail(ErrorKind::Value, "[stack] tensors is empty");
      TensorType result = call.operand(0);
      for (const TensorType* operand : call.operands) {
        if (operand->shape != result.shape) {
          fail(ErrorKind::Value, "[stack] shapes differ: {} and {}", text(result), text(*operand));
        }
      }
      const int axis = normalize_axis(call.attribute<int64_t>(0), rank(result.shape) + 1, "stack");
      result.shape.insert(static_cast<uint32_t>(axis), static_cast<int64_t>(call.operands.size()));
      result.layout = Layout::RowMajor;
      call.results.push_back(result);
    },
    .lower = composite_of_moves([](const CompositeCall& call) {
      const int64_t axis = normalize_axis(call.attribute<int64_t>(0), call[0].rank() + 1, "stack");
      std::vector<Tensor> parts;
      for (const Tensor& operand : call.operands) parts.push_back(ops::expand_dims(operand, axis));
      return std::vector{ops::concat(parts, axis)};
    }),
    .vjp = from_composite,
    .batch = batch::through_composite,
    .reference = numpy("np.stack(tensors, axis)", 0), .cost = Cost{0},
    .samples = Samples{"[randn(2, 3), randn(2, 3)]", "[randn(3), randn(3)], axis=-1"})

LAMELLA_OP(with_layout, (Operand x, int64_t layout),
    .doc = "The same elements in another memory order (0 row-major, 1 channels-last).",
    .accepts = kAnyDType,
    .infer = [](InferCall& call) {
      TensorType result = call.operand(0);
      result.layout = static_cast<Layout>(call.attribute<int64_t>(0));
      call.results.push_back(result);
    },
    .lower = tile_instructions([](tile::Builder&, std::span<const tile::ValueId> o, const Node&) {
      return o[0];
    }),
    .vjp = vjp([](VjpCall& call) { call.give(0, call.cotangent()); }),
    .batch = batch::rule(batch_with_layout),
    .reference = numpy("x", 0), .cost = Cost{0},
    .samples = Samples{"randn(2, 3, 4, 5), layout=1", "randn(2, 3, 4, 5), layout=0"})

LAMELLA_OP(element_numbers, (Shape shape),
    .doc = "0, 1, 2, ... in row-major order under a shape, as int64.",
    .accepts = kAnyDType,
    .infer = [](InferCall& call) {
      call.results.push_back({DType::Int64, Layout::RowMajor, call.attribute<Shape>(0)});
    },
    .lower = element_numbers(),
    .vjp = not_differentiable("it has no operand"),
    .batch = batch::one_by_one,
    .reference = numpy("np.arange(np.prod(shape, dtype=np.int64)).reshape(shape)", 0), .cost = Cost{1},
    .samples = Samples{"shape=(3, 5)", "shape=(0,)"})

}  // namespace lamella
