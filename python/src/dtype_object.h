// dtype objects: one per DType, equal by identity.
#pragma once

#include <nanobind/nanobind.h>

#include "lamella/types/dtype.h"

namespace lamella::python {

// A borrowed reference to the object of a dtype.
PyObject* dtype_object(DType dtype);
bool is_dtype_object(PyObject* object);
// From a dtype object, a NumPy dtype or scalar type, Python's bool, int or float, or a name.
// Throws Type.
DType dtype_from(PyObject* object);

void add_dtypes(nanobind::module_& module);

}  // namespace lamella::python
