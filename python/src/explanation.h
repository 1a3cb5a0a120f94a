// Explanations of what runs for a layer, as Python sees them.
#pragma once

#include <nanobind/nanobind.h>

namespace lamella::python {

void add_explanation(nanobind::module_& module);

}  // namespace lamella::python
