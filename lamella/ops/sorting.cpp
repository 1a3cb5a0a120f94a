// Elements in order along an axis. NaN counts as the largest; of equal elements the one that comes
// first in x comes first.
#include "lamella/kernels/search.h"
#include "lamella/kernels/sort.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/infer_rules.h"
#include "lamella/ops/tensor_operators.h"

namespace lamella {

namespace {

int axis_of(const KernelCall& call, size_t attribute) {
  return normalize_axis(call.attribute<int64_t>(attribute), call.operands[0].rank(),
                        call.node.op().name());
}

kernels::SortOrder order_of(bool descending) {
  return descending ? kernels::SortOrder::Descending : kernels::SortOrder::Ascending;
}

// Values of x's dtype and positions, both of `shape`.
void push_values_and_positions(InferCall& call, const Shape& shape) {
  call.results.push_back({call.operand(0).dtype, Layout::RowMajor, shape});
  call.results.push_back({DType::Int64, Layout::RowMajor, shape});
}

// The cotangents of picked values, put back where they came from.
void give_back(VjpCall& call, const Tensor& positions, const Tensor& cotangent, int64_t axis) {
  const Tensor zeros = ops::zeros_of(call.node().operand(0)->type());
  call.give(0, ops::scatter_elements(zeros, positions, cotangent, axis, "set", false,
                                     std::string(call.node().op().name())));
}

std::vector<Tensor> batch_search_sorted(const BatchCall& call) {
  Tensor sequence = call.operand(0), values = call.stacked(1);
  // A number for each example is a row of one.
  if (call.rank(1) == 0) values = ops::expand_dims(values, -1);
  // One sequence for all rows of an example is repeated for each of them.
  if (call.is_batched(0) || call.rank(0) > 1) {
    Shape shape = values.shape();
    shape.back() = sequence.shape().back();
    const int rank = lamella::rank(shape) - 1;
    sequence = ops::broadcast_to(call.aligned(0, rank), shape);
  }
  const Tensor places = ops::search_sorted(sequence, values, call.attribute<bool>(0));
  return {places.shape() == call.result_shape() ? places
                                                : ops::reshape(places, call.result_shape())};
}

}  // namespace

LAMELLA_OP_MULTI(sort, (Operand x, int64_t axis = -1, bool descending = false),
    .doc = "The elements of an axis in order, and the positions they had (int64). NaN counts as the largest; equal "
           "elements keep their order.",
    .accepts = kAnyDType,
    .infer = [](InferCall& call) {
      const Shape& shape = call.operand(0).shape;
      normalize_axis(call.attribute<int64_t>(0), rank(shape), "sort");
      push_values_and_positions(call, shape);
    },
    .lower = kernel({.run = [](const KernelCall& call) {
                       kernels::sort(call.operands[0], axis_of(call, 0), order_of(call.attribute<bool>(1)),
                                     call.results[0], call.results[1], call.scratch);
                     },
                     .scratch_bytes = [](const KernelCall& call) {
                       return kernels::sort_scratch_bytes(call.operands[0], axis_of(call, 0));
                     },
                     .strided_operands = true}),
    .vjp = vjp([](VjpCall& call) {
      give_back(call, call.result(1), call.cotangent(0), call.attribute<int64_t>(0));
    }),
    .batch = batch::along_axes<0>,
    .reference = numpy("sort(x, axis, descending)", 0), .cost = Cost{20},
    .samples = Samples{"distinct(3, 5)", "distinct(4, 9), descending=True", "distinct(40, 3), axis=0", "distinct(2, 130, 2), axis=1",
                       "distinct(300), descending=True"})

LAMELLA_OP(argsort, (Operand x, int64_t axis = -1, bool descending = false),
    .doc = "The positions (int64) that put the elements of an axis in the order of sort.",
    .accepts = kAnyDType,
    .infer = [](InferCall& call) {
      const Shape& shape = call.operand(0).shape;
      normalize_axis(call.attribute<int64_t>(0), rank(shape), "argsort");
      call.results.push_back({DType::Int64, Layout::RowMajor, shape});
    },
    .lower = composite_of_moves([](const CompositeCall& call) {
      return std::vector{ops::sort(call[0], call.attribute<int64_t>(0), call.attribute<bool>(1))[1]};
    }),
    .vjp = not_differentiable("its results are positions"),
    .batch = batch::along_axes<0>,
    .reference = numpy("sort(x, axis, descending)[1]", 0), .cost = Cost{20},
    .samples = Samples{"distinct(3, 5)", "distinct(4, 9), axis=0, descending=True"})

LAMELLA_OP_MULTI(topk, (Operand x, Shape k, int64_t axis = -1, bool largest = true),
    .doc = "The k largest elements of an axis (or smallest), the first of sort's order, and their positions (int64): of "
           "equal elements the first ones are taken.",
    .accepts = kAnyDType,
    .infer = [](InferCall& call) {
      Shape shape = call.operand(0).shape;
      const auto axis = static_cast<size_t>(normalize_axis(call.attribute<int64_t>(1), rank(shape), "topk"));
      const Shape& k = call.attribute<Shape>(0);
      if (k.size() != 1 || k[0].certainly_below(0) || (shape[axis] - k[0]).certainly_below(0)) {
        fail(ErrorKind::Value, "[topk] k must be one number from 0 to {}, the size of axis {}, got {} (x: {})",
             shape[axis].text(), axis, text(k), text(call.operand(0)));
      }
      shape[axis] = k[0];
      push_values_and_positions(call, shape);
    },
    .lower = kernel({.run = [](const KernelCall& call) {
                       kernels::top_k(call.operands[0], axis_of(call, 1), order_of(call.attribute<bool>(2)),
                                      call.results[0], call.results[1], call.scratch);
                     },
                     .scratch_bytes = [](const KernelCall& call) {
                       const int axis = axis_of(call, 1);
                       const int64_t k = call.results[0].sizes[static_cast<size_t>(axis)];
                       return kernels::top_k_scratch_bytes(call.operands[0], axis, k);
                     },
                     .strided_operands = true}),
    .vjp = vjp([](VjpCall& call) {
      give_back(call, call.result(1), call.cotangent(0), call.attribute<int64_t>(1));
    }),
    .batch = batch::along_axes<1>,
    .reference = numpy("topk(x, k[0], axis, largest)", 0), .cost = Cost{4},
    .samples = Samples{"distinct(3, 5), k=(2,)", "distinct(4, 9), k=(3,), largest=False", "distinct(7, 3), k=(1,), axis=0",
                       "distinct(2, 200), k=(40,)", "distinct(3, 5), k=(0,)", "distinct(2, 4), k=(4,)"})

LAMELLA_OP_MULTI(median, (Operand x, int64_t axis = -1, bool keepdims = false),
    .doc = "The middle one of an axis' elements in order, the lower of two, and its position (int64); the first NaN if "
           "there is one.",
    .accepts = kAnyDType,
    .infer = [](InferCall& call) {
      const TensorType& x = call.operand(0);
      Shape shape = x.shape;
      const auto axis = static_cast<uint32_t>(normalize_axis(call.attribute<int64_t>(0), rank(shape), "median"));
      if (shape[axis].is(0)) fail(ErrorKind::Value, "[median] axis {} has no elements (x: {})", axis, text(x));
      shape[axis] = 1;
      if (!call.attribute<bool>(1)) shape.erase(axis);
      push_values_and_positions(call, shape);
    },
    .lower = kernel({.run = [](const KernelCall& call) {
                       const int axis = axis_of(call, 0);
                       std::array<TensorView, 2> results = {call.results[0], call.results[1]};
                       for (TensorView& result : results) {
                         if (call.attribute<bool>(1)) continue;
                         result.sizes.insert(static_cast<uint32_t>(axis), 1);
                         result.strides.insert(static_cast<uint32_t>(axis), 1);
                       }
                       kernels::median(call.operands[0], axis, results[0], results[1], call.scratch);
                     },
                     .scratch_bytes = [](const KernelCall& call) {
                       return kernels::median_scratch_bytes(call.operands[0], axis_of(call, 0));
                     },
                     .strided_operands = true}),
    .vjp = vjp([](VjpCall& call) {
      const int64_t axis = normalize_axis(call.attribute<int64_t>(0), rank(call.node().operand(0)->type().shape), "median");
      const bool kept = call.attribute<bool>(1);
      give_back(call, kept ? call.result(1) : ops::expand_dims(call.result(1), axis),
                kept ? call.cotangent(0) : ops::expand_dims(call.cotangent(0), axis), axis);
    }),
    .batch = batch::along_axes<0>,
    .reference = numpy("median(x, axis, keepdims)", 0), .cost = Cost{4},
    .samples = Samples{"distinct(3, 5)", "distinct(4, 6), axis=0, keepdims=True", "distinct(2, 101, 2), axis=1"})

LAMELLA_OP(search_sorted, (Operand sequence, Operand values, bool right = false),
    .doc = "For each value the place (int64) in a sorted sequence at which it keeps the order: before equal elements, or, "
           "if right, behind them. sequence has one axis, or values' leading axes and a row for each.",
    .accepts = kAnyDType, .promotion = Promotion::Common,
    .infer = [](InferCall& call) {
      const TensorType &sequence = call.operand(0), &values = call.operand(1);
      bool fits = !sequence.shape.empty() && (sequence.shape.size() == 1 || sequence.shape.size() == values.shape.size());
      for (size_t i = 0; fits && i + 1 < sequence.shape.size(); ++i) fits = sequence.shape[i] == values.shape[i];
      if (!fits) {
        fail(ErrorKind::Value, "[search_sorted] sequence must have 1 axis, or the leading axes of values (sequence: {}, values: {})",
             text(sequence), text(values));
      }
      call.results.push_back({DType::Int64, Layout::RowMajor, values.shape});
    },
    .lower = kernel({.run = [](const KernelCall& call) {
                       kernels::search_sorted(call.operands[0], call.operands[1],
                                              call.attribute<bool>(0) ? kernels::SearchSide::Right : kernels::SearchSide::Left,
                                              call.results[0]);
                     },
                     .strided_operands = true}),
    .vjp = not_differentiable("its results are positions"),
    .batch = batch::rule(batch_search_sorted),
    .reference = numpy("search_sorted(sequence, values, right)", 0), .cost = Cost{10},
    .samples = Samples{"np.sort(integers(9)), integers(3, 4)", "np.sort(integers(2, 9)), integers(2, 4), right=True"})

}  // namespace lamella
