// Loss scales and mixed precision.
#pragma once

#include <nanobind/nanobind.h>

namespace lamella::python {

void add_amp(nanobind::module_& module);

}  // namespace lamella::python
