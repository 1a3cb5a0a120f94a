// Arrays of datasets and Python's objects.
#pragma once

#include <memory>
#include <vector>

#include <nanobind/nanobind.h>

#include "lamella/data/array.h"
#include "lamella/ir/tensor.h"

namespace lamella::python {

// The elements of a NumPy array, a number, a list, a tensor or strings; a C-contiguous array of
// numbers is shared.
data::Array array_from(PyObject* object);
// The columns a user's function returned: one array, or a tuple or list of them.
std::vector<data::Array> arrays_from(PyObject* returned);

nanobind::tuple arrays_to_python(std::vector<data::Array> arrays);
// Whole numbers from and to a sequence.
std::vector<int64_t> numbers_from_python(PyObject* numbers);
nanobind::tuple numbers_to_python(const std::vector<int64_t>& numbers);

// A NumPy array that the reader may write: the memory itself if nobody else has it, else a copy.
// Text gives an array of strings.
PyObject* to_numpy(data::Array array);
// The same as a tensor.
Tensor to_tensor(data::Array array);

// A Python object that C++ threads hold and drop.
class SharedObject {
 public:
  explicit SharedObject(nanobind::object object);
  PyObject* get() const { return object_.get(); }

 private:
  std::shared_ptr<PyObject> object_;
};

}  // namespace lamella::python
