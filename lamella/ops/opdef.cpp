// Reading declarations, and calling operators by them.
#include "lamella/ops/opdef.h"

#include <cstdlib>

#include "lamella/ir/call_site.h"
#include "lamella/ops/functions.h"
#include "lamella/types/promotion.h"

namespace lamella {

namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) {
    text.remove_suffix(1);
  }
  return text;
}

ParameterKind kind_from(std::string_view type) {
  static constexpr std::pair<std::string_view, ParameterKind> kinds[] = {
      {"Operand", ParameterKind::Tensor},        {"OptionalOperand", ParameterKind::Optional},
      {"Operands", ParameterKind::Tensors},      {"bool", ParameterKind::Bool},
      {"int64_t", ParameterKind::Integer},       {"double", ParameterKind::Real},
      {"DType", ParameterKind::TypeName},        {"std::string", ParameterKind::Text},
      {"Axes", ParameterKind::AxisList},         {"Shape", ParameterKind::SizeList},
      {"ObjectAttribute", ParameterKind::Object}};
  for (const auto& [text, kind] : kinds) {
    if (text == type) return kind;
  }
  fail(ErrorKind::Internal, "an operator declares a parameter of unknown type '{}'", type);
}

// "(Operand x, int64_t axis = -1)" in its parts.
std::vector<Parameter> read_parameters(std::string_view text) {
  std::vector<Parameter> parameters;
  text = trim(text);
  LAMELLA_CHECK(text.size() >= 2 && text.front() == '(' && text.back() == ')');
  text = text.substr(1, text.size() - 2);
  while (!trim(text).empty()) {
    size_t end = 0;
    for (int depth = 0; end < text.size() && (text[end] != ',' || depth > 0); ++end) {
      depth += text[end] == '{' || text[end] == '(';
      depth -= text[end] == '}' || text[end] == ')';
    }
    std::string_view one = trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    std::string_view default_text;
    if (const size_t equals = one.find('='); equals != std::string_view::npos) {
      default_text = trim(one.substr(equals + 1));
      one = trim(one.substr(0, equals));
    }
    const size_t space = one.rfind(' ');
    LAMELLA_CHECK(space != std::string_view::npos);
    parameters.push_back(
        {kind_from(trim(one.substr(0, space))), trim(one.substr(space + 1)), default_text});
  }
  return parameters;
}

DType number_default(const Operand& operand) {
  switch (operand.number_kind()) {
    case DTypeKind::Float:
      return DType::Float32;
    case DTypeKind::Bool:
      return DType::Bool;
    default:
      return DType::Int64;
  }
}

std::string_view operand_name(const OpDef& op, size_t index) {
  const std::span<const Parameter> parameters = op.parameters();
  if (parameters.empty()) return "operand";
  return parameters[std::min(index, parameters.size() - 1)].name;
}

// The common dtype of the operands from `first` on.
DType common_dtype(const OpDef& op, std::span<const Operand* const> operands, size_t first) {
  std::optional<DType> common;
  for (size_t i = first; i < operands.size(); ++i) {
    if (!operands[i]->is_tensor()) continue;
    const DType dtype = operands[i]->tensor().dtype();
    const std::optional<DType> joined = common ? promote(*common, dtype) : dtype;
    if (!joined) {
      fail(ErrorKind::Type, "[{}] dtypes {} and {} do not mix", op.name(), name(*common),
           name(dtype));
    }
    common = joined;
  }
  const bool numbers_only = !common.has_value();
  for (size_t i = first; i < operands.size(); ++i) {
    if (!operands[i]->is_number()) continue;
    if (numbers_only) {
      const DType dtype = number_default(*operands[i]);
      common = common ? *promote(*common, dtype) : dtype;
    } else {
      common = promote_with_number(*common, operands[i]->number_kind());
    }
  }
  return common.value_or(DType::Float32);
}

std::string list_of(DTypeSet set) {
  std::string list;
  for (DType dtype : kComputeDTypes) {
    if (!set.has(dtype)) continue;
    if (!list.empty()) list += ", ";
    list += name(dtype);
  }
  return list;
}

}  // namespace

OpDef::OpDef(std::string_view name, std::string_view parameters, OpFields fields)
    : Operator(name), fields_(std::move(fields)), parameters_(read_parameters(parameters)) {
  for (const Parameter& parameter : parameters_) {
    if (!parameter.is_operand()) attribute_names_.push_back(parameter.name);
  }
}

DTypeSet OpDef::accepted(size_t index) const {
  if (fields_.accepts_each.empty()) return fields_.accepts.value;
  return fields_.accepts_each[std::min(index, fields_.accepts_each.size() - 1)];
}

Results call_operator(const OpDef& op, std::span<const Operand* const> given,
                      Ref<const Attributes> attributes) {
  InlineVector<const Operand*, 64> few;
  std::vector<const Operand*> many;
  std::span<const Operand* const> operands = given;
  const bool all_given =
      std::all_of(given.begin(), given.end(), [](const Operand* o) { return o->given(); });
  if (!all_given) {
    for (const Operand* operand : given) {
      if (operand->given()) few.push_back(operand);
    }
    operands = {few.data(), few.size()};
  }
  const SourceLocation location = current_call_site().known() ? current_call_site()
                                  : operands.empty()          ? SourceLocation{}
                                                              : operands[0]->location();
  try {
    const Promotion promotion = op.fields().promotion;
    const size_t first = promotion == Promotion::Branches ? 1 : 0;
    std::optional<DType> common;
    if (promotion == Promotion::First) {
      LAMELLA_CHECK(!operands.empty());
      common =
          operands[0]->is_tensor() ? operands[0]->tensor().dtype() : number_default(*operands[0]);
    } else if (promotion != Promotion::None) {
      common = common_dtype(op, operands, first);
      if (promotion == Promotion::Float) common = float_result(*common);
    }
    // Values of numbers and casts are owned here until the node holds them.
    InlineVector<Value*, 16> values;
    std::vector<Value*> values_many;
    std::vector<Ref<Value>> numbers;
    numbers.reserve(operands.size());
    std::vector<Tensor> casts;
    const auto add = [&](Value* value) {
      if (operands.size() <= 16) {
        values.push_back(value);
      } else {
        values_many.push_back(value);
      }
    };
    for (size_t i = 0; i < operands.size(); ++i) {
      const Operand& operand = *operands[i];
      const bool takes_common = common && i >= first;
      DType dtype;
      if (operand.is_tensor()) {
        const Ref<Value>& value = operand.tensor().value();
        dtype = value->type().dtype;
        if (takes_common && dtype != *common) {
          casts.push_back(ops::cast(operand.at(location), *common));
          dtype = *common;
          add(casts.back().value().get());
        } else {
          add(value.get());
        }
      } else {
        dtype = takes_common ? *common : number_default(operand);
        numbers.push_back(operand.number_as(dtype));
        add(numbers.back().get());
      }
      if (i > 0 && operand.is_tensor() && op.lowering().kind == LoweringKind::View &&
          !operand.tensor().value()->is_number()) {
        fail(ErrorKind::Type, "[{}] {} must be a number, got a tensor ({})", op.name(),
             operand_name(op, i), text(operand.tensor().type()));
      }
      if (!op.accepted(i).has(dtype)) [[unlikely]] {
        fail(ErrorKind::Type, "[{}] {} has dtype {}; accepted: {}", op.name(), operand_name(op, i),
             name(dtype), list_of(op.accepted(i)));
      }
    }
    const std::span<Value* const> span = operands.size() <= 16
                                             ? std::span<Value* const>(values.data(), values.size())
                                             : std::span<Value* const>(values_many);
    return current_recorder().record(op, span, std::move(attributes), location);
  } catch (const Error& error) {
    if (!location.known() || error.location().known()) throw;
    throw error.at(location);
  }
}

}  // namespace lamella
