// Functions whose results' sizes depend on data.
#pragma once

#include <nanobind/nanobind.h>

namespace lamella::python {

void add_selection(nanobind::module_& module);

}  // namespace lamella::python
