// Printing graphs.
#include "lamella/ir/text.h"

#include <unordered_map>

#include <fmt/format.h>

namespace lamella {

namespace {

class Printer {
 public:
  std::string print(const Graph& graph) {
    std::string inputs;
    for (const Ref<Value>& input : graph.inputs) {
      if (!inputs.empty()) inputs += ", ";
      const std::string type = input->is_number()
                                   ? fmt::format("number {}", short_name(input->type().dtype))
                                   : text(input->type());
      inputs += fmt::format("{}: {}", name(input.get()), type);
    }
    std::string body = fmt::format("graph({}) {{\n", inputs);
    for (const Ref<Node>& node : graph.nodes) body += line(*node);
    std::string outputs;
    for (const Ref<Value>& output : graph.outputs) {
      outputs += (outputs.empty() ? " " : ", ") + operand(*output);
    }
    return body + fmt::format("  return{}\n}}\n", outputs);
  }

 private:
  std::string name(const Value* value) {
    return fmt::format("%{}", names_.try_emplace(value, names_.size()).first->second);
  }

  std::string operand(const Value& value) {
    const std::string_view dtype = short_name(value.type().dtype);
    if (value.state() == Value::State::Size)
      return fmt::format("size({}):{}", value.size_expression().text(), dtype);
    if (value.state() == Value::State::Scalar) {
      const double number = double_from_scalar_bits(value.type().dtype, value.scalar_bits());
      if (!is_float(value.type().dtype))
        return fmt::format("{}:{}", static_cast<int64_t>(number), dtype);
      return fmt::format("{}:{}", number, dtype);
    }
    return name(&value);
  }

  std::string line(const Node& node) {
    std::string operands, results, attributes;
    for (const Ref<Value>& value : node.operands()) {
      operands += (operands.empty() ? "" : ", ") + operand(*value);
    }
    for (const Ref<Value>& value : node.results()) {
      results += fmt::format("{}{}: {}", results.empty() ? "" : ", ", name(value.get()),
                             text(value->type()));
    }
    if (node.attributes() != nullptr) {
      const auto names = node.op().attribute_names();
      for (size_t i = 0; i < names.size(); ++i) {
        attributes += fmt::format("{}{}={}", attributes.empty() ? " {" : ", ", names[i],
                                  text((*node.attributes())[i]));
      }
      attributes += "}";
    }
    std::string origin;
    if (node.layer() != nullptr) origin += fmt::format(" {}", node.layer());
    if (node.location().known())
      origin += fmt::format(" at {}:{}", node.location().file, node.location().line);
    if (!origin.empty()) origin = "  //" + origin;
    return fmt::format("  {} = {}({}){}{}\n", results, node.op().name(), operands, attributes,
                       origin);
  }

  std::unordered_map<const Value*, size_t> names_;
};

}  // namespace

std::string print(const Graph& graph) {
  return Printer().print(graph);
}

}  // namespace lamella
