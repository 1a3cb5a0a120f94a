// Python's operators on tensors: + - * / // % ** @ & | ^ ~, their in-place forms, comparisons.
#pragma once

#include <vector>

#include <nanobind/nanobind.h>

namespace lamella::python {

void append_arithmetic_slots(std::vector<PyType_Slot>& slots);

}  // namespace lamella::python
