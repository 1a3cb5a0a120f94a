// Callable objects that bind arguments straight to an operator's operands and attributes. One form
// serves the operators themselves and the names of every dialect: a dialect's function is its own
// parameter list, each parameter standing for one of the operator's.
#pragma once

#include <nanobind/nanobind.h>

#include "lamella/ops/opdef.h"

namespace lamella::python {

// Calls `op` with one Python object (or null for left out) per parameter of the operator.
PyObject* call_with(const OpDef& op, std::span<PyObject* const> arguments,
                    const SourceLocation& location);

void add_function_type(nanobind::module_& module);

}  // namespace lamella::python
