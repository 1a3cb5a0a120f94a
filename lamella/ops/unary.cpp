// Mathematics of one operand, element by element.
#include "lamella/ops/functions.h"
#include "lamella/ops/infer_rules.h"
#include "lamella/ops/tensor_operators.h"
#include "lamella/ops/zero_gradient.h"

namespace lamella {

using tile::Opcode;

namespace {

// The slope of erf at 0.
constexpr double kTwoBySqrtPi = 1.1283791670955126;

}  // namespace

LAMELLA_OP(neg, (Operand x),
    .doc = "-x.",
    .accepts = kNumbers, .infer = infer::same, .lower = tile_opcode<Opcode::Neg>(),
    .vjp = vjp([](VjpCall& call) { call.give(0, -call.cotangent()); }),
    .batch = batch::elementwise,
    .reference = numpy("-x", 0), .cost = Cost{1}, .samples = Samples{"randn(3, 5)"})

LAMELLA_OP(abs, (Operand x),
    .doc = "The absolute value; its gradient at 0 is 0.",
    .accepts = kAnyDType, .infer = infer::same,
    .lower = tile_instructions([](tile::Builder& b, std::span<const tile::ValueId> o, const Node&) {
      return b.dtype(o[0]) == DType::Bool ? o[0] : b.apply(Opcode::Abs, o[0]);
    }),
    .vjp = vjp([](VjpCall& call) { call.give(0, call.cotangent() * ops::sign(call.operand(0))); }),
    .batch = batch::elementwise,
    .reference = numpy("np.abs(x)", 0), .cost = Cost{1}, .samples = Samples{"away_from_zero(3, 5)"})

LAMELLA_OP(sign, (Operand x),
    .doc = "-1, 0 or 1; NaN of NaN.",
    .accepts = kNumbers, .infer = infer::same, .lower = tile_opcode<Opcode::Sign>(),
    .vjp = zero_gradient,  // constant but for its jumps
    .batch = batch::elementwise,
    .reference = numpy("np.sign(x)", 0), .cost = Cost{2}, .samples = Samples{"randn(3, 5)"})

LAMELLA_OP(floor, (Operand x),
    .doc = "The largest whole number not above x.",
    .accepts = kFloats, .infer = infer::same, .lower = tile_opcode<Opcode::Floor>(),
    .vjp = zero_gradient,  // constant but for its jumps
    .batch = batch::elementwise,
    .reference = numpy("np.floor(x)", 0), .cost = Cost{1}, .samples = Samples{"randn(3, 5)"})

LAMELLA_OP(ceil, (Operand x),
    .doc = "The smallest whole number not below x.",
    .accepts = kFloats, .infer = infer::same, .lower = tile_opcode<Opcode::Ceil>(),
    .vjp = zero_gradient,  // constant but for its jumps
    .batch = batch::elementwise,
    .reference = numpy("np.ceil(x)", 0), .cost = Cost{1}, .samples = Samples{"randn(3, 5)"})

LAMELLA_OP(round, (Operand x),
    .doc = "The nearest whole number, halves to the even one.",
    .accepts = kFloats, .infer = infer::same, .lower = tile_opcode<Opcode::Round>(),
    .vjp = zero_gradient,  // constant but for its jumps
    .batch = batch::elementwise,
    .reference = numpy("np.round(x)", 0), .cost = Cost{1}, .samples = Samples{"randn(3, 5)"})

LAMELLA_OP(trunc, (Operand x),
    .doc = "x without its fraction.",
    .accepts = kFloats, .infer = infer::same, .lower = tile_opcode<Opcode::Trunc>(),
    .vjp = zero_gradient,  // constant but for its jumps
    .batch = batch::elementwise,
    .reference = numpy("np.trunc(x)", 0), .cost = Cost{1}, .samples = Samples{"randn(3, 5)"})

LAMELLA_OP(square, (Operand x),
    .doc = "x * x.",
    .accepts = kNumbers, .infer = infer::same,
    .lower = composite([](const CompositeCall& call) { return std::vector{call[0] * call[0]}; }),
    .vjp = vjp([](VjpCall& call) { call.give(0, call.cotangent() * (call.operand(0) * 2)); }),
    .batch = batch::elementwise,
    .reference = numpy("x * x", 0.5), .cost = Cost{1}, .samples = Samples{"randn(3, 5)"})

LAMELLA_OP(sqrt, (Operand x),
    .doc = "The square root; NaN of negative numbers. Its gradient at 0 is infinite.",
    .accepts = kFloats, .promotion = Promotion::Float, .infer = infer::same,
    .lower = tile_opcode<Opcode::Sqrt>(),
    .vjp = vjp([](VjpCall& call) { call.give(0, call.cotangent() * 0.5 / call.result()); }),
    .batch = batch::elementwise,
    .reference = numpy("np.sqrt(x)", 0.5), .cost = Cost{1}, .samples = Samples{"positive(3, 5)"})

LAMELLA_OP(rsqrt, (Operand x),
    .doc = "1 / sqrt(x).",
    .accepts = kFloats, .promotion = Promotion::Float, .infer = infer::same,
    .lower = tile_opcode<Opcode::Rsqrt>(),
    .vjp = vjp([](VjpCall& call) {
      call.give(0, call.cotangent() * -0.5 * call.result() / call.operand(0));
    }),
    .batch = batch::elementwise,
    .reference = numpy("1 / np.sqrt(x)", 2), .cost = Cost{2}, .samples = Samples{"positive(3, 5)"})

LAMELLA_OP(reciprocal, (Operand x),
    .doc = "1 / x.",
    .accepts = kFloats, .promotion = Promotion::Float, .infer = infer::same,
    .lower = tile_opcode<Opcode::Reciprocal>(),
    .vjp = vjp([](VjpCall& call) {
      call.give(0, -(call.cotangent() * ops::square(call.result())));
    }),
    .batch = batch::elementwise,
    .reference = numpy("1 / x", 1), .cost = Cost{1}, .samples = Samples{"away_from_zero(3, 5)"})

LAMELLA_OP(exp, (Operand x),
    .doc = "e to the power x.",
    .accepts = kFloats, .promotion = Promotion::Float, .infer = infer::same,
    .lower = tile_opcode<Opcode::Exp>(),
    .vjp = vjp([](VjpCall& call) { call.give(0, call.cotangent() * call.result()); }),
    .batch = batch::elementwise,
    .reference = numpy("np.exp(x)", 2), .cost = Cost{10}, .samples = Samples{"randn(3, 5)"})

LAMELLA_OP(expm1, (Operand x),
    .doc = "exp(x) - 1, exact near 0.",
    .accepts = kFloats, .promotion = Promotion::Float, .infer = infer::same,
    .lower = tile_opcode<Opcode::Expm1>(),
    .vjp = vjp([](VjpCall& call) { call.give(0, call.cotangent() * (call.result() + 1)); }),
    .batch = batch::elementwise,
    .reference = numpy("np.expm1(x)", 2), .cost = Cost{12}, .samples = Samples{"randn(3, 5)"})

LAMELLA_OP(log, (Operand x),
    .doc = "The natural logarithm; -inf at 0, NaN of negative numbers.",
    .accepts = kFloats, .promotion = Promotion::Float, .infer = infer::same,
    .lower = tile_opcode<Opcode::Log>(),
    .vjp = vjp([](VjpCall& call) { call.give(0, call.cotangent() / call.operand(0)); }),
    .batch = batch::elementwise,
    .reference = numpy("np.log(x)", 2), .cost = Cost{10}, .samples = Samples{"positive(3, 5)"})

LAMELLA_OP(log1p, (Operand x),
    .doc = "log(1 + x), exact near 0.",
    .accepts = kFloats, .promotion = Promotion::Float, .infer = infer::same,
    .lower = tile_opcode<Opcode::Log1p>(),
    .vjp = vjp([](VjpCall& call) { call.give(0, call.cotangent() / (call.operand(0) + 1)); }),
    .batch = batch::elementwise,
    .reference = numpy("np.log1p(x)", 2), .cost = Cost{12}, .samples = Samples{"positive(3, 5)"})

LAMELLA_OP(log2, (Operand x),
    .doc = "The logarithm to base 2.",
    .accepts = kFloats, .promotion = Promotion::Float, .infer = infer::same,
    .lower = tile_opcode<Opcode::Log2>(),
    .vjp = vjp([](VjpCall& call) {
      call.give(0, call.cotangent() / (call.operand(0) * 0.6931471805599453));
    }),
    .batch = batch::elementwise,
    .reference = numpy("np.log2(x)", 2), .cost = Cost{10}, .samples = Samples{"positive(3, 5)"})

LAMELLA_OP(sin, (Operand x),
    .doc = "The sine of x radians.",
    .accepts = kFloats, .promotion = Promotion::Float, .infer = infer::same,
    .lower = tile_opcode<Opcode::Sin>(),
    .vjp = vjp([](VjpCall& call) { call.give(0, call.cotangent() * ops::cos(call.operand(0))); }),
    .batch = batch::elementwise,
    .reference = numpy("np.sin(x)", 2), .cost = Cost{12}, .samples = Samples{"randn(3, 5)"})

LAMELLA_OP(cos, (Operand x),
    .doc = "The cosine of x radians.",
    .accepts = kFloats, .promotion = Promotion::Float, .infer = infer::same,
    .lower = tile_opcode<Opcode::Cos>(),
    .vjp = vjp([](VjpCall& call) { call.give(0, -(call.cotangent() * ops::sin(call.operand(0)))); }),
    .batch = batch::elementwise,
    .reference = numpy("np.cos(x)", 2), .cost = Cost{12}, .samples = Samples{"randn(3, 5)"})

LAMELLA_OP(tan, (Operand x),
    .doc = "The tangent of x radians.",
    .accepts = kFloats, .promotion = Promotion::Float, .infer = infer::same,
    .lower = tile_opcode<Opcode::Tan>(),
    .vjp = vjp([](VjpCall& call) {
      call.give(0, call.cotangent() * (ops::square(call.result()) + 1));
    }),
    .batch = batch::elementwise,
    .reference = numpy("np.tan(x)", 4), .cost = Cost{16}, .samples = Samples{"randn(3, 5) * 0.4"})

LAMELLA_OP(atan, (Operand x),
    .doc = "The angle in (-pi/2, pi/2) whose tangent is x.",
    .accepts = kFloats, .promotion = Promotion::Float, .infer = infer::same,
    .lower = tile_opcode<Opcode::Atan>(),
    .vjp = vjp([](VjpCall& call) {
      call.give(0, call.cotangent() / (ops::square(call.operand(0)) + 1));
    }),
    .batch = batch::elementwise,
    .reference = numpy("np.arctan(x)", 3), .cost = Cost{12}, .samples = Samples{"randn(3, 5)"})

LAMELLA_OP(tanh, (Operand x),
    .doc = "The hyperbolic tangent.",
    .accepts = kFloats, .promotion = Promotion::Float, .infer = infer::same,
    .lower = tile_opcode<Opcode::Tanh>(),
    .vjp = vjp([](VjpCall& call) {
      call.give(0, call.cotangent() * (1.0 - ops::square(call.result())));
    }),
    .batch = batch::elementwise,
    .reference = numpy("np.tanh(x)", 2), .cost = Cost{14}, .samples = Samples{"randn(3, 5)"})

LAMELLA_OP(erf, (Operand x),
    .doc = "The error function, 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x.",
    .accepts = kFloats, .promotion = Promotion::Float, .infer = infer::same,
    .lower = tile_opcode<Opcode::Erf>(),
    .vjp = vjp([](VjpCall& call) {
      call.give(0, call.cotangent() * (ops::gaussian(call.operand(0)) * kTwoBySqrtPi));
    }),
    .batch = batch::elementwise,
    .reference = numpy("erf(x)", 2), .cost = Cost{14}, .samples = Samples{"randn(3, 5)"})

LAMELLA_OP(sigmoid, (Operand x),
    .doc = "1 / (1 + exp(-x)).",
    .accepts = kFloats, .promotion = Promotion::Float, .infer = infer::same,
    .lower = tile_opcode<Opcode::Sigmoid>(),
    .vjp = vjp([](VjpCall& call) {
      call.give(0, call.cotangent() * (call.result() * (1.0 - call.result())));
    }),
    .batch = batch::elementwise,
    .reference = numpy("1 / (1 + np.exp(-x))", 3), .cost = Cost{12},
    .samples = Samples{"randn(3, 5)"})

LAMELLA_OP(softplus, (Operand x),
    .doc = "log(1 + exp(x)), without overflow.",
    .accepts = kFloats, .promotion = Promotion::Float, .infer = infer::same,
    .lower = tile_opcode<Opcode::Softplus>(),
    .vjp = vjp([](VjpCall& call) {
      call.give(0, call.cotangent() * ops::sigmoid(call.operand(0)));
    }),
    .batch = batch::elementwise,
    .reference = numpy("np.logaddexp(x, 0)", 3), .cost = Cost{20},
    .samples = Samples{"randn(3, 5)"})

LAMELLA_OP(isnan, (Operand x),
    .doc = "Whether x is NaN.",
    .accepts = kFloats, .infer = infer::predicate, .lower = tile_opcode<Opcode::IsNan>(),
    .vjp = not_differentiable("its result is a bool"),
    .batch = batch::elementwise,
    .reference = numpy("np.isnan(x)", 0), .cost = Cost{1}, .samples = Samples{"special(12)"})

LAMELLA_OP(isinf, (Operand x),
    .doc = "Whether x is plus or minus infinity.",
    .accepts = kFloats, .infer = infer::predicate, .lower = tile_opcode<Opcode::IsInf>(),
    .vjp = not_differentiable("its result is a bool"),
    .batch = batch::elementwise,
    .reference = numpy("np.isinf(x)", 0), .cost = Cost{1}, .samples = Samples{"special(12)"})

LAMELLA_OP(isfinite, (Operand x),
    .doc = "Whether x is neither NaN nor infinite.",
    .accepts = kFloats, .infer = infer::predicate, .lower = tile_opcode<Opcode::IsFinite>(),
    .vjp = not_differentiable("its result is a bool"),
    .batch = batch::elementwise,
    .reference = numpy("np.isfinite(x)", 0), .cost = Cost{1}, .samples = Samples{"special(12)"})

}  // namespace lamella
