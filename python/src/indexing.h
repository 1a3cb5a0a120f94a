// x[...] and x[...] = value, with NumPy's meaning.
#pragma once

#include <vector>

#include <nanobind/nanobind.h>

namespace lamella::python {

void append_indexing_slots(std::vector<PyType_Slot>& slots);
void add_indexing(nanobind::module_& module);

}  // namespace lamella::python
