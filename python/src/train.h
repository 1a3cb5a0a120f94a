// Training loops, callbacks, metrics and checkpoints.
#pragma once

#include <nanobind/nanobind.h>

namespace lamella::python {

void add_callbacks(nanobind::module_& module);
void add_metrics(nanobind::module_& module);
void add_train(nanobind::module_& module);

}  // namespace lamella::python
