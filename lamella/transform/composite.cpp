// Composites with 16-bit floats computed wider inside.
#include "lamella/transform/composite.h"

#include "lamella/ops/functions.h"
#include "lamella/ops/opdef.h"

namespace lamella {

std::vector<Tensor> expand_composite(const Node& node, std::vector<Tensor> operands) {
  const Lowering& lowering = opdef(node).lowering();
  LAMELLA_CHECK(lowering.kind == LoweringKind::Composite);
  const auto converted = [&](const Tensor& tensor, DType dtype) {
    return ops::cast(Operand(tensor).at(node.location()), dtype);
  };
  bool widened = false;
  std::vector<Value*> values;
  for (Tensor& operand : operands) {
    if (!lowering.keeps_precision && is_low_precision(operand.dtype())) {
      operand = converted(operand, DType::Float32);
      widened = true;
    }
    values.push_back(operand.value().get());
  }
  Ref<Node> wide;
  if (widened) {
    wide = make_inferred_node(node.op(), values, node.attributes_ref(), node.location());
  }
  std::vector<Tensor> results = lowering.composite({widened ? *wide : node, std::move(operands)});
  LAMELLA_CHECK(results.size() == node.results().size());
  for (size_t i = 0; i < results.size(); ++i) {
    const DType promised = node.result(i)->type().dtype;
    if (results[i].dtype() != promised) results[i] = converted(results[i], promised);
  }
  return results;
}

}  // namespace lamella
