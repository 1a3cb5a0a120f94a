// The operator behind functions with a gradient of their own.
#include "lamella/ops/custom_gradient.h"

#include "lamella/ops/functions.h"

namespace lamella {

LAMELLA_OP_MULTI(with_custom_gradient, (Operands values, int64_t operand_count, ObjectAttribute rule),
    .doc = "The values behind the first operand_count, whose cotangents `rule` turns into those of the "
           "first.",
    .accepts = kAnyDType,
    .infer = [](InferCall& call) {
      for (size_t i = static_cast<size_t>(call.attribute<int64_t>(0)); i < call.operands.size(); ++i) {
        call.results.push_back(call.operand(i));
      }
    },
    .lower = composite_of_moves([](const CompositeCall& call) {
      return std::vector<Tensor>(call.operands.begin() + call.attribute<int64_t>(0), call.operands.end());
    }),
    .vjp = vjp([](VjpCall& call) {
      apply_custom_gradient(call.attribute<Ref<AttributeObject>>(1), call);
    }),
    .batch = batch::custom_gradient,
    .reference = numpy("", 0), .cost = Cost{0}, .samples = Samples{})

}  // namespace lamella
