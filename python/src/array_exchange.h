// NumPy arrays, Python numbers and lists to tensors, and tensors to NumPy arrays.
#pragma once

#include <optional>

#include <nanobind/nanobind.h>

#include "lamella/ir/tensor.h"

namespace lamella::python {

// A tensor of the elements of a NumPy array, a number, nested lists of them, or another tensor, in
// `dtype` if one is given. Numbers and lists give bool, int64 or float32. Throws Type.
Tensor tensor_from(PyObject* data, std::optional<DType> dtype);
// The memory of a writable C-contiguous array, shared: writes to either are seen by the other.
Tensor tensor_over(PyObject* array);

// A NumPy array over the tensor's memory (a read-only copy if it lies in another layout).
PyObject* array_of(const Tensor& tensor);

// A NumPy array over row-major memory, which it keeps and pins.
PyObject* array_over(Buffer memory, const TensorType& type, bool writable);
// A buffer's dtype by its format; nothing if no dtype has it.
std::optional<DType> dtype_of_format(const char* format, Py_ssize_t item_size);
// NumPy's array of any data. Throws what NumPy throws.
nanobind::object as_numpy_array(PyObject* data);
// An array with its elements' bytes in this machine's order, copied if they were in the other.
nanobind::object in_native_order(nanobind::object array);

void add_array_exchange(nanobind::module_& module);

}  // namespace lamella::python
