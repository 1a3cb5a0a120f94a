// Arrays of datasets and Python's objects, and Python functions as parts of a pipeline.
#pragma once

#include <memory>
#include <vector>

#include <nanobind/nanobind.h>

#include "lamella/data/array.h"
#include "lamella/data/random_stream.h"
#include "lamella/ir/tensor.h"

namespace lamella::python {

// The elements of a NumPy array, a number, a list or a tensor; a C-contiguous array is shared.
data::Array array_from(PyObject* object);
// The columns a user's function returned: one array, or a tuple or list of them.
std::vector<data::Array> arrays_from(PyObject* returned);

// A NumPy array that the reader may write: the memory itself if nobody else has it, else a copy.
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

// Calls a user's function with arrays, in a thread of the pipeline. `shim` is the package's
// function (function, key, arguments) that gives the call random numbers of its own.
std::vector<data::Array> call_user(const SharedObject& function, std::vector<data::Array> inputs,
                                   uint64_t key);
void set_call_shim(nanobind::object shim);
// The shim's result for arguments that are made already; the caller holds Python's lock.
nanobind::object call_through_shim(PyObject* function, uint64_t key, nanobind::tuple arguments);

// One user's function at a time, so that random numbers and state do not mix. Taken before Python's
// lock.
class UserCall {
 public:
  UserCall();
  ~UserCall();
  UserCall(const UserCall&) = delete;
};

}  // namespace lamella::python
