// Python objects as operands and attributes of operators.
#pragma once

#include <nanobind/nanobind.h>

#include "lamella/ops/opdef.h"

namespace lamella::python {

// Makes `object` an operand: a tensor, a number, or an array or list that becomes a tensor. False
// if it is none of them.
bool to_operand(PyObject* object, const SourceLocation& location, Operand& operand);

// The attribute that an argument stands for. Throws Type or Value naming operator and parameter.
AttributeValue to_attribute(PyObject* object, const Parameter& parameter, std::string_view op);

// The attribute that a parameter's C++ default text stands for, and the same as a Python object.
AttributeValue default_attribute(const Parameter& parameter);
nanobind::object to_python(const AttributeValue& value);

std::string_view kind_name(ParameterKind kind);

}  // namespace lamella::python
