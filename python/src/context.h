// The window, its counters, and where the package lies.
#pragma once

#include <nanobind/nanobind.h>

namespace lamella::python {

void add_context(nanobind::module_& module);

}  // namespace lamella::python
