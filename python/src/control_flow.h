// Loops and branches with Python bodies.
#pragma once

#include <nanobind/nanobind.h>

namespace lamella::python {

void add_control_flow(nanobind::module_& module);

}  // namespace lamella::python
