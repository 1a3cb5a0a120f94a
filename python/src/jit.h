// Traces of Python functions, and the guards under which each may be replayed.
#pragma once

#include <nanobind/nanobind.h>

namespace lamella::python {

void add_jit(nanobind::module_& module);

}  // namespace lamella::python
