// Reading and writing at positions that are data. Every index is checked before anything is
// written.
#include "lamella/kernels/indexing.h"

#include <limits>

#include "lamella/kernels/copy.h"
#include "lamella/kernels/mask.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/infer_rules.h"
#include "lamella/ops/tensor_operators.h"

namespace lamella {

namespace {

constexpr DTypeSet kNumber64 = DTypeSet::of({DType::Int64});

size_t axis_at(const Tensor& x, int64_t axis) {
  return static_cast<size_t>(normalize_axis(axis, x.rank(), "gather"));
}

// `from_end` and `operation` are the attributes from number `first` on.
kernels::IndexingOptions options_of(const KernelCall& call, int64_t axis, int rank, size_t first) {
  const std::string& operation = call.attribute<std::string>(first + 1);
  return {.axis = normalize_axis(axis, rank, operation.c_str()),
          .negative = call.attribute<bool>(first) ? kernels::NegativeIndex::FromEnd
                                                  : kernels::NegativeIndex::Error,
          .operation = operation.c_str()};
}

kernels::ScatterMode mode_of(std::string_view mode, std::string_view op) {
  if (mode == "set") return kernels::ScatterMode::Set;
  if (mode == "add") return kernels::ScatterMode::Add;
  if (mode == "mul") return kernels::ScatterMode::Multiply;
  if (mode == "min") return kernels::ScatterMode::Minimum;
  if (mode == "max") return kernels::ScatterMode::Maximum;
  fail(ErrorKind::Value, "[{}] mode must be 'set', 'add', 'mul', 'min' or 'max', got '{}'", op,
       mode);
}

// x's shape with one axis replaced by the indices' shape.
Shape gathered_shape(const TensorType& x, const TensorType& indices, int axis,
                     std::string_view op) {
  if (x.shape.size() - 1 + indices.shape.size() > static_cast<size_t>(kMaxRank)) {
    fail(ErrorKind::Value, "[{}] the result would have more than {} axes (x: {}, indices: {})", op,
         kMaxRank, text(x), text(indices));
  }
  Shape shape(x.shape.begin(), x.shape.begin() + axis);
  for (Dim size : indices.shape) shape.push_back(size);
  for (size_t i = static_cast<size_t>(axis) + 1; i < x.shape.size(); ++i)
    shape.push_back(x.shape[i]);
  return shape;
}

void check_has_axes(const InferCall& call) {
  if (call.operand(0).shape.empty()) {
    fail(ErrorKind::Value, "[{}] x needs at least 1 axis, got {}", call.op.name(),
         text(call.operand(0)));
  }
}

// The gradient rules of gather's and gather_elements' scatters differ only in which pair they use.
struct Pair {
  Tensor (*gather)(const Tensor& x, const Tensor& indices, const VjpCall& call);
  Tensor (*scatter)(const Tensor& x, const Tensor& indices, const Tensor& updates,
                    const VjpCall& call, const std::string& mode);
  // Whether each update is the one that stays of those to its place, for mode "set".
  Tensor (*winners)(const VjpCall& call);
};

// Operands x, indices, updates; attributes axis, mode, from_end, operation.
void scatter_vjp(VjpCall& call, const Pair& pair) {
  const Tensor x = call.operand(0), indices = call.operand(1), updates = call.operand(2);
  const Tensor cotangent = call.cotangent();
  const std::string& mode = call.attribute<std::string>(1);
  if (mode == "add") {
    call.give(0, cotangent);
    if (call.needs(2)) call.give(2, pair.gather(cotangent, indices, call));
  } else if (mode == "set") {
    if (call.needs(0))
      call.give(0, pair.scatter(cotangent, indices, ops::zeros_of(updates.type()), call, "set"));
    if (call.needs(2))
      call.give(2, ops::where(pair.winners(call), pair.gather(cotangent, indices, call), 0.0));
  } else if (mode == "mul") {
    // The product of the other factors is the result divided by this one.
    const Tensor weighted = cotangent * call.result();
    if (call.needs(0)) call.give(0, weighted / x);
    if (call.needs(2)) call.give(2, pair.gather(weighted, indices, call) / updates);
  } else {
    // Those that reach the extremum share the gradient.
    const Tensor reached =
        ops::cast(ops::equal(updates, pair.gather(call.result(), indices, call)), x.dtype());
    const Tensor kept = ops::cast(ops::equal(x, call.result()), x.dtype());
    const Tensor share = cotangent / pair.scatter(kept, indices, reached, call, "add");
    if (call.needs(0)) call.give(0, share * kept);
    if (call.needs(2)) call.give(2, pair.gather(share, indices, call) * reached);
  }
}

constexpr Pair kAlongAxis = {
    [](const Tensor& x, const Tensor& indices, const VjpCall& call) {
      return ops::gather(x, indices, call.attribute<int64_t>(0), call.attribute<bool>(2),
                         call.attribute<std::string>(3));
    },
    [](const Tensor& x, const Tensor& indices, const Tensor& updates, const VjpCall& call,
       const std::string& mode) {
      return ops::scatter(x, indices, updates, call.attribute<int64_t>(0), mode,
                          call.attribute<bool>(2), call.attribute<std::string>(3));
    },
    [](const VjpCall& call) {
      const Tensor x = call.operand(0), indices = call.operand(1);
      const size_t axis = axis_at(x, call.attribute<int64_t>(0));
      const bool from_end = call.attribute<bool>(2);
      const Tensor numbers = ops::element_numbers(indices.shape());
      const Tensor none = ops::zeros_of({DType::Int64, Layout::RowMajor, Shape{x.shape()[axis]}});
      const Tensor last =
          ops::scatter(none, indices, numbers, 0, "set", from_end, call.attribute<std::string>(3));
      const Tensor wins = ops::equal(
          ops::gather(last, indices, 0, from_end, call.attribute<std::string>(3)), numbers);
      Shape shape(static_cast<uint32_t>(axis), Dim(1));
      for (Dim size : indices.shape()) shape.push_back(size);
      shape.resize(call.operand(2).shape().size(), 1);
      return ops::reshape(wins, shape);
    }};

constexpr Pair kByElement = {
    [](const Tensor& x, const Tensor& indices, const VjpCall& call) {
      return ops::gather_elements(x, indices, call.attribute<int64_t>(0), call.attribute<bool>(2),
                                  call.attribute<std::string>(3));
    },
    [](const Tensor& x, const Tensor& indices, const Tensor& updates, const VjpCall& call,
       const std::string& mode) {
      return ops::scatter_elements(x, indices, updates, call.attribute<int64_t>(0), mode,
                                   call.attribute<bool>(2), call.attribute<std::string>(3));
    },
    [](const VjpCall& call) {
      const Tensor x = call.operand(0), indices = call.operand(1);
      const Tensor numbers = ops::element_numbers(indices.shape());
      const Tensor none = ops::zeros_of({DType::Int64, Layout::RowMajor, x.shape()});
      const Tensor last =
          ops::scatter_elements(none, indices, numbers, call.attribute<int64_t>(0), "set",
                                call.attribute<bool>(2), call.attribute<std::string>(3));
      return ops::equal(
          ops::gather_elements(last, indices, call.attribute<int64_t>(0), call.attribute<bool>(2),
                               call.attribute<std::string>(3)),
          numbers);
    }};

template <auto scatter_kernel>
void run_scatter(const KernelCall& call) {
  const TensorView& out = call.results[0];
  kernels::copy(call.operands[0], out);
  scatter_kernel(mode_of(call.attribute<std::string>(1), "scatter"), call.operands[1],
                 call.operands[2], out, options_of(call, call.attribute<int64_t>(0), out.rank(), 2),
                 call.scratch);
}

int64_t scatter_scratch(const KernelCall& call) {
  return kernels::scatter_scratch_bytes(mode_of(call.attribute<std::string>(1), "scatter"),
                                        call.results[0]);
}

// x with its first k axes as one, and the places there of rows of k indices.
std::pair<Tensor, Tensor> flat_places(const Tensor& x, const Tensor& indices,
                                      const char* operation) {
  const int64_t last = indices.rank() - 1;
  const auto count = static_cast<size_t>(indices.shape().back().value());
  Tensor places;
  Dim size = 1;
  for (size_t i = 0; i < count; ++i) {
    const Tensor column =
        ops::squeeze(ops::narrow(indices, static_cast<int64_t>(i), last, Shape{1}), {last});
    const Tensor length = Tensor(Value::size(DType::Int64, x.shape()[i]));
    const Tensor checked = ops::check_indices(column, length, std::numeric_limits<int64_t>::min(),
                                              static_cast<int64_t>(i), false, operation);
    places = i == 0 ? checked : places * length + checked;
    size = size * x.shape()[i];
  }
  Shape shape{size};
  for (size_t i = count; i < x.shape().size(); ++i) shape.push_back(x.shape()[i]);
  return {ops::reshape(x, shape), places};
}

void check_update_dtype(const InferCall& call, const std::string& mode) {
  if (call.operand(0).dtype == DType::Bool && mode != "set") {
    fail(ErrorKind::Type, "[{}] bools can only be set, mode is '{}' (x: {})", call.op.name(), mode,
         text(call.operand(0)));
  }
  if (call.operand(2).dtype == call.operand(0).dtype) return;
  fail(ErrorKind::Type, "[{}] updates must have x's dtype (x: {}, updates: {})", call.op.name(),
       text(call.operand(0)), text(call.operand(2)));
}

// ---- Many examples at once ----

// Indices that differ from example to example, as gather_elements takes them: [B, axes before,
// places, axes behind] for an x of one example with `axis` between those axes.
Tensor element_indices(const BatchCall& call, size_t axis) {
  const Tensor indices = call.stacked(1);
  Dim places = 1;
  for (size_t i = 1; i < indices.shape().size(); ++i) places = places * indices.shape()[i];
  Shape shape = call.in_batch(call.node().operand(0)->type().shape);
  Shape line(shape.size(), Dim(1));
  line[0] = shape[0];
  line[axis + 1] = shape[axis + 1] = places;
  return ops::broadcast_to(ops::reshape(indices, line), shape);
}

std::vector<Tensor> batch_gather(const BatchCall& call) {
  const auto axis =
      static_cast<size_t>(normalize_axis(call.attribute<int64_t>(0), call.rank(0), "gather"));
  const auto along = static_cast<int64_t>(axis);
  std::vector<AttributeValue> attributes = call.attributes();
  if (!call.is_batched(1)) {
    attributes[0] = along + 1;
    return call.record({call.operand(0), call.operand(1)}, std::move(attributes));
  }
  if (!call.is_batched(0)) {
    const Tensor gathered = call.record({call.operand(0), call.operand(1)})[0];
    return {along == 0 ? gathered : ops::moveaxis(gathered, along, 0)};
  }
  const Tensor elements =
      ops::gather_elements(call.operand(0), element_indices(call, axis), along + 1,
                           call.attribute<bool>(1), call.attribute<std::string>(2));
  return {ops::reshape(elements, call.result_shape())};
}

std::vector<Tensor> batch_scatter(const BatchCall& call) {
  const auto axis =
      static_cast<size_t>(normalize_axis(call.attribute<int64_t>(0), call.rank(0), "scatter"));
  const auto along = static_cast<int64_t>(axis);
  if (!call.is_batched(1)) {
    std::vector<AttributeValue> attributes = call.attributes();
    attributes[0] = along + 1;
    return call.record({call.stacked(0), call.operand(1), call.stacked(2)}, std::move(attributes));
  }
  const Tensor indices = element_indices(call, axis);
  return {ops::scatter_elements(
      call.stacked(0), indices, ops::reshape(call.stacked(2), indices.shape()), along + 1,
      call.attribute<std::string>(1), call.attribute<bool>(2), call.attribute<std::string>(3))};
}

}  // namespace

LAMELLA_OP(gather, (Operand x, Operand indices, int64_t axis = 0, bool from_end = false, std::string operation = "gather"),
    .doc = "The slices of an axis of x at indices of any rank, whose shape takes the axis's place. An index "
           "outside the axis is an IndexError; from_end lets negative ones count from the end. operation "
           "names the caller in errors.",
    .accepts = kAnyDType, .accepts_each = {kAnyDType, kIndices},
    .infer = [](InferCall& call) {
      check_has_axes(call);
      const TensorType &x = call.operand(0), &indices = call.operand(1);
      const std::string& operation = call.attribute<std::string>(2);
      const int axis = normalize_axis(call.attribute<int64_t>(0), rank(x.shape), operation.c_str());
      call.results.push_back({x.dtype, Layout::RowMajor, gathered_shape(x, indices, axis, operation)});
    },
    .lower = kernel({.run = [](const KernelCall& call) {
                       kernels::gather(call.operands[0], call.operands[1], call.results[0],
                                       options_of(call, call.attribute<int64_t>(0), call.operands[0].rank(), 1));
                     },
                     .strided_operands = true, .may_fail = true}),
    .vjp = vjp([](VjpCall& call) {
      call.give(0, ops::scatter(ops::zeros_of(call.operand(0).type()), call.operand(1), call.cotangent(),
                                call.attribute<int64_t>(0), "add", call.attribute<bool>(1), call.attribute<std::string>(2)));
    }),
    .batch = batch::rule(batch_gather),
    .reference = numpy("np.take(x, indices, axis)", 0), .cost = Cost{0},
    .samples = Samples{"randn(7, 3), np.array([0, 6, 3, 3])", "randn(2, 5, 3), np.array([[0, 4], [1, 1]]), axis=1",
                       "randn(5), np.array(2)", "randn(5, 2), np.zeros((0,), np.int64)",
                       "randn(5, 2), np.array([-1, -5], np.int32), from_end=True"})

LAMELLA_OP(scatter, (Operand x, Operand indices, Operand updates, int64_t axis = 0, std::string mode = "set",
                     bool from_end = false, std::string operation = "scatter"),
    .doc = "x with the slices that gather would read combined with updates: 'set' (of several to one place "
           "the last stays), 'add', 'mul', 'min', 'max'.",
    .accepts = kAnyDType, .accepts_each = {kAnyDType, kIndices, kAnyDType},
    .infer = [](InferCall& call) {
      check_has_axes(call);
      const TensorType &x = call.operand(0), &indices = call.operand(1), &updates = call.operand(2);
      const std::string& operation = call.attribute<std::string>(3);
      mode_of(call.attribute<std::string>(1), operation);
      check_update_dtype(call, call.attribute<std::string>(1));
      const int axis = normalize_axis(call.attribute<int64_t>(0), rank(x.shape), operation.c_str());
      const Shape expected = gathered_shape(x, indices, axis, operation);
      if (updates.shape != expected) {
        fail(ErrorKind::Value, "[{}] updates must have shape {} (x: {}, indices: {}, updates: {})", operation,
             text(expected), text(x), text(indices), text(updates));
      }
      call.results.push_back({x.dtype, Layout::RowMajor, x.shape});
    },
    .lower = kernel({.run = run_scatter<kernels::scatter>, .scratch_bytes = scatter_scratch, .strided_operands = true,
                     .may_fail = true}),
    .vjp = vjp([](VjpCall& call) { scatter_vjp(call, kAlongAxis); }),
    .batch = batch::rule(batch_scatter),
    .reference = numpy("scatter(x, indices, updates, axis, mode)", 4), .cost = Cost{1},
    .samples = Samples{"randn(7, 3), np.array([0, 6, 3, 3]), randn(4, 3)", "randn(7, 3), np.array([0, 6, 3, 3]), randn(4, 3), mode='add'",
                       "randn(2, 5, 3), np.array([[0, 4], [1, 1]]), randn(2, 2, 2, 3), axis=1, mode='max'",
                       "away_from_zero(5), np.array([1, 1]), away_from_zero(2), mode='mul'"})

LAMELLA_OP(gather_elements, (Operand x, Operand indices, int64_t axis, bool from_end = false,
                             std::string operation = "gather_elements"),
    .doc = "For each element of indices the element of x at that place of the axis and the same place of "
           "the others, where indices may be smaller than x.",
    .accepts = kAnyDType, .accepts_each = {kAnyDType, kIndices},
    .infer = [](InferCall& call) {
      check_has_axes(call);
      const TensorType &x = call.operand(0), &indices = call.operand(1);
      const std::string& operation = call.attribute<std::string>(2);
      normalize_axis(call.attribute<int64_t>(0), rank(x.shape), operation.c_str());
      if (indices.shape.size() != x.shape.size()) {
        fail(ErrorKind::Value, "[{}] indices must have the {} axes of x (x: {}, indices: {})", operation, x.shape.size(),
             text(x), text(indices));
      }
      call.results.push_back({x.dtype, Layout::RowMajor, indices.shape});
    },
    .lower = kernel({.run = [](const KernelCall& call) {
                       kernels::gather_elements(call.operands[0], call.operands[1], call.results[0],
                                                options_of(call, call.attribute<int64_t>(0), call.operands[0].rank(), 1));
                     },
                     .strided_operands = true, .may_fail = true}),
    .vjp = vjp([](VjpCall& call) {
      call.give(0, ops::scatter_elements(ops::zeros_of(call.operand(0).type()), call.operand(1), call.cotangent(),
                                         call.attribute<int64_t>(0), "add", call.attribute<bool>(1),
                                         call.attribute<std::string>(2)));
    }),
    .batch = batch::along_axes<0>,
    .reference = numpy("gather_elements(x, indices, axis)", 0), .cost = Cost{0},
    .samples = Samples{"randn(4, 3), np.array([[0, 3, 1], [2, 2, 2]]), axis=0", "randn(4, 3), np.array([[0], [2], [1], [0]]), axis=1"})

LAMELLA_OP(scatter_elements, (Operand x, Operand indices, Operand updates, int64_t axis, std::string mode = "set",
                              bool from_end = false, std::string operation = "scatter_elements"),
    .doc = "x with the elements that gather_elements would read combined with updates, by the modes of scatter.",
    .accepts = kAnyDType, .accepts_each = {kAnyDType, kIndices, kAnyDType},
    .infer = [](InferCall& call) {
      check_has_axes(call);
      const TensorType &x = call.operand(0), &indices = call.operand(1), &updates = call.operand(2);
      const std::string& operation = call.attribute<std::string>(3);
      mode_of(call.attribute<std::string>(1), operation);
      check_update_dtype(call, call.attribute<std::string>(1));
      normalize_axis(call.attribute<int64_t>(0), rank(x.shape), operation.c_str());
      if (updates.shape != indices.shape || indices.shape.size() != x.shape.size()) {
        fail(ErrorKind::Value, "[{}] updates and indices must have one shape of the {} axes of x (x: {}, indices: {}, updates: {})",
             operation, x.shape.size(), text(x), text(indices), text(updates));
      }
      call.results.push_back({x.dtype, Layout::RowMajor, x.shape});
    },
    .lower = kernel({.run = run_scatter<kernels::scatter_elements>, .scratch_bytes = scatter_scratch,
                     .strided_operands = true, .may_fail = true}),
    .vjp = vjp([](VjpCall& call) { scatter_vjp(call, kByElement); }),
    .batch = batch::along_axes<0>,
    .reference = numpy("scatter_elements(x, indices, updates, axis, mode)", 4), .cost = Cost{1},
    .samples = Samples{"randn(4, 3), np.array([[0, 3, 1], [2, 2, 2]]), randn(2, 3), axis=0",
                       "randn(4, 3), np.array([[0, 0], [2, 1], [1, 0], [0, 2]]), randn(4, 2), axis=1, mode='add'"})

LAMELLA_OP(check_indices, (Operand indices, Operand size, Operand ignored, int64_t axis = 0, bool from_end = false,
                           std::string operation = "gather", std::string kind = "index"),
    .doc = "The indices as int64, each in [0, size) or equal to `ignored`, those counted from the end brought "
           "to the front; an IndexError in the name of `operation` otherwise.",
    .accepts = kIndices, .accepts_each = {kIndices, kNumber64, kNumber64},
    .infer = [](InferCall& call) {
      TensorType result = call.operand(0);
      result.dtype = DType::Int64;
      call.results.push_back(result);
    },
    .lower = kernel({.run = [](const KernelCall& call) {
                       const TensorView &indices = call.operands[0], &out = call.results[0];
                       const int64_t size = call.number<int64_t>(1), ignored = call.number<int64_t>(2);
                       const int64_t lowest = call.attribute<bool>(1) ? -size : 0;
                       const bool wide = indices.dtype == DType::Int64;
                       for (int64_t i = 0; i < indices.count(); ++i) {
                         const int64_t index = wide ? indices.as<int64_t>()[i] : indices.as<int32_t>()[i];
                         const bool inside = index >= lowest && index < size;
                         if (!inside && index != ignored) {
                           fail(ErrorKind::Index, "[{}] {} {} is out of range for axis {} of size {}",
                                call.attribute<std::string>(2), call.attribute<std::string>(3), index,
                                call.attribute<int64_t>(0), size);
                         }
                         out.as<int64_t>()[i] = inside && index < 0 ? index + size : index;
                       }
                     },
                     .may_fail = true}),
    .vjp = not_differentiable("its operands are indices"),
    .batch = batch::elementwise,
    .reference = numpy("np.where(from_end & (indices < 0), indices + size, indices)", 0), .cost = Cost{1},
    .samples = Samples{"np.array([0, 2, -7, 1]), 3, -7", "np.array([0, -1, -3], np.int32), 3, -100, from_end=True"})

LAMELLA_OP(mask_positions, (Operand mask, Shape count),
    .doc = "The row-major numbers of the elements of mask that are true, in order; `count` is how many they are.",
    .accepts = kBool,
    .infer = [](InferCall& call) {
      call.results.push_back({DType::Int64, Layout::RowMajor, call.attribute<Shape>(0)});
    },
    .lower = kernel({.run = [](const KernelCall& call) {
                       const int64_t found = kernels::mask_positions(call.operands[0], call.results[0]);
                       if (found != call.results[0].count()) {
                         fail(ErrorKind::Value, "[mask_positions] the mask has {} true elements, count says {}", found,
                              call.results[0].count());
                       }
                     },
                     .strided_operands = true, .may_fail = true}),
    .vjp = not_differentiable("its result is a position"),
    .batch = batch::one_by_one,
    .reference = numpy("np.flatnonzero(mask)", 0), .cost = Cost{1},
    .samples = Samples{"np.array([[True, False], [False, True]]), count=(2,)", "np.zeros((3,), bool), count=(0,)"})

LAMELLA_OP(embedding, (Operand indices, Operand table),
    .doc = "The rows of table at indices of any shape.",
    .accepts = kAnyDType, .accepts_each = {kIndices, kAnyDType},
    .infer = [](InferCall& call) {
      const TensorType &indices = call.operand(0), &table = call.operand(1);
      if (table.shape.empty()) fail(ErrorKind::Value, "[embedding] table needs at least 1 axis, got {}", text(table));
      call.results.push_back({table.dtype, Layout::RowMajor, gathered_shape(table, indices, 0, "embedding")});
    },
    .lower = composite_of_moves([](const CompositeCall& call) {
      return std::vector{ops::gather(call[1], call[0], 0, false, "embedding")};
    }),
    .vjp = vjp([](VjpCall& call) {
      call.give(1, ops::scatter(ops::zeros_of(call.operand(1).type()), call.operand(0), call.cotangent(), 0, "add",
                                false, "embedding"));
    }),
    .batch = batch::through_composite,
    .reference = numpy("table[indices]", 0), .cost = Cost{0},
    .samples = Samples{"np.array([[0, 2], [1, 1]]), randn(3, 4)"})

LAMELLA_OP(index_select, (Operand x, Operand indices, int64_t axis),
    .doc = "The slices of an axis of x at indices on one axis.",
    .accepts = kAnyDType, .accepts_each = {kAnyDType, kIndices},
    .infer = [](InferCall& call) {
      check_has_axes(call);
      const TensorType &x = call.operand(0), &indices = call.operand(1);
      if (indices.shape.size() != 1) fail(ErrorKind::Value, "[index_select] indices must have 1 axis, got {}", text(indices));
      const int axis = normalize_axis(call.attribute<int64_t>(0), rank(x.shape), "index_select");
      call.results.push_back({x.dtype, Layout::RowMajor, gathered_shape(x, indices, axis, "index_select")});
    },
    .lower = composite_of_moves([](const CompositeCall& call) {
      return std::vector{ops::gather(call[0], call[1], call.attribute<int64_t>(0), false, "index_select")};
    }),
    .vjp = from_composite,
    .batch = batch::through_composite,
    .reference = numpy("np.take(x, indices, axis)", 0), .cost = Cost{0},
    .samples = Samples{"randn(3, 4), np.array([3, 0, 0]), axis=1"})

LAMELLA_OP(take_along_axis, (Operand x, Operand indices, int64_t axis),
    .doc = "gather_elements with the other axes of both broadcast; negative indices count from the end.",
    .accepts = kAnyDType, .accepts_each = {kAnyDType, kIndices},
    .infer = [](InferCall& call) {
      check_has_axes(call);
      TensorType x = call.operand(0), indices = call.operand(1);
      const auto axis = static_cast<size_t>(normalize_axis(call.attribute<int64_t>(0), rank(x.shape), "take_along_axis"));
      if (indices.shape.size() != x.shape.size()) {
        fail(ErrorKind::Value, "[take_along_axis] indices must have the {} axes of x (x: {}, indices: {})", x.shape.size(),
             text(x), text(indices));
      }
      const Dim count = indices.shape[axis];
      x.shape[axis] = indices.shape[axis] = 1;
      Shape shape = broadcast_shapes(x.shape, indices.shape, "take_along_axis");
      shape[axis] = count;
      call.results.push_back({x.dtype, Layout::RowMajor, shape});
    },
    .lower = composite_of_moves([](const CompositeCall& call) {
      const Shape& shape = call.result_type().shape;
      const size_t axis = axis_at(call[0], call.attribute<int64_t>(0));
      Shape source = shape;
      source[axis] = call[0].shape()[axis];
      return std::vector{ops::gather_elements(ops::broadcast_to(call[0], source), ops::broadcast_to(call[1], shape),
                                              static_cast<int64_t>(axis), true, "take_along_axis")};
    }),
    .vjp = from_composite,
    .batch = batch::through_composite,
    .reference = numpy("np.take_along_axis(x, indices, axis)", 0), .cost = Cost{0},
    .samples = Samples{"randn(3, 4), np.array([[0, -1]]), axis=1", "randn(1, 4), np.array([[0], [0]]), axis=0"})

LAMELLA_OP(gather_nd, (Operand x, Operand indices),
    .doc = "For each row of indices' last axis, of k numbers, the part of x at that place of its first k axes.",
    .accepts = kAnyDType, .accepts_each = {kAnyDType, kIndices},
    .infer = [](InferCall& call) {
      const TensorType &x = call.operand(0), &indices = call.operand(1);
      const bool fits = !indices.shape.empty() && indices.shape.back().known() &&
                        indices.shape.back().value() >= 1 && indices.shape.back().value() <= rank(x.shape);
      if (!fits) {
        fail(ErrorKind::Value, "[gather_nd] the last axis of indices names 1 to {} axes of x (x: {}, indices: {})",
             rank(x.shape), text(x), text(indices));
      }
      Shape shape(indices.shape.begin(), indices.shape.end() - 1);
      for (auto i = static_cast<size_t>(indices.shape.back().value()); i < x.shape.size(); ++i) shape.push_back(x.shape[i]);
      call.results.push_back({x.dtype, Layout::RowMajor, shape});
    },
    .lower = composite_of_moves([](const CompositeCall& call) {
      const auto [flat, places] = flat_places(call[0], call[1], "gather_nd");
      return std::vector{ops::gather(flat, places, 0, false, "gather_nd")};
    }),
    .vjp = from_composite,
    .batch = batch::through_composite,
    .reference = numpy("x[tuple(np.moveaxis(indices, -1, 0))]", 0), .cost = Cost{0},
    .samples = Samples{"randn(3, 4, 2), np.array([[0, 1], [2, 3], [2, 3]])", "randn(3, 4), np.array([[[2]], [[0]]])"})

LAMELLA_OP(scatter_nd, (Operand x, Operand indices, Operand updates, std::string mode = "set"),
    .doc = "x with the parts that gather_nd would read combined with updates, by the modes of scatter.",
    .accepts = kAnyDType, .accepts_each = {kAnyDType, kIndices, kAnyDType},
    .infer = [](InferCall& call) {
      const TensorType &x = call.operand(0), &indices = call.operand(1);
      const bool fits = !indices.shape.empty() && indices.shape.back().known() &&
                        indices.shape.back().value() >= 1 && indices.shape.back().value() <= rank(x.shape);
      if (!fits) {
        fail(ErrorKind::Value, "[scatter_nd] the last axis of indices names 1 to {} axes of x (x: {}, indices: {})",
             rank(x.shape), text(x), text(indices));
      }
      mode_of(call.attribute<std::string>(0), "scatter_nd");
      check_update_dtype(call, call.attribute<std::string>(0));
      Shape shape(indices.shape.begin(), indices.shape.end() - 1);
      for (auto i = static_cast<size_t>(indices.shape.back().value()); i < x.shape.size(); ++i) shape.push_back(x.shape[i]);
      if (call.operand(2).shape != shape) {
        fail(ErrorKind::Value, "[scatter_nd] updates must have shape {} (x: {}, indices: {}, updates: {})", text(shape),
             text(x), text(indices), text(call.operand(2)));
      }
      call.results.push_back({x.dtype, Layout::RowMajor, x.shape});
    },
    .lower = composite_of_moves([](const CompositeCall& call) {
      const auto [flat, places] = flat_places(call[0], call[1], "scatter_nd");
      const Tensor written = ops::scatter(flat, places, call[2], 0, call.attribute<std::string>(0), false, "scatter_nd");
      return std::vector{ops::reshape(written, call[0].shape())};
    }),
    .vjp = from_composite,
    .batch = batch::through_composite,
    .reference = numpy("scatter_nd(x, indices, updates, mode)", 4), .cost = Cost{1},
    .samples = Samples{"randn(3, 4, 2), np.array([[0, 1], [2, 3], [2, 3]]), randn(3, 2), mode='add'",
                       "randn(3, 4), np.array([[[2]], [[0]]]), randn(2, 1, 4)"})

LAMELLA_OP(one_hot, (Operand indices, Operand on, Operand off, Shape depth, DType dtype, int64_t axis = -1),
    .doc = "A new axis of size depth[0], holding `on` at the place of the index and `off` elsewhere. An index "
           "outside it is an IndexError.",
    .accepts = kAnyDType, .accepts_each = {kIndices, kAnyDType, kAnyDType},
    .infer = [](InferCall& call) {
      TensorType result{call.attribute<DType>(1), Layout::RowMajor, call.operand(0).shape};
      const int axis = normalize_axis(call.attribute<int64_t>(2), rank(result.shape) + 1, "one_hot");
      result.shape.insert(static_cast<uint32_t>(axis), call.attribute<Shape>(0)[0]);
      call.results.push_back(result);
    },
    .lower = composite_of_moves([](const CompositeCall& call) {
      const Shape& shape = call.result_type().shape;
      const DType dtype = call.result_type().dtype;
      const int axis = normalize_axis(call.attribute<int64_t>(2), lamella::rank(shape), "one_hot");
      const Dim depth = shape[static_cast<size_t>(axis)];
      const Tensor checked = ops::check_indices(call[0], Tensor(Value::size(DType::Int64, depth)),
                                                std::numeric_limits<int64_t>::min(), axis, false, "one_hot");
      Shape along(shape.size(), Dim(1));
      along[static_cast<size_t>(axis)] = depth;
      const Tensor here = ops::equal(ops::expand_dims(checked, axis), ops::element_numbers(along));
      return std::vector{ops::where(here, ops::cast(call[1], dtype), ops::cast(call[2], dtype))};
    }),
    .vjp = not_differentiable("its operands are indices"),
    .batch = batch::through_composite,
    .reference = numpy("one_hot(indices, on, off, depth, axis)", 0), .cost = Cost{2},
    .samples = Samples{"np.array([0, 2, 1]), 1.0, 0.0, depth=(3,), dtype='float32'",
                       "np.array([[0, 2], [1, 1]]), 5, -1, depth=(4,), dtype='int32', axis=1"})

LAMELLA_OP(masked_fill, (Operand x, Operand mask, Operand value),
    .doc = "value where mask holds, else x; the three broadcast, the dtype is x's.",
    .accepts = kAnyDType, .accepts_each = {kAnyDType, kBool, kAnyDType},
    .infer = [](InferCall& call) {
      infer::elementwise(call);
      call.results[0].dtype = call.operand(0).dtype;
    },
    .lower = composite_of_moves([](const CompositeCall& call) {
      return std::vector{ops::where(call[1], ops::cast(call[2], call[0].dtype()), call[0])};
    }),
    .vjp = from_composite,
    .batch = batch::elementwise,
    .reference = numpy("np.where(mask, x.dtype.type(value), x)", 0), .cost = Cost{1},
    .samples = Samples{"randn(3, 5), bools(3, 5), 2.5", "randn(3, 5), bools(5), 3.0"})

}  // namespace lamella
