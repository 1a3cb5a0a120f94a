// Parameters: tensors in Python, with the C++ parameter behind them.
#pragma once

#include "python/src/tensor_object.h"
#include <nanobind/nanobind.h>

#include "lamella/nn/parameter.h"

namespace lamella::python {

bool is_parameter(PyObject* object);
nn::Parameter& parameter_of(PyObject* object);
// A new reference to the parameter's Python object, which is made on first use.
PyObject* wrap_parameter(const Ref<nn::Parameter>& parameter);
// A list of the parameters among the items of a sequence. Throws Type for anything else.
nn::Parameters parameters_from(nanobind::handle sequence, const char* what);
nanobind::list to_list(const nn::Parameters& parameters);

void add_parameter_type(nanobind::module_& module);

}  // namespace lamella::python
