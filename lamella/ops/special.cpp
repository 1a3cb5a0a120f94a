// Less common mathematics, element by element.
#include <limits>

#include "lamella/ops/functions.h"
#include "lamella/ops/infer_rules.h"
#include "lamella/ops/tensor_operators.h"

namespace lamella {

using tile::Opcode;

namespace {

constexpr double kTwoBySqrtPi = 1.1283791670955126;
constexpr double kLn10 = 2.302585092994046, kLn2 = 0.6931471805599453;

// One over the square root of 1 - x^2.
Tensor inverse_root_below_one(const Tensor& x) {
  return ops::rsqrt((1.0 - x) * (1.0 + x));
}

}  // namespace

LAMELLA_OP(erfc, (Operand x),
    .doc = "1 - erf(x), exact far above 0.",
    .accepts = kFloats, .promotion = Promotion::Float, .infer = infer::same,
    .lower = tile_opcode<Opcode::Erfc>(),
    .vjp = vjp([](VjpCall& call) {
      call.give(0, call.cotangent() * (ops::gaussian(call.operand(0)) * -kTwoBySqrtPi));
    }),
    .batch = batch::elementwise,
    .reference = numpy("erfc(x)", 4), .cost = Cost{16}, .samples = Samples{"randn(3, 5)"})

LAMELLA_OP(gaussian, (Operand x),
    .doc = "exp(-x^2), exact far from 0, where the rounded square would not do.",
    .accepts = kFloats, .promotion = Promotion::Float, .infer = infer::same,
    .lower = tile_opcode<Opcode::Gaussian>(),
    .vjp = vjp([](VjpCall& call) {
      // Beyond 30 the result is 0 in every dtype: the bound keeps it so at infinity.
      const Tensor bounded = ops::clip(call.operand(0), -30.0, 30.0);
      call.give(0, call.cotangent() * (bounded * call.result() * -2.0));
    }),
    .batch = batch::elementwise,
    .reference = numpy("np.exp(-x * x)", 4), .cost = Cost{14}, .samples = Samples{"randn(3, 5)"})

LAMELLA_OP(asin, (Operand x),
    .doc = "The angle in [-pi/2, pi/2] whose sine is x; NaN outside [-1, 1].",
    .accepts = kFloats, .promotion = Promotion::Float, .infer = infer::same,
    .lower = tile_opcode<Opcode::Asin>(),
    .vjp = vjp([](VjpCall& call) { call.give(0, call.cotangent() * inverse_root_below_one(call.operand(0))); }),
    .batch = batch::elementwise,
    .reference = numpy("np.arcsin(x)", 4), .cost = Cost{14}, .samples = Samples{"rand(3, 5) * 1.8 - 0.9"})

LAMELLA_OP(acos, (Operand x),
    .doc = "The angle in [0, pi] whose cosine is x; NaN outside [-1, 1].",
    .accepts = kFloats, .promotion = Promotion::Float, .infer = infer::same,
    .lower = tile_opcode<Opcode::Acos>(),
    .vjp = vjp([](VjpCall& call) { call.give(0, -(call.cotangent() * inverse_root_below_one(call.operand(0)))); }),
    .batch = batch::elementwise,
    .reference = numpy("np.arccos(x)", 4), .cost = Cost{14}, .samples = Samples{"rand(3, 5) * 1.8 - 0.9"})

LAMELLA_OP(sinh, (Operand x),
    .doc = "The hyperbolic sine.",
    .accepts = kFloats, .promotion = Promotion::Float, .infer = infer::same,
    .lower = tile_opcode<Opcode::Sinh>(),
    .vjp = vjp([](VjpCall& call) { call.give(0, call.cotangent() * ops::cosh(call.operand(0))); }),
    .batch = batch::elementwise,
    .reference = numpy("np.sinh(x)", 4), .cost = Cost{16}, .samples = Samples{"randn(3, 5)"})

LAMELLA_OP(cosh, (Operand x),
    .doc = "The hyperbolic cosine.",
    .accepts = kFloats, .promotion = Promotion::Float, .infer = infer::same,
    .lower = tile_opcode<Opcode::Cosh>(),
    .vjp = vjp([](VjpCall& call) { call.give(0, call.cotangent() * ops::sinh(call.operand(0))); }),
    .batch = batch::elementwise,
    .reference = numpy("np.cosh(x)", 4), .cost = Cost{16}, .samples = Samples{"randn(3, 5)"})

LAMELLA_OP(asinh, (Operand x),
    .doc = "The number whose hyperbolic sine is x.",
    .accepts = kFloats, .promotion = Promotion::Float, .infer = infer::same,
    .lower = composite([](const CompositeCall& call) {
      // log(a + sqrt(a^2 + 1)) for a = |x|, written so that small a keeps its digits; above 1e8 the
      // square would overflow in time, and log(2a) is exact.
      const Tensor a = ops::abs(call[0]);
      const Tensor bounded = ops::minimum(a, 1e8);
      const Tensor squared = ops::square(bounded);
      const Tensor near = ops::log1p(bounded + squared / (1.0 + ops::sqrt(squared + 1.0)));
      const Tensor far = ops::log(ops::maximum(a, 1.0)) + kLn2;
      return std::vector{ops::where(ops::less(call[0], 0), -1.0, 1.0) *
                         ops::where(ops::greater(a, 1e8), far, near)};
    }),
    .vjp = vjp([](VjpCall& call) {
      call.give(0, call.cotangent() * ops::rsqrt(ops::square(call.operand(0)) + 1.0));
    }),
    .batch = batch::elementwise,
    .reference = numpy("np.arcsinh(x)", 6), .cost = Cost{24}, .samples = Samples{"randn(3, 5)"})

LAMELLA_OP(acosh, (Operand x),
    .doc = "The number not below 0 whose hyperbolic cosine is x; NaN below 1.",
    .accepts = kFloats, .promotion = Promotion::Float, .infer = infer::same,
    .lower = composite([](const CompositeCall& call) {
      const Tensor bounded = ops::minimum(call[0], 1e8);
      const Tensor t = bounded - 1.0;
      const Tensor near = ops::log1p(t + ops::sqrt(t * (t + 2.0)));
      const Tensor far = ops::log(ops::maximum(call[0], 1.0)) + kLn2;
      return std::vector{ops::where(ops::greater(call[0], 1e8), far, near)};
    }),
    .vjp = vjp([](VjpCall& call) {
      const Tensor x = call.operand(0);
      call.give(0, call.cotangent() * ops::rsqrt((x - 1.0) * (x + 1.0)));
    }),
    .batch = batch::elementwise,
    .reference = numpy("np.arccosh(x)", 8), .cost = Cost{24}, .samples = Samples{"positive(3, 5) + 1.1"})

LAMELLA_OP(atanh, (Operand x),
    .doc = "The number whose hyperbolic tangent is x; NaN outside [-1, 1].",
    .accepts = kFloats, .promotion = Promotion::Float, .infer = infer::same,
    .lower = composite([](const CompositeCall& call) {
      const Tensor a = ops::abs(call[0]);
      const Tensor half = ops::log1p(a * 2.0 / (1.0 - a)) * 0.5;
      return std::vector{ops::where(ops::less(call[0], 0), -half, half)};
    }),
    .vjp = vjp([](VjpCall& call) {
      const Tensor x = call.operand(0);
      call.give(0, call.cotangent() / ((1.0 - x) * (1.0 + x)));
    }),
    .batch = batch::elementwise,
    .reference = numpy("np.arctanh(x)", 8), .cost = Cost{16}, .samples = Samples{"rand(3, 5) * 1.8 - 0.9"})

LAMELLA_OP(atan2, (Operand y, Operand x),
    .doc = "The angle in [-pi, pi] of the point (x, y).",
    .accepts = kFloats, .promotion = Promotion::Float, .infer = infer::elementwise,
    .lower = tile_opcode<Opcode::Atan2>(),
    .vjp = vjp([](VjpCall& call) {
      const Tensor y = call.operand(0), x = call.operand(1);
      const Tensor scaled = call.cotangent() / (ops::square(x) + ops::square(y));
      if (call.needs(0)) call.give(0, scaled * x);
      if (call.needs(1)) call.give(1, -(scaled * y));
    }),
    .batch = batch::elementwise,
    .reference = numpy("np.arctan2(y, x)", 4), .cost = Cost{16},
    .samples = Samples{"away_from_zero(3, 5), away_from_zero(3, 5)", "away_from_zero(3, 1), away_from_zero(5)"})

LAMELLA_OP(log10, (Operand x),
    .doc = "The logarithm to base 10.",
    .accepts = kFloats, .promotion = Promotion::Float, .infer = infer::same,
    .lower = composite([](const CompositeCall& call) { return std::vector{ops::log(call[0]) / kLn10}; }),
    .vjp = vjp([](VjpCall& call) { call.give(0, call.cotangent() / (call.operand(0) * kLn10)); }),
    .batch = batch::elementwise,
    .reference = numpy("np.log10(x)", 3), .cost = Cost{11}, .samples = Samples{"positive(3, 5)"})

LAMELLA_OP(exp2, (Operand x),
    .doc = "2 to the power x.",
    .accepts = kFloats, .promotion = Promotion::Float, .infer = infer::same,
    .lower = composite([](const CompositeCall& call) { return std::vector{ops::pow(2.0, call[0])}; }),
    .vjp = vjp([](VjpCall& call) { call.give(0, call.cotangent() * (call.result() * kLn2)); }),
    .batch = batch::elementwise,
    .reference = numpy("np.exp2(x)", 4), .cost = Cost{20}, .samples = Samples{"randn(3, 5)"})

LAMELLA_OP(hypot, (Operand x, Operand y),
    .doc = "sqrt(x^2 + y^2), without overflow. Its gradient at 0 is 0.",
    .accepts = kFloats, .promotion = Promotion::Float, .infer = infer::elementwise,
    .lower = composite([](const CompositeCall& call) {
      const Tensor a = ops::abs(call[0]), b = ops::abs(call[1]);
      const Tensor large = ops::maximum(a, b), small = ops::minimum(a, b);
      const Tensor ratio = small / large;
      const Tensor plain = ops::equal(large, 0);
      const Tensor infinite = ops::bitwise_or(ops::isinf(a), ops::isinf(b));
      const Tensor scaled = large * ops::sqrt(ops::square(ratio) + 1.0);
      return std::vector{ops::where(infinite, std::numeric_limits<double>::infinity(),
                                    ops::where(plain, large, scaled))};
    }),
    .vjp = vjp([](VjpCall& call) {
      const Tensor zero = ops::equal(call.result(), 0);
      const Tensor scaled = ops::where(zero, 0.0, call.cotangent() / call.result());
      if (call.needs(0)) call.give(0, scaled * call.operand(0));
      if (call.needs(1)) call.give(1, scaled * call.operand(1));
    }),
    .batch = batch::elementwise,
    .reference = numpy("np.hypot(x, y)", 4), .cost = Cost{8}, .samples = Samples{"randn(3, 5), randn(5)"})

LAMELLA_OP(fmod, (Operand x, Operand y),
    .doc = "The remainder of x / y with the sign of x, as C's fmod.",
    .accepts = kNumbers, .promotion = Promotion::Common, .infer = infer::elementwise,
    .lower = composite([](const CompositeCall& call) {
      const Tensor rest = ops::mod(ops::abs(call[0]), ops::abs(call[1]));
      return std::vector{ops::where(ops::less(call[0], 0), -rest, rest)};
    }),
    .vjp = vjp([](VjpCall& call) {
      call.give(0, call.cotangent());
      if (call.needs(1)) {
        call.give(1, -(call.cotangent() * ops::trunc(call.operand(0) / call.operand(1))));
      }
    }),
    .batch = batch::elementwise,
    .reference = numpy("np.fmod(x, y)", 1), .cost = Cost{5},
    .samples = Samples{"randn(3, 5), away_from_zero(3, 5)", "randn(4, 1), away_from_zero(3)"})

LAMELLA_OP(lerp, (Operand start, Operand end, Operand weight),
    .doc = "start + weight (end - start).",
    .accepts = kFloats, .promotion = Promotion::Common, .infer = infer::elementwise,
    .lower = composite([](const CompositeCall& call) {
      return std::vector{call[0] + call[2] * (call[1] - call[0])};
    }),
    .vjp = from_composite,
    .batch = batch::elementwise,
    .reference = numpy("start + weight * (end - start)", 4), .cost = Cost{3},
    .samples = Samples{"randn(3, 5), randn(3, 5), 0.25", "randn(3, 1), randn(5), rand(3, 5)"})

LAMELLA_OP(logaddexp, (Operand x, Operand y),
    .doc = "log(exp(x) + exp(y)), without overflow.",
    .accepts = kFloats, .promotion = Promotion::Float, .infer = infer::elementwise,
    .lower = composite([](const CompositeCall& call) {
      const Tensor larger = ops::maximum(call[0], call[1]);
      // Equal infinities have no difference.
      const Tensor distance = ops::where(ops::equal(call[0], call[1]), 0.0, ops::abs(call[0] - call[1]));
      return std::vector{larger + ops::log1p(ops::exp(-distance))};
    }),
    .vjp = vjp([](VjpCall& call) {
      if (call.needs(0)) call.give(0, call.cotangent() * ops::sigmoid(call.operand(0) - call.operand(1)));
      if (call.needs(1)) call.give(1, call.cotangent() * ops::sigmoid(call.operand(1) - call.operand(0)));
    }),
    .batch = batch::elementwise,
    .reference = numpy("np.logaddexp(x, y)", 8), .cost = Cost{24}, .samples = Samples{"randn(3, 5), randn(5)"})

LAMELLA_OP(xlogy, (Operand x, Operand y),
    .doc = "x log(y); 0 where x is 0, unless y is NaN.",
    .accepts = kFloats, .promotion = Promotion::Float, .infer = infer::elementwise,
    .lower = composite([](const CompositeCall& call) {
      const Tensor nothing = ops::bitwise_and(ops::equal(call[0], 0), ops::equal(call[1], call[1]));
      return std::vector{ops::where(nothing, 0.0, call[0] * ops::log(ops::where(nothing, 1.0, call[1])))};
    }),
    .vjp = from_composite,
    .batch = batch::elementwise,
    .reference = numpy("np.where((x == 0) & ~np.isnan(y), 0, x * np.log(y))", 4), .cost = Cost{12},
    .samples = Samples{"away_from_zero(3, 5), positive(5)"})

LAMELLA_OP(nan_to_num, (Operand x, Operand nan, Operand above, Operand below),
    .doc = "x with NaN, infinity and minus infinity replaced by numbers.",
    .accepts = kFloats, .promotion = Promotion::First, .infer = infer::same,
    .lower = composite_of_moves([](const CompositeCall& call) {
      const Tensor x = call[0];
      const Tensor infinite = ops::where(ops::greater(x, 0), call[2], call[3]);
      return std::vector{ops::where(ops::isnan(x), call[1], ops::where(ops::isinf(x), infinite, x))};
    }),
    .vjp = vjp([](VjpCall& call) {
      call.give(0, ops::where(ops::isfinite(call.operand(0)), call.cotangent(), 0.0));
    }),
    .batch = batch::elementwise_like<0>,
    .reference = numpy("np.nan_to_num(x, nan=nan, posinf=above, neginf=below)", 0), .cost = Cost{4},
    .samples = Samples{"special(12), 0.0, 100.0, -100.0"})

LAMELLA_OP(isclose, (Operand x, Operand y, double rtol = 1e-05, double atol = 1e-08, bool equal_nan = false),
    .doc = "Whether |x - y| <= atol + rtol |y|; equal infinities are close.",
    .accepts = kAnyDType, .promotion = Promotion::Common, .infer = infer::predicate,
    .lower = composite([](const CompositeCall& call) {
      const DType dtype = is_float(call[0].dtype()) ? call[0].dtype() : DType::Float64;
      const Tensor x = ops::cast(call[0], dtype), y = ops::cast(call[1], dtype);
      const Tensor bound = ops::abs(y) * call.attribute<double>(0) + call.attribute<double>(1);
      const Tensor near = ops::bitwise_and(ops::less_equal(ops::abs(x - y), bound), ops::isfinite(y));
      Tensor close = ops::bitwise_or(ops::equal(x, y), near);
      if (call.attribute<bool>(2)) close = ops::bitwise_or(close, ops::bitwise_and(ops::isnan(x), ops::isnan(y)));
      return std::vector{close};
    }),
    .vjp = not_differentiable("its result is a bool"),
    .batch = batch::elementwise,
    .reference = numpy("np.isclose(x, y, rtol, atol, equal_nan)", 0), .cost = Cost{6},
    .samples = Samples{"integers(3, 5), integers(3, 5)", "special(12), special(12), equal_nan=True"})

}  // namespace lamella
