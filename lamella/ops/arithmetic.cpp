// Arithmetic, element by element with broadcasting.
#include "lamella/ops/functions.h"
#include "lamella/ops/infer_rules.h"
#include "lamella/ops/tensor_operators.h"
#include "lamella/ops/zero_gradient.h"

namespace lamella {

using tile::Opcode;

LAMELLA_OP(add, (Operand x, Operand y),
    .doc = "x + y. Of bools: logical or.",
    .accepts = kAnyDType, .promotion = Promotion::Common,
    .infer = infer::elementwise,
    .lower = tile_instructions([](tile::Builder& b, std::span<const tile::ValueId> o, const Node&) {
      return b.apply(b.dtype(o[0]) == DType::Bool ? Opcode::Or : Opcode::Add, o[0], o[1]);
    }),
    .vjp = vjp([](VjpCall& call) {
      call.give(0, call.cotangent());
      call.give(1, call.cotangent());
    }),
    .batch = batch::elementwise,
    .reference = numpy("x + y", 0.5),
    .cost = Cost{1},
    .samples = Samples{"randn(3, 5), randn(3, 5)", "randn(4, 1, 3), randn(5, 1)", "randn(2, 0), 2.5"})

LAMELLA_OP(sub, (Operand x, Operand y),
    .doc = "x - y.",
    .accepts = kNumbers, .promotion = Promotion::Common,
    .infer = infer::elementwise,
    .lower = tile_opcode<Opcode::Sub>(),
    .vjp = vjp([](VjpCall& call) {
      call.give(0, call.cotangent());
      if (call.needs(1)) call.give(1, -call.cotangent());
    }),
    .batch = batch::elementwise,
    .reference = numpy("x - y", 0.5),
    .cost = Cost{1},
    .samples = Samples{"randn(3, 5), randn(3, 5)", "randn(4, 1, 3), randn(5, 1)", "1.5, randn(7)"})

LAMELLA_OP(mul, (Operand x, Operand y),
    .doc = "x * y. Of bools: logical and.",
    .accepts = kAnyDType, .promotion = Promotion::Common,
    .infer = infer::elementwise,
    .lower = tile_instructions([](tile::Builder& b, std::span<const tile::ValueId> o, const Node&) {
      return b.apply(b.dtype(o[0]) == DType::Bool ? Opcode::And : Opcode::Mul, o[0], o[1]);
    }),
    .vjp = vjp([](VjpCall& call) {
      if (call.needs(0)) call.give(0, call.cotangent() * call.operand(1));
      if (call.needs(1)) call.give(1, call.cotangent() * call.operand(0));
    }),
    .batch = batch::elementwise,
    .reference = numpy("x * y", 0.5),
    .cost = Cost{1},
    .samples = Samples{"randn(3, 5), randn(3, 5)", "randn(4, 1, 3), randn(5, 1)", "randn(6), 3"})

LAMELLA_OP(div, (Operand x, Operand y),
    .doc = "x / y, true division: integers give float32.",
    .accepts = kFloats, .promotion = Promotion::Float,
    .infer = infer::elementwise,
    .lower = tile_opcode<Opcode::Div>(),
    .vjp = vjp([](VjpCall& call) {
      const Tensor scaled = call.cotangent() / call.operand(1);
      call.give(0, scaled);
      if (call.needs(1)) call.give(1, -(scaled * call.result()));
    }),
    .batch = batch::elementwise,
    .reference = numpy("x / y", 0.5),
    .cost = Cost{1},
    .samples = Samples{"randn(3, 5), away_from_zero(3, 5)", "randn(4, 1, 3), away_from_zero(5, 1)",
                       "1.0, away_from_zero(4)"})

LAMELLA_OP(floor_divide, (Operand x, Operand y),
    .doc = "The largest whole number not above x / y. Division of an integer by 0 gives 0.",
    .accepts = kNumbers, .promotion = Promotion::Common,
    .infer = infer::elementwise,
    .lower = tile_opcode<Opcode::FloorDiv>(),
    .vjp = zero_gradient,  // constant but for its jumps
    .batch = batch::elementwise,
    .reference = numpy("np.floor_divide(x, y)", 0.5),
    .cost = Cost{2},
    .samples = Samples{"randn(3, 5), away_from_zero(3, 5)", "randn(4, 1), away_from_zero(3)"})

LAMELLA_OP(mod, (Operand x, Operand y),
    .doc = "x - floor(x / y) * y: the remainder with the sign of y, as Python's %.",
    .accepts = kNumbers, .promotion = Promotion::Common,
    .infer = infer::elementwise,
    .lower = tile_opcode<Opcode::Mod>(),
    .vjp = vjp([](VjpCall& call) {
      call.give(0, call.cotangent());
      if (call.needs(1)) {
        call.give(1, -(call.cotangent() * ops::floor_divide(call.operand(0), call.operand(1))));
      }
    }),
    .batch = batch::elementwise,
    .reference = numpy("np.mod(x, y)", 1),
    .cost = Cost{3},
    .samples = Samples{"randn(3, 5), away_from_zero(3, 5)", "randn(4, 1), away_from_zero(3)"})

LAMELLA_OP(pow, (Operand x, Operand y),
    .doc = "x to the power y.",
    .accepts = kNumbers, .promotion = Promotion::Common,
    .infer = infer::elementwise,
    .lower = tile_opcode<Opcode::Pow>(),
    .vjp = vjp([](VjpCall& call) {
      const Tensor x = call.operand(0), y = call.operand(1);
      // At x = 0 the slope is 0 for y > 1 and 1 for y = 1; y * x^(y-1) says so by itself, but for
      // y = 0, where 0 * inf would be NaN.
      if (call.needs(0)) {
        const Tensor slope = y * ops::pow(x, y - 1);
        call.give(0, call.cotangent() * ops::where(ops::equal(y, 0), 0.0, slope));
      }
      // The slope in y at x = 0 is taken as 0.
      if (call.needs(1)) {
        const Tensor logarithm = ops::where(ops::equal(x, 0), 0.0, ops::log(x));
        call.give(1, call.cotangent() * call.result() * logarithm);
      }
    }),
    .batch = batch::elementwise,
    .reference = numpy("np.power(x, y)", 4),
    .cost = Cost{20},
    .samples = Samples{"positive(3, 5), positive(3, 5)", "positive(4, 1), positive(3)", "positive(5), 2", "positive(5), -1.5"})

LAMELLA_OP(minimum, (Operand x, Operand y),
    .doc = "The smaller of x and y; NaN where either is NaN. At a tie each gets half of the gradient.",
    .accepts = kAnyDType, .promotion = Promotion::Common,
    .infer = infer::elementwise,
    .lower = tile_instructions([](tile::Builder& b, std::span<const tile::ValueId> o, const Node&) {
      return b.apply(b.dtype(o[0]) == DType::Bool ? Opcode::And : Opcode::Min, o[0], o[1]);
    }),
    .vjp = vjp([](VjpCall& call) {
      const Tensor x = call.operand(0), y = call.operand(1);
      const Tensor half = call.cotangent() * 0.5;
      const Tensor tie = ops::equal(x, y);
      if (call.needs(0)) {
        call.give(0, ops::where(tie, half, ops::where(ops::less(x, y), call.cotangent(), 0.0)));
      }
      if (call.needs(1)) {
        call.give(1, ops::where(tie, half, ops::where(ops::less(y, x), call.cotangent(), 0.0)));
      }
    }),
    .batch = batch::elementwise,
    .reference = numpy("np.minimum(x, y)", 0),
    .cost = Cost{1},
    .samples = Samples{"randn(3, 5), randn(3, 5)", "randn(4, 1, 3), randn(5, 1)", "randn(7), 0.5"})

LAMELLA_OP(maximum, (Operand x, Operand y),
    .doc = "The larger of x and y; NaN where either is NaN. At a tie each gets half of the gradient.",
    .accepts = kAnyDType, .promotion = Promotion::Common,
    .infer = infer::elementwise,
    .lower = tile_instructions([](tile::Builder& b, std::span<const tile::ValueId> o, const Node&) {
      return b.apply(b.dtype(o[0]) == DType::Bool ? Opcode::Or : Opcode::Max, o[0], o[1]);
    }),
    .vjp = vjp([](VjpCall& call) {
      const Tensor x = call.operand(0), y = call.operand(1);
      const Tensor half = call.cotangent() * 0.5;
      const Tensor tie = ops::equal(x, y);
      if (call.needs(0)) {
        call.give(0, ops::where(tie, half, ops::where(ops::greater(x, y), call.cotangent(), 0.0)));
      }
      if (call.needs(1)) {
        call.give(1, ops::where(tie, half, ops::where(ops::greater(y, x), call.cotangent(), 0.0)));
      }
    }),
    .batch = batch::elementwise,
    .reference = numpy("np.maximum(x, y)", 0),
    .cost = Cost{1},
    .samples = Samples{"randn(3, 5), randn(3, 5)", "randn(4, 1, 3), randn(5, 1)", "randn(7), 0.5"})

}  // namespace lamella
