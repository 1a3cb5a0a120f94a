// The generator of random numbers and draws from it.
#pragma once

#include <nanobind/nanobind.h>

namespace lamella::python {

void add_random(nanobind::module_& module);

}  // namespace lamella::python
