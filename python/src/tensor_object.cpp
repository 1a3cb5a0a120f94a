// The Tensor type: its life, its properties and its conversions to Python values.
#include "python/src/tensor_object.h"

#include <cstddef>
#include <cstring>

#include "python/src/array_exchange.h"
#include "python/src/dtype_object.h"
#include "python/src/errors.h"
#include "python/src/host_lock.h"
#include "python/src/indexing.h"
#include "python/src/tensor_arithmetic.h"

#include "lamella/ir/runtime_interface.h"
#include "lamella/ir/trace.h"
#include "lamella/types/half.h"

// After Python.h:
#include <structmember.h>

namespace nb = nanobind;

namespace lamella::python {

PyTypeObject* tensor_type = nullptr;

namespace {

// Makes a tensor of the forms that NumPy arrays and numbers do not cover; set by the package.
PyObject* initializer_hook = nullptr;

PyObject* make(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"input_data", "dtype",  "shape", "init",
                                "const_arg",  "device", nullptr};
  PyObject *data = Py_None, *dtype = Py_None, *shape = Py_None, *init = Py_None, *rest = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOOOOO:Tensor", const_cast<char**>(names), &data,
                                   &dtype, &shape, &init, &rest, &rest)) {
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    if (data == Py_None) {
      if (initializer_hook == nullptr) fail(ErrorKind::Type, "[Tensor] input_data is missing");
      PyObject* made = PyObject_CallFunctionObjArgs(initializer_hook, shape, dtype, init, nullptr);
      if (made == nullptr) return nullptr;
      nb::object owned = nb::steal(made);
      return wrap_as(type, tensor_of(made));
    }
    std::optional<DType> wanted;
    if (dtype != Py_None) wanted = dtype_from(dtype);
    return wrap_as(type, tensor_from(data, wanted));
  });
}

void destroy(PyObject* self) {
  auto* object = reinterpret_cast<TensorObject*>(self);
  if (object->weak_references != nullptr) PyObject_ClearWeakRefs(self);
  object->tensor.~Tensor();
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

Py_hash_t hash(PyObject* self) {
  return static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(self) >> 4);
}

// ---- The one element as a Python number ----

nb::object element(const void* data, DType dtype) {
  const auto read = [&]<typename T>(T value) {
    std::memcpy(&value, data, sizeof(T));
    return value;
  };
  switch (dtype) {
    case DType::Bool:
      return nb::bool_(read(uint8_t{}) != 0);
    case DType::Int8:
      return nb::int_(read(int8_t{}));
    case DType::UInt8:
      return nb::int_(read(uint8_t{}));
    case DType::Int16:
      return nb::int_(read(int16_t{}));
    case DType::Int32:
      return nb::int_(read(int32_t{}));
    case DType::Int64:
      return nb::int_(read(int64_t{}));
    case DType::UInt16:
      return nb::int_(read(uint16_t{}));
    case DType::UInt32:
      return nb::int_(read(uint32_t{}));
    case DType::UInt64:
      return nb::int_(read(uint64_t{}));
    case DType::Complex64:
    case DType::Complex128:
      fail(ErrorKind::Type, "[item] complex elements are not supported");
    default: {
      uint64_t bits = 0;
      std::memcpy(&bits, data, static_cast<size_t>(size_of(dtype)));
      return nb::float_(double_from_scalar_bits(dtype, bits));
    }
  }
}

nb::object only_element(const Tensor& tensor, const char* asked) {
  if (!element_count(tensor.shape()).is(1)) {
    fail(ErrorKind::Value, "[{}] only a tensor of one element is a number, this one has shape {}",
         asked, text(tensor.shape()));
  }
  const Ref<Value>& value = tensor.value();
  if (value->is_number()) {
    const uint64_t bits = value->scalar_bits();
    return element(&bits, tensor.dtype());
  }
  Buffer data;
  {
    const HostReleased released;
    data = tensor.data();
  }
  return element(data.data(), tensor.dtype());
}

int truth(PyObject* self) {
  return guarded(-1, [&] { return PyObject_IsTrue(only_element(tensor_of(self), "bool").ptr()); });
}
PyObject* as_float(PyObject* self) {
  return guarded([&] { return PyNumber_Float(only_element(tensor_of(self), "float").ptr()); });
}
PyObject* as_int(PyObject* self) {
  return guarded([&] { return PyNumber_Long(only_element(tensor_of(self), "int").ptr()); });
}
PyObject* as_index(PyObject* self) {
  return guarded([&]() -> PyObject* {
    const Tensor& tensor = tensor_of(self);
    if (is_float(tensor.dtype())) {
      fail(ErrorKind::Type, "[index] only integer tensors can be used as an index, got {}",
           text(tensor.type()));
    }
    return PyNumber_Index(only_element(tensor, "index").ptr());
  });
}
Py_ssize_t length(PyObject* self) {
  return guarded(Py_ssize_t{-1}, [&]() -> Py_ssize_t {
    const Shape& shape = tensor_of(self).shape();
    if (shape.empty()) fail(ErrorKind::Type, "[len] a tensor of rank 0 has no length");
    return shape[0].value();
  });
}

// ---- Properties and methods ----

PyObject* get_shape(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    const Shape& shape = tensor_of(self).shape();
    PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(shape.size()));
    if (tuple == nullptr) return nullptr;
    for (size_t i = 0; i < shape.size(); ++i) {
      PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(shape[i].value()));
    }
    return tuple;
  });
}
PyObject* get_dtype(PyObject* self, void*) {
  return guarded([&] { return Py_NewRef(dtype_object(tensor_of(self).dtype())); });
}
PyObject* get_rank(PyObject* self, void*) {
  return guarded([&] { return PyLong_FromLong(tensor_of(self).rank()); });
}
PyObject* get_size(PyObject* self, void*) {
  return guarded(
      [&] { return PyLong_FromLongLong(element_count(tensor_of(self).shape()).value()); });
}
PyObject* get_item_size(PyObject* self, void*) {
  return guarded([&] { return PyLong_FromLongLong(size_of(tensor_of(self).dtype())); });
}
PyObject* get_byte_count(PyObject* self, void*) {
  return guarded([&] {
    const Tensor& tensor = tensor_of(self);
    return PyLong_FromLongLong(element_count(tensor.shape()).value() * size_of(tensor.dtype()));
  });
}

PyObject* as_numpy(PyObject* self, PyObject*) {
  return guarded([&] { return array_of(tensor_of(self)); });
}

PyObject* item(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count == 0) return only_element(tensor_of(self), "item").release().ptr();
    nb::object array = nb::steal(array_of(tensor_of(self)));
    nb::object method = array.attr("item");
    return PyObject_Vectorcall(method.ptr(), arguments, static_cast<size_t>(count), nullptr);
  });
}

PyObject* wait(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    {
      const HostReleased released;
      tensor_of(self).wait();
    }
    return Py_NewRef(self);
  });
}

PyObject* assign_value(PyObject* self, PyObject* value) {
  return guarded([&]() -> PyObject* {
    const Tensor& target = tensor_of(self);
    target.assign(is_tensor(value) ? tensor_of(value) : tensor_from(value, target.dtype()));
    return Py_NewRef(self);
  });
}

PyObject* set_data(PyObject* self, PyObject* value) {
  return guarded([&]() -> PyObject* {
    if (!is_tensor(value)) fail(ErrorKind::Type, "[set_data] a Tensor is expected");
    Tracer::cannot_repeat("it binds a tensor to other data");
    tensor_of(self) = tensor_of(value);
    Py_RETURN_NONE;
  });
}

PyObject* shares_storage(PyObject* self, PyObject* other) {
  return PyBool_FromLong(is_tensor(other) &&
                         tensor_of(self).storage() == tensor_of(other).storage());
}

// A tensor of this class with the same Storage: how subclasses are made from results.
PyObject* from_tensor(PyObject* type, PyObject* tensor) {
  return guarded([&]() -> PyObject* {
    if (!is_tensor(tensor)) fail(ErrorKind::Type, "[Tensor] a Tensor is expected");
    return wrap_as(reinterpret_cast<PyTypeObject*>(type), tensor_of(tensor));
  });
}

// "Tensor(shape=[2], dtype=Float32, value= [1., 2.])", written by NumPy.
PyObject* repr(PyObject* self) {
  return guarded([&]() -> PyObject* {
    nb::object array = nb::steal(array_of(tensor_of(self)));
    nb::object text = nb::module_::import_("numpy").attr("array2string")(
        array, nb::arg("separator") = ", ", nb::arg("prefix") = "");
    std::string sizes;
    for (Dim size : tensor_of(self).shape()) {
      sizes += (sizes.empty() ? "" : ", ") + std::to_string(size.value());
    }
    const char* gap = tensor_of(self).rank() > 1 ? "\n" : " ";
    return PyUnicode_FromFormat("Tensor(shape=[%s], dtype=%S, value=%s%S)", sizes.c_str(),
                                dtype_object(tensor_of(self).dtype()), gap, text.ptr());
  });
}
PyObject* to_text(PyObject* self) {
  return guarded([&] { return PyObject_Str(nb::steal(array_of(tensor_of(self))).ptr()); });
}

template <typename Function>
PyCFunction method(Function* function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef methods[] = {
    {"asnumpy", as_numpy, METH_NOARGS, "A NumPy array over the same memory."},
    {"numpy", as_numpy, METH_NOARGS, "A NumPy array over the same memory."},
    {"item", method(item), METH_FASTCALL, "One element as a Python number."},
    {"wait", wait, METH_NOARGS, "Runs what is pending for this tensor."},
    {"assign_value", assign_value, METH_O, "Writes a value of the same dtype and shape."},
    {"_bind_storage", set_data, METH_O, "Makes this object a handle of another tensor."},
    {"_shares_storage", shares_storage, METH_O, "Whether both are handles of one tensor."},
    {"_from_tensor", from_tensor, METH_O | METH_CLASS, "A handle of a tensor, of this class."},
    {}};

PyGetSetDef properties[] = {{"shape", get_shape, nullptr, "The sizes of the axes.", nullptr},
                            {"dtype", get_dtype, nullptr, "The type of the elements.", nullptr},
                            {"ndim", get_rank, nullptr, "The number of axes.", nullptr},
                            {"size", get_size, nullptr, "The number of elements.", nullptr},
                            {"itemsize", get_item_size, nullptr, "Bytes an element.", nullptr},
                            {"nbytes", get_byte_count, nullptr, "Bytes of all elements.", nullptr},
                            {}};

PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TensorObject, weak_references), READONLY, nullptr},
    {}};

}  // namespace

PyObject* wrap_as(PyTypeObject* type, Tensor tensor) {
  auto* object = reinterpret_cast<TensorObject*>(type->tp_alloc(type, 0));
  if (object == nullptr) return nullptr;
  new (&object->tensor) Tensor(std::move(tensor));
  return reinterpret_cast<PyObject*>(object);
}

PyObject* wrap(Tensor tensor) {
  return wrap_as(tensor_type, std::move(tensor));
}

PyObject* wrap(const Results& results) {
  if (results.size() == 1) return wrap(Tensor(results[0]));
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(results.size()));
  if (tuple == nullptr) return nullptr;
  for (size_t i = 0; i < results.size(); ++i) {
    PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), wrap(Tensor(results[i])));
  }
  return tuple;
}

void add_tensor_type(nb::module_& module) {
  static constexpr char kDoc[] =
      "An array of numbers of one dtype: Tensor(data, dtype=None), of Python numbers, lists, "
      "arrays\n"
      "or tensors. A float becomes float32, an int int64; an array keeps its dtype. Nothing is\n"
      "computed before a value is needed.";
  std::vector<PyType_Slot> slots = {{Py_tp_new, reinterpret_cast<void*>(make)},
                                    {Py_tp_doc, const_cast<char*>(kDoc)},
                                    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                                    {Py_tp_hash, reinterpret_cast<void*>(hash)},
                                    {Py_tp_repr, reinterpret_cast<void*>(repr)},
                                    {Py_tp_str, reinterpret_cast<void*>(to_text)},
                                    {Py_tp_methods, methods},
                                    {Py_tp_getset, properties},
                                    {Py_tp_members, members},
                                    {Py_nb_bool, reinterpret_cast<void*>(truth)},
                                    {Py_nb_float, reinterpret_cast<void*>(as_float)},
                                    {Py_nb_int, reinterpret_cast<void*>(as_int)},
                                    {Py_nb_index, reinterpret_cast<void*>(as_index)},
                                    {Py_mp_length, reinterpret_cast<void*>(length)}};
  append_arithmetic_slots(slots);
  append_indexing_slots(slots);
  slots.push_back({0, nullptr});
  PyType_Spec spec = {"lamella._native.Tensor", sizeof(TensorObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots.data()};
  tensor_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (tensor_type == nullptr) throw_python_error();
  nb::object type = nb::borrow(reinterpret_cast<PyObject*>(tensor_type));
  // NumPy leaves operators between its arrays and tensors to the tensor.
  type.attr("__array_ufunc__") = nb::none();
  type.attr("__array_priority__") = 100.0;
  module.attr("Tensor") = type;
  module.def(
      "set_initializer_hook", [](nb::object hook) { initializer_hook = hook.release().ptr(); },
      nb::arg("hook"), "Says who makes Tensor(shape=, dtype=, init=).");
}

}  // namespace lamella::python
