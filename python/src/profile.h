// The profiler and the memory pool's statistics, as Python sees them.
#pragma once

#include <nanobind/nanobind.h>

namespace lamella::python {

void add_profiler(nanobind::module_& module);
void add_memory(nanobind::module_& module);

}  // namespace lamella::python
