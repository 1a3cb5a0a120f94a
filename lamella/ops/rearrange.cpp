// Elements moved: padding, repeating, cutting, turning and shifting.
#include "lamella/kernels/copy.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/infer_rules.h"
#include "lamella/ops/tensor_operators.h"

namespace lamella {

namespace {

kernels::PadMode pad_mode(const std::string& mode) {
  if (mode == "constant") return kernels::PadMode::Constant;
  if (mode == "reflect") return kernels::PadMode::Reflect;
  if (mode == "replicate") return kernels::PadMode::Replicate;
  if (mode == "circular") return kernels::PadMode::Circular;
  fail(ErrorKind::Value,
       "[pad] mode must be 'constant', 'reflect', 'replicate' or 'circular', got '{}'", mode);
}

Tensor size_number(Dim size) {
  return Tensor(Value::size(DType::Int64, size));
}

// The elements [start, start + length) of an axis.
Tensor part(const Tensor& x, Dim start, int64_t axis, Dim length) {
  return ops::narrow(x, size_number(start), axis, Shape{length});
}

// The sizes of a split: given, or as many of the one given as fit, and what is left.
std::vector<Dim> split_sizes(const TensorType& x, int64_t axis, const Shape& sizes,
                             std::string_view op) {
  const Dim whole = x.shape[static_cast<size_t>(normalize_axis(axis, rank(x.shape), op))];
  if (sizes.size() == 1 && sizes[0] != whole) {
    const int64_t size = sizes[0].value(), all = whole.value();
    if (size < 1)
      fail(ErrorKind::Value, "[{}] the size of a part must be at least 1, got {}", op, size);
    std::vector<Dim> parts;
    for (int64_t start = 0; start < all; start += size)
      parts.push_back(std::min(size, all - start));
    if (parts.empty()) parts.push_back(0);
    return parts;
  }
  Dim sum = 0;
  for (Dim size : sizes) {
    if (size.certainly_below(0))
      fail(ErrorKind::Value, "[{}] size {} is negative", op, size.text());
    sum = sum + size;
  }
  if (sum != whole) {
    fail(ErrorKind::Value, "[{}] sizes {} add up to {}, but axis {} has {} (x: {})", op,
         text(sizes), sum.text(), axis, whole.text(), text(x));
  }
  return {sizes.begin(), sizes.end()};
}

// The cotangents of parts, one behind the other again.
void join_cotangents(VjpCall& call, int64_t axis) {
  std::vector<Tensor> parts;
  for (size_t i = 0; i < call.node().results().size(); ++i) parts.push_back(call.cotangent(i));
  call.give(0, ops::concat(parts, axis));
}

Axes behind_zero(const Axes& amounts) {
  Axes all = amounts;
  all.insert(0, 0);
  return all;
}

std::vector<Tensor> batch_pad(const BatchCall& call) {
  if (call.is_batched(1)) return call.one_by_one();  // one value for all of a pad
  return call.record({call.operand(0), call.operand(1)},
                     {behind_zero(call.attribute<Axes>(0)), behind_zero(call.attribute<Axes>(1)),
                      call.attribute<std::string>(2)});
}

std::vector<Tensor> batch_pad_backward(const BatchCall& call) {
  return call.record({call.operand(0)},
                     {call.in_batch(call.attribute<Shape>(0)), behind_zero(call.attribute<Axes>(1)),
                      behind_zero(call.attribute<Axes>(2)), call.attribute<std::string>(3)});
}

}  // namespace

LAMELLA_OP(pad, (Operand x, Operand value, Axes before, Axes after, std::string mode = "constant"),
    .doc = "x with before[i] elements added before and after[i] behind each axis: value ('constant'), mirrored "
           "at the edge element ('reflect'), the edge element ('replicate'), or from the other end "
           "('circular'). Negative amounts cut off, for 'constant' only.",
    .accepts = kAnyDType, .promotion = Promotion::First,
    .infer = [](InferCall& call) {
      TensorType result = call.operand(0);
      const Axes &before = call.attribute<Axes>(0), &after = call.attribute<Axes>(1);
      const kernels::PadMode mode = pad_mode(call.attribute<std::string>(2));
      if (before.size() != result.shape.size() || after.size() != result.shape.size()) {
        fail(ErrorKind::Value, "[pad] before and after take one number an axis, got {} and {} (x: {})",
             text(AttributeValue(before)), text(AttributeValue(after)), text(result));
      }
      for (size_t i = 0; i < before.size(); ++i) {
        const Dim size = result.shape[i];
        const int64_t low = std::min(before[i], after[i]), high = std::max(before[i], after[i]);
        const bool too_far = (mode == kernels::PadMode::Reflect && high > 0 && size.certainly_below(high + 1)) ||
                             (mode == kernels::PadMode::Circular && size.certainly_below(high)) ||
                             (mode == kernels::PadMode::Replicate && high > 0 && size.is(0));
        const Dim padded = size + (before[i] + after[i]);
        if (too_far || (mode != kernels::PadMode::Constant && low < 0) || padded.certainly_below(0)) {
          fail(ErrorKind::Value, "[pad] cannot add {} and {} elements to axis {} in '{}' mode (x: {})", before[i], after[i], i,
               call.attribute<std::string>(2), text(call.operand(0)));
        }
        result.shape[i] = padded;
      }
      call.results.push_back(result);
    },
    .lower = kernel({.run = [](const KernelCall& call) {
                       kernels::pad(call.operands[0], call.attribute<Axes>(0), call.attribute<Axes>(1),
                                    pad_mode(call.attribute<std::string>(2)), call.operands[1].data, call.results[0]);
                     },
                     .strided_operands = true}),
    .vjp = vjp([](VjpCall& call) {
      const Axes &before = call.attribute<Axes>(0), &after = call.attribute<Axes>(1);
      const std::string& mode = call.attribute<std::string>(2);
      if (call.needs(0)) {
        call.give(0, ops::pad_backward(call.cotangent(), call.operand(0).shape(), before, after, mode));
      }
      if (call.needs(1)) {
        const Tensor inside = ops::pad_backward(call.cotangent(), call.operand(0).shape(), before, after, mode);
        call.give(1, ops::sum(call.cotangent()) - ops::sum(inside));
      }
    }),
    .batch = batch::rule(batch_pad),
    .reference = numpy("pad(x, value, before, after, mode)", 0), .cost = Cost{0},
    .samples = Samples{"randn(2, 3), 1.5, before=(1, 0), after=(0, 2)", "randn(4, 5), 0.0, before=(2, 1), after=(1, 3), mode='reflect'",
                       "randn(2, 3), 0.0, before=(1, 0), after=(2, 2), mode='replicate'", "randn(4, 5), 0.0, before=(-1, 1), after=(0, -2)",
                       "randn(4, 5), 0.0, before=(2, 1), after=(1, 3), mode='circular'"})

LAMELLA_OP(pad_backward, (Operand cotangent, Shape x_shape, Axes before, Axes after, std::string mode),
    .doc = "The cotangent of pad's x, of shape x_shape.",
    .accepts = kFloats,
    .infer = [](InferCall& call) {
      TensorType result = call.operand(0);
      result.shape = call.attribute<Shape>(0);
      call.results.push_back(result);
    },
    .lower = kernel({.run = [](const KernelCall& call) {
                       kernels::pad_backward(call.operands[0], call.attribute<Axes>(1), call.attribute<Axes>(2),
                                             pad_mode(call.attribute<std::string>(3)), call.results[0]);
                     },
                     .strided_operands = true}),
    .vjp = vjp([](VjpCall& call) {
      call.give(0, ops::pad(call.cotangent(), 0.0, call.attribute<Axes>(1), call.attribute<Axes>(2), call.attribute<std::string>(3)));
    }),
    .batch = batch::rule(batch_pad_backward),
    .reference = numpy("pad_backward(cotangent, x_shape, before, after, mode)", 4), .cost = Cost{1},
    .samples = Samples{"randn(3, 5), x_shape=(2, 3), before=(1, 0), after=(0, 2), mode='constant'"})

LAMELLA_OP(tile, (Operand x, Axes repeats),
    .doc = "x repeated repeats[i] times along each axis; the shorter of the two is filled up with ones in front.",
    .accepts = kAnyDType,
    .infer = [](InferCall& call) {
      const TensorType& x = call.operand(0);
      const Axes& repeats = call.attribute<Axes>(0);
      TensorType result{x.dtype, Layout::RowMajor, {}};
      const size_t rank = std::max<size_t>(x.shape.size(), repeats.size());
      for (size_t i = 0; i < rank; ++i) {
        const size_t from_end = rank - i;
        const int64_t times = from_end <= repeats.size() ? repeats[repeats.size() - from_end] : 1;
        if (times < 0) fail(ErrorKind::Value, "[tile] repeats must not be negative, got {}", text(AttributeValue(repeats)));
        const Dim size = from_end <= x.shape.size() ? x.shape[x.shape.size() - from_end] : Dim(1);
        result.shape.push_back(size * times);
      }
      call.results.push_back(result);
    },
    .lower = composite_of_moves([](const CompositeCall& call) {
      // Each axis as (repeats, size), the first of size 1 and broadcast.
      Tensor x = call[0];
      const Shape& shape = call.result_type().shape;
      Shape padded(static_cast<uint32_t>(shape.size()), Dim(1));
      for (size_t i = 0; i < x.shape().size(); ++i) padded[shape.size() - x.shape().size() + i] = x.shape()[i];
      const Axes& repeats = call.attribute<Axes>(0);
      x = ops::reshape(x, padded);
      for (size_t i = 0; i < shape.size(); ++i) {
        const size_t from_end = shape.size() - i;
        const int64_t times = from_end <= repeats.size() ? repeats[repeats.size() - from_end] : 1;
        if (times == 1) continue;
        if (padded[i].is(1)) {
          Shape wide = x.shape();
          wide[i] = times;
          x = ops::broadcast_to(x, wide);
          continue;
        }
        if (times == 0) {
          x = part(x, 0, static_cast<int64_t>(i), 0);
          continue;
        }
        x = ops::concat(std::vector<Tensor>(static_cast<size_t>(times), x), static_cast<int64_t>(i));
      }
      return std::vector{x};
    }),
    .vjp = from_composite,
    .batch = batch::through_composite,
    .reference = numpy("np.tile(x, repeats)", 0), .cost = Cost{0},
    .samples = Samples{"randn(2, 3), repeats=(2, 3)", "randn(3), repeats=(2, 1, 2)", "randn(2, 1), repeats=(1, 4)", "randn(2, 3), repeats=(0, 1)"})

LAMELLA_OP_MULTI(split, (Operand x, Shape sizes, int64_t axis = 0),
    .doc = "x cut along an axis into parts of the given sizes (at most 8); one size alone is that of every "
           "part, the last of which may be smaller.",
    .accepts = kAnyDType,
    .infer = [](InferCall& call) {
      TensorType result = call.operand(0);
      const int axis = normalize_axis(call.attribute<int64_t>(1), rank(result.shape), "split");
      for (Dim size : split_sizes(call.operand(0), axis, call.attribute<Shape>(0), "split")) {
        result.shape[static_cast<size_t>(axis)] = size;
        call.results.push_back(result);
      }
    },
    .lower = composite_of_moves([](const CompositeCall& call) {
      const int64_t axis = call.attribute<int64_t>(1);
      std::vector<Tensor> parts;
      Dim start = 0;
      for (Dim size : split_sizes(call[0].type(), axis, call.attribute<Shape>(0), "split")) {
        parts.push_back(part(call[0], start, axis, size));
        start = start + size;
      }
      return parts;
    }),
    .vjp = vjp([](VjpCall& call) { join_cotangents(call, call.attribute<int64_t>(1)); }),
    .batch = batch::along_axes<1>,
    .reference = numpy("split(x, sizes, axis)", 0), .cost = Cost{0},
    .samples = Samples{"randn(6, 2), sizes=(1, 3, 2)", "randn(2, 4), sizes=(2, 2), axis=1", "randn(3), sizes=(0, 3)", "randn(20), sizes=(2,)"})

LAMELLA_OP_MULTI(unstack, (Operand x, int64_t axis = 0),
    .doc = "The slices of an axis, each without it.",
    .accepts = kAnyDType,
    .infer = [](InferCall& call) {
      TensorType result = call.operand(0);
      const int axis = normalize_axis(call.attribute<int64_t>(0), rank(result.shape), "unstack");
      const int64_t count = result.shape[static_cast<size_t>(axis)].value();
      result.shape.erase(static_cast<uint32_t>(axis));
      result.layout = Layout::RowMajor;
      for (int64_t i = 0; i < count; ++i) call.results.push_back(result);
    },
    .lower = composite_of_moves([](const CompositeCall& call) {
      const int64_t axis = call.attribute<int64_t>(0);
      std::vector<Tensor> parts;
      for (size_t i = 0; i < call.node.results().size(); ++i) {
        parts.push_back(ops::squeeze(part(call[0], static_cast<int64_t>(i), axis, 1), {axis}));
      }
      return parts;
    }),
    .vjp = vjp([](VjpCall& call) {
      std::vector<Tensor> parts;
      for (size_t i = 0; i < call.node().results().size(); ++i) parts.push_back(call.cotangent(i));
      call.give(0, ops::stack(parts, call.attribute<int64_t>(0)));
    }),
    .batch = batch::along_axes<0>,
    .reference = numpy("[np.take(x, i, axis) for i in range(x.shape[axis])]", 0), .cost = Cost{0},
    .samples = Samples{"randn(3, 2)", "randn(2, 3), axis=-1"})

LAMELLA_OP(flip, (Operand x, Axes axis = {}),
    .doc = "x with the order of elements turned round along axes (none given: all).",
    .accepts = kAnyDType, .infer = [](InferCall& call) {
      normalize_axes(call.attribute<Axes>(0), rank(call.operand(0).shape), "flip");
      call.results.push_back(call.operand(0));
    },
    .lower = composite_of_moves([](const CompositeCall& call) {
      Tensor x = call[0];
      for (int64_t axis : normalize_axes(call.attribute<Axes>(0), x.rank(), "flip")) {
        const Dim size = x.shape()[static_cast<size_t>(axis)];
        if (!size.is(0)) x = ops::narrow(x, size_number(size - 1), axis, Shape{size}, -1);
      }
      return std::vector{x};
    }),
    .vjp = vjp([](VjpCall& call) { call.give(0, ops::flip(call.cotangent(), call.attribute<Axes>(0))); }),
    .batch = batch::along_axes<0>,
    .reference = numpy("np.flip(x, axes(axis))", 0), .cost = Cost{0},
    .samples = Samples{"randn(3, 4)", "randn(3, 4, 2), axis=(0, 2)", "randn(0, 4)"})

LAMELLA_OP(roll, (Operand x, Axes shifts, Axes axis),
    .doc = "x with elements moved shifts[i] places on along axis[i]; what falls off comes in at the other end.",
    .accepts = kAnyDType, .infer = [](InferCall& call) {
      const Axes &shifts = call.attribute<Axes>(0), &axes = call.attribute<Axes>(1);
      if (shifts.size() != axes.size()) {
        fail(ErrorKind::Value, "[roll] {} shifts for {} axes", shifts.size(), axes.size());
      }
      for (int64_t axis : axes) normalize_axis(axis, rank(call.operand(0).shape), "roll");
      call.results.push_back(call.operand(0));
    },
    .lower = composite_of_moves([](const CompositeCall& call) {
      Tensor x = call[0];
      const Axes &shifts = call.attribute<Axes>(0), &axes = call.attribute<Axes>(1);
      for (size_t i = 0; i < axes.size(); ++i) {
        const int64_t size = x.size(axes[i]).value();
        const int64_t shift = size == 0 ? 0 : ((shifts[i] % size) + size) % size;
        if (shift == 0) continue;
        x = ops::concat({part(x, size - shift, axes[i], shift), part(x, 0, axes[i], size - shift)}, axes[i]);
      }
      return std::vector{x};
    }),
    .vjp = vjp([](VjpCall& call) {
      Axes back = call.attribute<Axes>(0);
      for (int64_t& shift : back) shift = -shift;
      call.give(0, ops::roll(call.cotangent(), back, call.attribute<Axes>(1)));
    }),
    .batch = batch::through_composite,
    .reference = numpy("np.roll(x, shifts, axis)", 0), .cost = Cost{0},
    .samples = Samples{"randn(3, 4), shifts=(1,), axis=(0,)", "randn(3, 4), shifts=(-1, 6), axis=(0, 1)", "randn(0, 4), shifts=(1,), axis=(0,)"})

LAMELLA_OP(repeat_interleave, (Operand x, int64_t repeats, int64_t axis),
    .doc = "Each slice of an axis `repeats` times in a row.",
    .accepts = kAnyDType, .infer = [](InferCall& call) {
      TensorType result = call.operand(0);
      const int axis = normalize_axis(call.attribute<int64_t>(1), rank(result.shape), "repeat_interleave");
      if (call.attribute<int64_t>(0) < 0) {
        fail(ErrorKind::Value, "[repeat_interleave] repeats must not be negative, got {}", call.attribute<int64_t>(0));
      }
      Dim& size = result.shape[static_cast<size_t>(axis)];
      size = size * call.attribute<int64_t>(0);
      result.layout = Layout::RowMajor;
      call.results.push_back(result);
    },
    .lower = composite_of_moves([](const CompositeCall& call) {
      const int64_t repeats = call.attribute<int64_t>(0);
      const Tensor x = call[0];
      const auto axis = static_cast<uint32_t>(normalize_axis(call.attribute<int64_t>(1), x.rank(), "repeat_interleave"));
      Shape wide = x.shape();
      wide.insert(axis + 1, repeats);
      const Tensor column = ops::expand_dims(x, static_cast<int64_t>(axis) + 1);
      return std::vector{ops::reshape(ops::broadcast_to(column, wide), call.result_type().shape)};
    }),
    .vjp = from_composite,
    .batch = batch::along_axes<1>,
    .reference = numpy("np.repeat(x, repeats, axis)", 0), .cost = Cost{0},
    .samples = Samples{"randn(2, 3), repeats=2, axis=0", "randn(2, 3), repeats=3, axis=1", "randn(2, 3), repeats=0, axis=1"})

LAMELLA_OP(moveaxis, (Operand x, int64_t source, int64_t destination),
    .doc = "x with one axis moved to another place, the others in their order.",
    .accepts = kAnyDType, .infer = [](InferCall& call) {
      const TensorType& x = call.operand(0);
      const auto from = static_cast<uint32_t>(normalize_axis(call.attribute<int64_t>(0), rank(x.shape), "moveaxis"));
      const auto to = static_cast<uint32_t>(normalize_axis(call.attribute<int64_t>(1), rank(x.shape), "moveaxis"));
      TensorType result{x.dtype, Layout::RowMajor, x.shape};
      result.shape.erase(from);
      result.shape.insert(to, x.shape[from]);
      call.results.push_back(result);
    },
    .lower = composite_of_moves([](const CompositeCall& call) {
      const int rank = call[0].rank();
      const auto from = static_cast<uint32_t>(normalize_axis(call.attribute<int64_t>(0), rank, "moveaxis"));
      const auto to = static_cast<uint32_t>(normalize_axis(call.attribute<int64_t>(1), rank, "moveaxis"));
      Axes axes;
      for (int axis = 0; axis < rank; ++axis) axes.push_back(axis);
      axes.erase(from);
      axes.insert(to, static_cast<int64_t>(from));
      return std::vector{ops::transpose(call[0], axes)};
    }),
    .vjp = vjp([](VjpCall& call) {
      call.give(0, ops::moveaxis(call.cotangent(), call.attribute<int64_t>(1), call.attribute<int64_t>(0)));
    }),
    .batch = batch::along_axes<0, 1>,
    .reference = numpy("np.moveaxis(x, source, destination)", 0), .cost = Cost{0},
    .samples = Samples{"randn(2, 3, 4), source=0, destination=2", "randn(2, 3, 4), source=-1, destination=0"})

LAMELLA_OP(swapaxes, (Operand x, int64_t first, int64_t second),
    .doc = "x with two axes exchanged.",
    .accepts = kAnyDType, .infer = [](InferCall& call) {
      const TensorType& x = call.operand(0);
      const auto a = static_cast<size_t>(normalize_axis(call.attribute<int64_t>(0), rank(x.shape), "swapaxes"));
      const auto b = static_cast<size_t>(normalize_axis(call.attribute<int64_t>(1), rank(x.shape), "swapaxes"));
      TensorType result{x.dtype, Layout::RowMajor, x.shape};
      std::swap(result.shape[a], result.shape[b]);
      call.results.push_back(result);
    },
    .lower = composite_of_moves([](const CompositeCall& call) {
      Axes axes;
      for (int axis = 0; axis < call[0].rank(); ++axis) axes.push_back(axis);
      std::swap(axes[static_cast<size_t>(normalize_axis(call.attribute<int64_t>(0), call[0].rank(), "swapaxes"))],
                axes[static_cast<size_t>(normalize_axis(call.attribute<int64_t>(1), call[0].rank(), "swapaxes"))]);
      return std::vector{ops::transpose(call[0], axes)};
    }),
    .vjp = vjp([](VjpCall& call) {
      call.give(0, ops::swapaxes(call.cotangent(), call.attribute<int64_t>(0), call.attribute<int64_t>(1)));
    }),
    .batch = batch::along_axes<0, 1>,
    .reference = numpy("np.swapaxes(x, first, second)", 0), .cost = Cost{0},
    .samples = Samples{"randn(2, 3, 4), first=0, second=2", "randn(2, 3), first=-1, second=0"})

LAMELLA_OP(flatten, (Operand x, int64_t begin_axis = 1, int64_t end_axis = -1),
    .doc = "The axes from begin_axis to end_axis, both included, as one.",
    .accepts = kAnyDType, .infer = [](InferCall& call) {
      const TensorType& x = call.operand(0);
      TensorType result{x.dtype, Layout::RowMajor, {}};
      if (x.shape.empty()) {
        result.shape.push_back(1);
        call.results.push_back(result);
        return;
      }
      // A tensor of one axis is flat however it is asked.
      const int64_t begin_given = x.shape.size() == 1 ? 0 : call.attribute<int64_t>(0);
      const int begin = normalize_axis(begin_given, rank(x.shape), "flatten");
      const int end = normalize_axis(call.attribute<int64_t>(1), rank(x.shape), "flatten");
      if (end < begin) {
        fail(ErrorKind::Value, "[flatten] end_axis {} lies before begin_axis {} (x: {})", end, begin, text(x));
      }
      Dim joined = 1;
      for (int axis = 0; axis < rank(x.shape); ++axis) {
        const Dim size = x.shape[static_cast<size_t>(axis)];
        if (axis >= begin && axis <= end) joined = joined * size;
        if (axis == end) result.shape.push_back(joined);
        if (axis < begin || axis > end) result.shape.push_back(size);
      }
      call.results.push_back(result);
    },
    .lower = composite_of_moves([](const CompositeCall& call) {
      return std::vector{ops::reshape(call[0], call.result_type().shape)};
    }),
    .vjp = vjp([](VjpCall& call) { call.give(0, ops::reshape(call.cotangent(), call.operand(0).shape())); }),
    .batch = batch::another_shape,
    .reference = numpy("flatten(x, begin_axis, end_axis)", 0), .cost = Cost{0},
    .samples = Samples{"randn(2, 3, 4)", "randn(2, 3, 4), begin_axis=0, end_axis=1", "randn(0, 3, 4)"})

}  // namespace lamella
