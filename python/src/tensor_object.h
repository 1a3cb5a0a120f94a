// The Python object around a Tensor: a plain extension type, because making and dropping one must
// cost no more than an allocation.
#pragma once

#include <nanobind/nanobind.h>

#include "lamella/ir/recorder.h"
#include "lamella/ir/tensor.h"

namespace lamella::python {

struct TensorObject {
  PyObject_HEAD PyObject* weak_references;
  Tensor tensor;
};

extern PyTypeObject* tensor_type;

inline bool is_tensor(PyObject* object) {
  return Py_TYPE(object) == tensor_type || PyType_IsSubtype(Py_TYPE(object), tensor_type) != 0;
}
inline Tensor& tensor_of(PyObject* object) {
  return reinterpret_cast<TensorObject*>(object)->tensor;
}

// A new reference to a new Python object; null with an exception set if there is no memory.
PyObject* wrap(Tensor tensor);
PyObject* wrap(const Results& results);
// The same in an object of a subclass.
PyObject* wrap_as(PyTypeObject* type, Tensor tensor);

void add_tensor_type(nanobind::module_& module);

}  // namespace lamella::python

namespace nanobind::detail {

template <>
struct type_caster<lamella::Tensor> {
  NB_TYPE_CASTER(lamella::Tensor, const_name("Tensor"))

  bool from_python(handle source, uint8_t, cleanup_list*) {
    if (!lamella::python::is_tensor(source.ptr())) return false;
    value = lamella::python::tensor_of(source.ptr());
    return true;
  }
  static handle from_cpp(const lamella::Tensor& tensor, rv_policy, cleanup_list*) {
    return lamella::python::wrap(tensor);
  }
};

}  // namespace nanobind::detail
