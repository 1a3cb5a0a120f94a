// Gradients of Python callables.
#pragma once

#include <nanobind/nanobind.h>

namespace lamella::python {

void add_autodiff(nanobind::module_& module);

}  // namespace lamella::python
