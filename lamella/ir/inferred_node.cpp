// Nodes whose result types the operator's rule gives.
#include "lamella/base/error.h"
#include "lamella/ir/recorder.h"

namespace lamella {

InferCall infer_types(const Operator& op, std::span<Value* const> operands,
                      const Attributes* attributes, std::span<const TensorType*> operand_types,
                      const SourceLocation& location) {
  for (size_t i = 0; i < operands.size(); ++i) operand_types[i] = &operands[i]->type();
  InferCall call{.op = op, .operands = operand_types, .attributes = attributes, .results = {}};
  try {
    op.infer(call);
  } catch (const Error& error) {
    throw error.at(location);
  }
  return call;
}

Ref<Node> make_inferred_node(const Operator& op, std::span<Value* const> operands,
                             Ref<const Attributes> attributes, const SourceLocation& location) {
  constexpr size_t kFew = 16;
  const TensorType* few[kFew];
  std::vector<const TensorType*> many;
  std::span<const TensorType*> types(few, std::min(operands.size(), kFew));
  if (operands.size() > kFew) {
    many.resize(operands.size());
    types = many;
  }
  const InferCall call = infer_types(op, operands, attributes.get(), types, location);
  return Node::make(op, operands, std::move(attributes), {call.results.data(), call.results.size()},
                    location);
}

}  // namespace lamella
