// Conversion of rows, and the order of locks around users' functions.
#include "python/src/dataset_arrays.h"

#include <cstring>
#include <mutex>

#include "python/src/array_exchange.h"
#include "python/src/dtype_object.h"
#include "python/src/errors.h"
#include "python/src/host_lock.h"
#include "python/src/tensor_object.h"

#include "lamella/ir/runtime_interface.h"

namespace nb = nanobind;

namespace lamella::python {

namespace {

PyObject* call_shim = nullptr;
std::recursive_mutex user_calls;

Buffer exclusive_memory(data::Array array) {
  const auto size = static_cast<int64_t>(array.bytes());
  if (array.owner().use_count() == 1 && size > 0) {
    void* bytes = array.writable();
    return wrap_external(bytes, size, [kept = std::move(array)] {});
  }
  Buffer copy = runtime().allocate(size, "row");
  if (size > 0) std::memcpy(copy.data(), array.data(), static_cast<size_t>(size));
  return copy;
}

TensorType type_of(const data::Array& array) {
  TensorType type{array.dtype(), Layout::RowMajor, {}};
  for (int64_t size : array.sizes()) type.shape.push_back(size);
  return type;
}

}  // namespace

data::Array array_from(PyObject* object) {
  nb::object made;
  if (is_tensor(object)) {
    made = nb::steal(array_of(tensor_of(object)));
    made = nb::steal(PyObject_CallMethod(made.ptr(), "copy", nullptr));
  } else {
    made = as_numpy_array(object);
  }
  if (!made.is_valid()) throw_python_error();
  auto view = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(made.ptr(), view.get(), PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
    PyErr_Clear();
    made = nb::module_::import_("numpy").attr("ascontiguousarray")(made);
    if (PyObject_GetBuffer(made.ptr(), view.get(), PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
      throw_python_error();
    }
  }
  const std::optional<DType> dtype = dtype_of_format(view->format, view->itemsize);
  Axes sizes;
  if (view->ndim <= kMaxRank) {
    for (int axis = 0; axis < view->ndim; ++axis) sizes.push_back(view->shape[axis]);
  }
  std::shared_ptr<const void> owner(view->buf, [held = view.get()](const void*) {
    const HostLock lock;
    PyBuffer_Release(held);
    delete held;
  });
  (void)view.release();
  if (!dtype || sizes.size() != static_cast<size_t>(PyObject_Size(made.attr("shape").ptr()))) {
    fail(ErrorKind::Type, "[dataset] a row holds numbers in at most {} axes, got {}", kMaxRank,
         nb::repr(made.attr("dtype")).c_str());
  }
  return data::Array(*dtype, sizes, std::move(owner));
}

std::vector<data::Array> arrays_from(PyObject* returned) {
  std::vector<data::Array> arrays;
  if (PyTuple_Check(returned) || PyList_Check(returned)) {
    nb::object sequence = nb::steal(PySequence_Fast(returned, "a row is a tuple of arrays"));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence.ptr()); ++i) {
      arrays.push_back(array_from(PySequence_Fast_GET_ITEM(sequence.ptr(), i)));
    }
  } else {
    arrays.push_back(array_from(returned));
  }
  return arrays;
}

PyObject* to_numpy(data::Array array) {
  const TensorType type = type_of(array);
  return array_over(exclusive_memory(std::move(array)), type, true);
}

Tensor to_tensor(data::Array array) {
  const TensorType type = type_of(array);
  return Tensor(Value::from_buffer(type, exclusive_memory(std::move(array))));
}

SharedObject::SharedObject(nb::object object)
    : object_(object.release().ptr(), [](PyObject* held) {
        if (!Py_IsInitialized()) return;
        const HostLock lock;
        Py_DECREF(held);
      }) {}

UserCall::UserCall() {
  user_calls.lock();
}
UserCall::~UserCall() {
  user_calls.unlock();
}

void set_call_shim(nb::object shim) {
  call_shim = shim.release().ptr();
}

nb::object call_through_shim(PyObject* function, uint64_t key, nb::tuple arguments) {
  nb::object number = nb::steal(PyLong_FromUnsignedLongLong(key));
  PyObject* returned =
      PyObject_CallFunctionObjArgs(call_shim, function, number.ptr(), arguments.ptr(), nullptr);
  if (returned == nullptr) throw_python_error();
  return nb::steal(returned);
}

std::vector<data::Array> call_user(const SharedObject& function, std::vector<data::Array> inputs,
                                   uint64_t key) {
  const UserCall one_at_a_time;
  const HostLock lock;
  nb::list arguments;
  for (data::Array& input : inputs) arguments.append(nb::steal(to_numpy(std::move(input))));
  return arrays_from(call_through_shim(function.get(), key, nb::tuple(arguments)).ptr());
}

}  // namespace lamella::python
