// The parameters of an operator, read from its declaration.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lamella {

enum class ParameterKind : uint8_t {
  Tensor,    // Operand: a tensor or a number
  Optional,  // OptionalOperand: may be left out; only as the last operand
  Tensors,   // Operands: a list of tensors; the only operand parameter
  Bool,
  Integer,
  Real,
  TypeName,
  Text,
  AxisList,
  SizeList,  // static attributes
  Object,    // ObjectAttribute: compared by identity
};

struct Parameter {
  ParameterKind kind;
  std::string_view name;
  std::string_view default_text;  // C++ text of the default; empty if there is none

  bool is_operand() const { return kind <= ParameterKind::Tensors; }
};

}  // namespace lamella
