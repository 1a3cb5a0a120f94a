// Comparison and logic.
#include "lamella/ops/functions.h"
#include "lamella/ops/infer_rules.h"
#include "lamella/ops/zero_gradient.h"

namespace lamella {

using tile::Opcode;

LAMELLA_OP(equal, (Operand x, Operand y),
    .doc = "x == y; false where either is NaN.",
    .accepts = kAnyDType, .promotion = Promotion::Common, .infer = infer::predicate,
    .lower = tile_opcode<Opcode::Equal>(), .vjp = not_differentiable("its result is a bool"),
    .batch = batch::elementwise,
    .reference = numpy("np.equal(x, y)", 0), .cost = Cost{1},
    .samples = Samples{"integers(3, 5), integers(3, 5)", "integers(4, 1), integers(3)"})

LAMELLA_OP(not_equal, (Operand x, Operand y),
    .doc = "x != y; true where either is NaN.",
    .accepts = kAnyDType, .promotion = Promotion::Common, .infer = infer::predicate,
    .lower = tile_opcode<Opcode::NotEqual>(), .vjp = not_differentiable("its result is a bool"),
    .batch = batch::elementwise,
    .reference = numpy("np.not_equal(x, y)", 0), .cost = Cost{1},
    .samples = Samples{"integers(3, 5), integers(3, 5)", "integers(4, 1), integers(3)"})

LAMELLA_OP(less, (Operand x, Operand y),
    .doc = "x < y; false where either is NaN.",
    .accepts = kAnyDType, .promotion = Promotion::Common, .infer = infer::predicate,
    .lower = tile_opcode<Opcode::Less>(), .vjp = not_differentiable("its result is a bool"),
    .batch = batch::elementwise,
    .reference = numpy("np.less(x, y)", 0), .cost = Cost{1},
    .samples = Samples{"integers(3, 5), integers(3, 5)", "integers(4, 1), integers(3)"})

LAMELLA_OP(less_equal, (Operand x, Operand y),
    .doc = "x <= y; false where either is NaN.",
    .accepts = kAnyDType, .promotion = Promotion::Common, .infer = infer::predicate,
    .lower = tile_opcode<Opcode::LessEqual>(), .vjp = not_differentiable("its result is a bool"),
    .batch = batch::elementwise,
    .reference = numpy("np.less_equal(x, y)", 0), .cost = Cost{1},
    .samples = Samples{"integers(3, 5), integers(3, 5)", "integers(4, 1), integers(3)"})

LAMELLA_OP(greater, (Operand x, Operand y),
    .doc = "x > y; false where either is NaN.",
    .accepts = kAnyDType, .promotion = Promotion::Common, .infer = infer::predicate,
    .lower = tile_opcode<Opcode::Greater>(), .vjp = not_differentiable("its result is a bool"),
    .batch = batch::elementwise,
    .reference = numpy("np.greater(x, y)", 0), .cost = Cost{1},
    .samples = Samples{"integers(3, 5), integers(3, 5)", "integers(4, 1), integers(3)"})

LAMELLA_OP(greater_equal, (Operand x, Operand y),
    .doc = "x >= y; false where either is NaN.",
    .accepts = kAnyDType, .promotion = Promotion::Common, .infer = infer::predicate,
    .lower = tile_opcode<Opcode::GreaterEqual>(), .vjp = not_differentiable("its result is a bool"),
    .batch = batch::elementwise,
    .reference = numpy("np.greater_equal(x, y)", 0), .cost = Cost{1},
    .samples = Samples{"integers(3, 5), integers(3, 5)", "integers(4, 1), integers(3)"})

LAMELLA_OP(bitwise_and, (Operand x, Operand y),
    .doc = "Bit by bit and; logical and of bools.",
    .accepts = kIntegers | kBool, .promotion = Promotion::Common, .infer = infer::elementwise,
    .lower = tile_opcode<Opcode::And>(), .vjp = not_differentiable("integers have no gradient"),
    .batch = batch::elementwise,
    .reference = numpy("np.bitwise_and(x, y)", 0), .cost = Cost{1},
    .samples = Samples{"integers(3, 5), integers(3, 5)"})

LAMELLA_OP(bitwise_or, (Operand x, Operand y),
    .doc = "Bit by bit or; logical or of bools.",
    .accepts = kIntegers | kBool, .promotion = Promotion::Common, .infer = infer::elementwise,
    .lower = tile_opcode<Opcode::Or>(), .vjp = not_differentiable("integers have no gradient"),
    .batch = batch::elementwise,
    .reference = numpy("np.bitwise_or(x, y)", 0), .cost = Cost{1},
    .samples = Samples{"integers(3, 5), integers(3, 5)"})

LAMELLA_OP(bitwise_xor, (Operand x, Operand y),
    .doc = "Bit by bit exclusive or; of bools whether they differ.",
    .accepts = kIntegers | kBool, .promotion = Promotion::Common, .infer = infer::elementwise,
    .lower = tile_opcode<Opcode::Xor>(), .vjp = not_differentiable("integers have no gradient"),
    .batch = batch::elementwise,
    .reference = numpy("np.bitwise_xor(x, y)", 0), .cost = Cost{1},
    .samples = Samples{"integers(3, 5), integers(3, 5)"})

LAMELLA_OP(bitwise_not, (Operand x),
    .doc = "All bits turned; logical not of bools.",
    .accepts = kIntegers | kBool, .infer = infer::same,
    .lower = tile_opcode<Opcode::Not>(), .vjp = not_differentiable("integers have no gradient"),
    .batch = batch::elementwise,
    .reference = numpy("np.invert(x)", 0), .cost = Cost{1}, .samples = Samples{"integers(3, 5)"})

LAMELLA_OP(logical_and, (Operand x, Operand y),
    .doc = "Whether both are not 0.",
    .accepts = kAnyDType, .promotion = Promotion::Common, .infer = infer::predicate,
    .lower = composite([](const CompositeCall& call) {
      return std::vector{ops::bitwise_and(ops::cast(call[0], DType::Bool),
                                          ops::cast(call[1], DType::Bool))};
    }),
    .vjp = not_differentiable("its result is a bool"),
    .batch = batch::elementwise,
    .reference = numpy("np.logical_and(x, y)", 0), .cost = Cost{2},
    .samples = Samples{"integers(3, 5), integers(3, 5)", "integers(4, 1), integers(3)"})

LAMELLA_OP(logical_or, (Operand x, Operand y),
    .doc = "Whether either is not 0.",
    .accepts = kAnyDType, .promotion = Promotion::Common, .infer = infer::predicate,
    .lower = composite([](const CompositeCall& call) {
      return std::vector{ops::bitwise_or(ops::cast(call[0], DType::Bool),
                                         ops::cast(call[1], DType::Bool))};
    }),
    .vjp = not_differentiable("its result is a bool"),
    .batch = batch::elementwise,
    .reference = numpy("np.logical_or(x, y)", 0), .cost = Cost{2},
    .samples = Samples{"integers(3, 5), integers(3, 5)", "integers(4, 1), integers(3)"})

LAMELLA_OP(logical_xor, (Operand x, Operand y),
    .doc = "Whether exactly one is not 0.",
    .accepts = kAnyDType, .promotion = Promotion::Common, .infer = infer::predicate,
    .lower = composite([](const CompositeCall& call) {
      return std::vector{ops::bitwise_xor(ops::cast(call[0], DType::Bool),
                                          ops::cast(call[1], DType::Bool))};
    }),
    .vjp = not_differentiable("its result is a bool"),
    .batch = batch::elementwise,
    .reference = numpy("np.logical_xor(x, y)", 0), .cost = Cost{2},
    .samples = Samples{"integers(3, 5), integers(3, 5)", "integers(4, 1), integers(3)"})

LAMELLA_OP(logical_not, (Operand x),
    .doc = "Whether x is 0.",
    .accepts = kAnyDType, .infer = infer::predicate,
    .lower = composite([](const CompositeCall& call) {
      return std::vector{ops::bitwise_not(ops::cast(call[0], DType::Bool))};
    }),
    .vjp = not_differentiable("its result is a bool"),
    .batch = batch::elementwise,
    .reference = numpy("np.logical_not(x)", 0), .cost = Cost{2}, .samples = Samples{"integers(3, 5)"})

LAMELLA_OP(where, (Operand condition, Operand x, Operand y),
    .doc = "x where the condition holds, else y; the other branch gets no gradient.",
    .accepts = kAnyDType, .promotion = Promotion::Branches,
    .accepts_each = {kBool, kAnyDType, kAnyDType}, .infer = infer::elementwise,
    .lower = tile_opcode<Opcode::Select>(),
    .vjp = vjp([](VjpCall& call) {
      const Tensor condition = call.operand(0), cotangent = call.cotangent();
      if (call.needs(1)) call.give(1, ops::where(condition, cotangent, 0.0));
      if (call.needs(2)) call.give(2, ops::where(condition, 0.0, cotangent));
    }),
    .batch = batch::elementwise,
    .reference = numpy("np.where(condition, x, y)", 0), .cost = Cost{1},
    .samples = Samples{"bools(3, 5), randn(3, 5), randn(3, 5)", "bools(4, 1), randn(3), 0.0"})

LAMELLA_OP(cast, (Operand x, DType dtype),
    .doc = "x converted to a dtype. Floats become integers by truncation, saturating, NaN as 0; bools "
           "by comparison with 0.",
    .accepts = kAnyDType,
    .infer = [](InferCall& call) {
      TensorType result = call.operand(0);
      result.dtype = call.attribute<DType>(0);
      if (!is_computable(result.dtype)) {
        fail(ErrorKind::Unsupported, "[cast] dtype {} is not supported", name(result.dtype));
      }
      call.results.push_back(result);
    },
    .lower = tile_instructions([](tile::Builder& b, std::span<const tile::ValueId> o,
                                  const Node& node) { return b.cast(o[0], node.attribute<DType>(0)); }),
    .vjp = vjp([](VjpCall& call) {
      if (is_float(call.operand(0).dtype())) {
        call.give(0, ops::cast(call.cotangent(), call.operand(0).dtype()));
      }
    }),
    .batch = batch::elementwise,
    .reference = numpy("astype(x, dtype)", 0), .cost = Cost{1},
    .samples = Samples{"randn(3, 5), dtype='float32'", "randn(3, 5), dtype='float16'",
                       "randn(3, 5), dtype='int32'", "integers(3, 5), dtype='bool'"})

LAMELLA_OP(stop_gradient, (Operand x),
    .doc = "x itself, through which no gradient flows.",
    .accepts = kAnyDType, .infer = infer::same,
    .lower = tile_instructions([](tile::Builder&, std::span<const tile::ValueId> o, const Node&) {
      return o[0];
    }),
    .vjp = zero_gradient,
    .batch = batch::elementwise,
    .reference = numpy("x", 0), .cost = Cost{0}, .samples = Samples{"randn(3, 5)"})

}  // namespace lamella
