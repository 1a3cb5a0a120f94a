// Running results along an axis: each element combined with those before it, or, in reverse, with
// those behind it.
#include "lamella/kernels/scan.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/infer_rules.h"
#include "lamella/ops/tensor_operators.h"

namespace lamella {

namespace {

using kernels::ScanOptions;

ScanOptions scan_options(const KernelCall& call, bool exclusive, bool reverse) {
  return {.axis = normalize_axis(call.attribute<int64_t>(0), call.operands[0].rank(),
                                 call.node.op().name()),
          .direction = reverse ? kernels::ScanDirection::Backward : kernels::ScanDirection::Forward,
          .extent = exclusive ? kernels::ScanExtent::Exclusive : kernels::ScanExtent::Inclusive};
}

int checked_axis(const InferCall& call) {
  return normalize_axis(call.attribute<int64_t>(0), rank(call.operand(0).shape), call.op.name());
}

void infer_total(InferCall& call) {
  const TensorType& x = call.operand(0);
  checked_axis(call);
  call.results.push_back({is_float(x.dtype) ? x.dtype : DType::Int64, Layout::RowMajor, x.shape});
}

void infer_extremum_so_far(InferCall& call) {
  const TensorType& x = call.operand(0);
  checked_axis(call);
  call.results.push_back({x.dtype, Layout::RowMajor, x.shape});
  call.results.push_back({DType::Int64, Layout::RowMajor, x.shape});
}

// x moved along an axis by one place (1 to the back, -1 to the front), 0 coming in.
Tensor shifted(const Tensor& x, int64_t axis, int64_t places) {
  const auto at = static_cast<size_t>(normalize_axis(axis, x.rank(), "cumprod"));
  if (x.shape()[at].is(0)) return x;
  Axes before(static_cast<uint32_t>(x.rank()), 0), after = before;
  before[at] = places;
  after[at] = -places;
  return ops::pad(x, 0, before, after);
}

// Attributes axis, exclusive, reverse. dx[k] = (product before k) * s[k] with
// s[k] = sum over i >= k of g[i] * (product of x between k and i), which needs no division:
// s[k] = g[k] + x[k + 1] * s[k + 1].
void cumprod_vjp(VjpCall& call) {
  const int64_t axis = call.attribute<int64_t>(0);
  const bool exclusive = call.attribute<bool>(1), reverse = call.attribute<bool>(2);
  const Tensor x = call.operand(0);
  const int64_t back = reverse ? 1 : -1;
  const Tensor before = ops::cumprod(x, axis, true, reverse);
  const Tensor cotangent = exclusive ? shifted(call.cotangent(), axis, back) : call.cotangent();
  call.give(0, before * ops::linear_recurrence(shifted(x, axis, back), cotangent, axis, !reverse));
}

void extremum_so_far_vjp(VjpCall& call) {
  const Tensor zeros = ops::zeros_of(call.node().operand(0)->type());
  call.give(
      0, ops::scatter_elements(zeros, call.result(1), call.cotangent(0), call.attribute<int64_t>(0),
                               "add", false, std::string(call.node().op().name())));
}

template <kernels::Extremum extremum>
Lowering extremum_kernel() {
  return kernel({.run =
                     [](const KernelCall& call) {
                       kernels::running_extremum(extremum, call.operands[0],
                                                 scan_options(call, false, false), call.results[0],
                                                 call.results[1]);
                     },
                 .strided_operands = true});
}

}  // namespace

LAMELLA_OP(cumsum, (Operand x, int64_t axis, bool exclusive = false, bool reverse = false),
    .doc = "Sums of the elements up to each one along an axis; exclusive: without itself; reverse: from the other end. "
           "Integers and bools add up in int64. The order: blocks of 4096, in a block one after the other, the sums of "
           "blocks one after the other.",
    .accepts = kAnyDType, .infer = infer_total,
    .lower = kernel({.run = [](const KernelCall& call) {
                       const ScanOptions options = scan_options(call, call.attribute<bool>(1), call.attribute<bool>(2));
                       kernels::cumsum(call.operands[0], options, call.results[0], call.scratch);
                     },
                     .scratch_bytes = [](const KernelCall& call) {
                       const ScanOptions options = scan_options(call, call.attribute<bool>(1), call.attribute<bool>(2));
                       return kernels::cumsum_scratch_bytes(call.operands[0], options, call.results[0]);
                     },
                     .strided_operands = true}),
    .vjp = vjp([](VjpCall& call) {
      call.give(0, ops::cumsum(call.cotangent(), call.attribute<int64_t>(0), call.attribute<bool>(1), !call.attribute<bool>(2)));
    }),
    .batch = batch::along_axes<0>,
    .reference = numpy("cumulative(np.add, 0, x, axis, exclusive, reverse)", 64), .cost = Cost{1},
    .samples = Samples{"randn(3, 5), axis=1", "randn(3, 5), axis=0, reverse=True", "randn(2, 7, 3), axis=1, exclusive=True",
                       "randn(4, 5), axis=-1, exclusive=True, reverse=True", "randn(70, 2), axis=0"})

LAMELLA_OP(cumprod, (Operand x, int64_t axis, bool exclusive = false, bool reverse = false),
    .doc = "Products of the elements up to each one along an axis, one after the other; exclusive: without itself; "
           "reverse: from the other end. Integers and bools multiply in int64.",
    .accepts = kAnyDType, .infer = infer_total,
    .lower = kernel({.run = [](const KernelCall& call) {
                       kernels::cumprod(call.operands[0], scan_options(call, call.attribute<bool>(1), call.attribute<bool>(2)),
                                        call.results[0]);
                     },
                     .strided_operands = true}),
    .vjp = vjp(cumprod_vjp),
    .batch = batch::along_axes<0>,
    .reference = numpy("cumulative(np.multiply, 1, x, axis, exclusive, reverse)", 64), .cost = Cost{1},
    .samples = Samples{"randn(3, 5), axis=1", "integers(3, 5), axis=0, reverse=True", "integers(2, 4, 3), axis=1, exclusive=True",
                       "randn(4, 5), axis=-1, exclusive=True, reverse=True"})

LAMELLA_OP_MULTI(cummax, (Operand x, int64_t axis),
    .doc = "The largest element so far along an axis, and its position (int64), the last of equal ones. From a NaN on NaN.",
    .accepts = kAnyDType, .infer = infer_extremum_so_far, .lower = extremum_kernel<kernels::Extremum::Maximum>(),
    .vjp = vjp(extremum_so_far_vjp),
    .batch = batch::along_axes<0>,
    .reference = numpy("running_extremum(np.greater_equal, x, axis)", 0), .cost = Cost{1},
    .samples = Samples{"distinct(3, 5), axis=1", "distinct(9, 3), axis=0"})

LAMELLA_OP_MULTI(cummin, (Operand x, int64_t axis),
    .doc = "The smallest element so far along an axis, and its position (int64), the last of equal ones. From a NaN on NaN.",
    .accepts = kAnyDType, .infer = infer_extremum_so_far, .lower = extremum_kernel<kernels::Extremum::Minimum>(),
    .vjp = vjp(extremum_so_far_vjp),
    .batch = batch::along_axes<0>,
    .reference = numpy("running_extremum(np.less_equal, x, axis)", 0), .cost = Cost{1},
    .samples = Samples{"distinct(3, 5), axis=1", "distinct(9, 3), axis=0"})

LAMELLA_OP(logcumsumexp, (Operand x, int64_t axis, bool reverse = false),
    .doc = "log(sum(exp(x))) of the elements up to each one along an axis, computed so that nothing overflows.",
    .accepts = kFloats, .promotion = Promotion::Float,
    .infer = [](InferCall& call) {
      checked_axis(call);
      call.results.push_back({call.operand(0).dtype, Layout::RowMajor, call.operand(0).shape});
    },
    .lower = kernel({.run = [](const KernelCall& call) {
                       kernels::logcumsumexp(call.operands[0], scan_options(call, false, call.attribute<bool>(1)), call.results[0]);
                     },
                     .strided_operands = true}),
    .vjp = vjp([](VjpCall& call) {
      // dx[k] = exp(x[k]) * sum over i >= k of g[i] exp(-y[i]), for positive and negative g apart so
      // that the sum can stay under the logarithm.
      const int64_t axis = call.attribute<int64_t>(0);
      const bool reverse = call.attribute<bool>(1);
      const Tensor x = call.operand(0), y = call.result(), g = call.cotangent();
      const auto part = [&](const Tensor& positive) {
        return ops::exp(x + ops::logcumsumexp(ops::log(positive) - y, axis, !reverse));
      };
      call.give(0, part(ops::maximum(g, 0)) - part(ops::maximum(-g, 0)));
    }),
    .batch = batch::along_axes<0>,
    .reference = numpy("cumulative(np.logaddexp, -np.inf, x, axis, False, reverse)", 4), .cost = Cost{20},
    .samples = Samples{"randn(3, 5), axis=1", "randn(6, 3), axis=0, reverse=True"})

LAMELLA_OP(linear_recurrence, (Operand factor, Operand addend, int64_t axis, bool reverse = false),
    .doc = "s[k] = addend[k] + factor[k] * s[k - 1] along an axis, s[0] = addend[0]; reverse: from the other end.",
    .accepts = kFloats, .promotion = Promotion::Float,
    .infer = [](InferCall& call) {
      const TensorType &factor = call.operand(0), &addend = call.operand(1);
      if (factor.shape != addend.shape) {
        fail(ErrorKind::Value, "[linear_recurrence] factor and addend must have one shape (factor: {}, addend: {})",
             text(factor), text(addend));
      }
      checked_axis(call);
      call.results.push_back({factor.dtype, Layout::RowMajor, factor.shape});
    },
    .lower = kernel({.run = [](const KernelCall& call) {
                       kernels::linear_recurrence(call.operands[0], call.operands[1],
                                                  scan_options(call, false, call.attribute<bool>(1)), call.results[0]);
                     },
                     .strided_operands = true}),
    .vjp = vjp([](VjpCall& call) {
      const int64_t axis = call.attribute<int64_t>(0);
      const bool reverse = call.attribute<bool>(1);
      const int64_t back = reverse ? 1 : -1;
      const Tensor later = ops::linear_recurrence(shifted(call.operand(0), axis, back), call.cotangent(), axis, !reverse);
      if (call.needs(0)) call.give(0, later * shifted(call.result(), axis, -back));
      call.give(1, later);
    }),
    .batch = batch::along_axes<0>,
    .reference = numpy("linear_recurrence(factor, addend, axis, reverse)", 64), .cost = Cost{2},
    .samples = Samples{"randn(3, 5), randn(3, 5), axis=1", "randn(6, 3), randn(6, 3), axis=0, reverse=True"})

}  // namespace lamella
