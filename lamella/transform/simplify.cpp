// Exact simplifications, as a table of named rules. Each keeps every bit of the result.
#include "lamella/ops/functions.h"
#include "lamella/transform/lowering.h"

namespace lamella {

namespace {

struct Match {
  std::span<Value* const> operands;
  const Attributes* attributes;
  const TensorType& result;
};

struct Rule {
  std::string_view name;
  std::string_view op;
  // The simpler value, or null if the rule does not apply.
  Ref<Value> (*apply)(const Match&);
};

Ref<Value> operand_if(const Match& match, bool applies) {
  return applies ? Ref<Value>(match.operands[0]) : Ref<Value>();
}

// The node that made a value, if it is of this operator.
const Node* made_by(const Value* value, std::string_view op) {
  const Node* node = value->producer();
  return node != nullptr && node->op().name() == op ? node : nullptr;
}

bool is_constant(const Value* value, double number) {
  return value->state() == Value::State::Scalar &&
         double_from_scalar_bits(value->type().dtype, value->scalar_bits()) == number;
}

// A reduction over axes of size 1 leaves every element as it is.
Ref<Value> single_elements(const Match& match) {
  return operand_if(match, match.operands[0]->type() == match.result);
}

constexpr Rule kRules[] = {
    {"cast to the same dtype", "cast",
     [](const Match& m) { return operand_if(m, m.operands[0]->type().dtype == m.result.dtype); }},
    {"gradients do not flow in a finished graph", "stop_gradient",
     [](const Match& m) { return operand_if(m, true); }},
    {"reshape to the same shape", "reshape",
     [](const Match& m) { return operand_if(m, m.operands[0]->type() == m.result); }},
    {"reshape of a reshape", "reshape",
     [](const Match& m) -> Ref<Value> {
       const Node* inner = made_by(m.operands[0], "reshape");
       if (inner == nullptr) return {};
       return ops::reshape(Tensor(inner->operands()[0]), m.result.shape).value();
     }},
    {"broadcast to the same shape", "broadcast_to",
     [](const Match& m) { return operand_if(m, m.operands[0]->type() == m.result); }},
    {"broadcast of a broadcast", "broadcast_to",
     [](const Match& m) -> Ref<Value> {
       const Node* inner = made_by(m.operands[0], "broadcast_to");
       if (inner == nullptr) return {};
       return ops::broadcast_to(Tensor(inner->operands()[0]), m.result.shape).value();
     }},
    {"axes in their own order", "transpose",
     [](const Match& m) {
       const Axes& axes = m.attributes->get<Axes>(0);
       bool same = !axes.empty();
       for (size_t i = 0; i < axes.size(); ++i) same = same && axes[i] == static_cast<int64_t>(i);
       return operand_if(m, same && m.operands[0]->type() == m.result);
     }},
    {"transpose of a transpose", "transpose",
     [](const Match& m) -> Ref<Value> {
       const Node* inner = made_by(m.operands[0], "transpose");
       if (inner == nullptr) return {};
       const Axes &outer_axes = m.attributes->get<Axes>(0), &inner_axes = inner->attribute<Axes>(0);
       if (outer_axes.empty() || inner_axes.empty()) return {};
       Axes composed;
       for (int64_t axis : outer_axes) {
         const auto size = static_cast<int64_t>(inner_axes.size());
         const int64_t at = inner_axes[static_cast<size_t>(axis < 0 ? axis + size : axis)];
         composed.push_back(at < 0 ? at + size : at);
       }
       return ops::transpose(Tensor(inner->operands()[0]), composed).value();
     }},
    {"sum of single elements", "reduce_sum", single_elements},
    {"product of single elements", "reduce_prod", single_elements},
    {"maximum of single elements", "reduce_max", single_elements},
    {"minimum of single elements", "reduce_min", single_elements},
    {"times 1", "mul",
     [](const Match& m) {
       return operand_if(m, is_constant(m.operands[1], 1) && m.operands[0]->type() == m.result &&
                                m.result.dtype != DType::Bool);
     }},
    {"divided by 1", "div",
     [](const Match& m) {
       return operand_if(m, is_constant(m.operands[1], 1) && m.operands[0]->type() == m.result);
     }},
    {"negative of a negative", "neg",
     [](const Match& m) -> Ref<Value> {
       const Node* inner = made_by(m.operands[0], "neg");
       return inner == nullptr ? Ref<Value>() : inner->operands()[0];
     }},
};

}  // namespace

Ref<Value> simplify(const OpDef& op, std::span<Value* const> operands, const Attributes* attributes,
                    const TensorType& result) {
  for (const Rule& rule : kRules) {
    if (rule.op != op.name()) continue;
    if (Ref<Value> simpler = rule.apply({operands, attributes, result})) return simpler;
  }
  return {};
}

}  // namespace lamella
