// The dtype objects and their names.
#include "python/src/dtype_object.h"

#include <array>
#include <string>

#include "python/src/errors.h"

#include "lamella/base/error.h"

namespace nb = nanobind;

namespace lamella::python {

namespace {

struct DTypeObject {
  PyObject_HEAD DType dtype;
};

PyTypeObject* dtype_type = nullptr;
std::array<PyObject*, kDTypeCount> objects{};

DType dtype_of(PyObject* object) {
  return reinterpret_cast<DTypeObject*>(object)->dtype;
}

// "Float32", as programs print it.
PyObject* repr(PyObject* self) {
  std::string text(name(dtype_of(self)));
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  if (text == "Bfloat16") text = "BFloat16";
  if (text.starts_with("Uint")) text[1] = 'I';
  return PyUnicode_FromString(text.c_str());
}

Py_hash_t hash(PyObject* self) {
  return static_cast<Py_hash_t>(dtype_of(self)) + 1;
}

PyObject* get_name(PyObject* self, void*) {
  const std::string_view text = name(dtype_of(self));
  return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}
PyObject* get_itemsize(PyObject* self, void*) {
  return PyLong_FromLongLong(size_of(dtype_of(self)));
}

PyObject* from_name(PyObject*, PyObject* text) {
  return guarded([&] { return Py_NewRef(dtype_object(dtype_from(text))); });
}

// Copies and pickles give the same object back.
PyObject* reduce(PyObject* self, PyObject*) {
  nb::object module = nb::module_::import_("lamella._native");
  nb::object maker = module.attr("dtype_from_name");
  PyObject* text = get_name(self, nullptr);
  return Py_BuildValue("O(N)", maker.ptr(), text);
}

PyGetSetDef properties[] = {{"name", get_name, nullptr, "The name, as \"float32\".", nullptr},
                            {"itemsize", get_itemsize, nullptr, "Bytes an element.", nullptr},
                            {}};
PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr}, {}};

}  // namespace

PyObject* dtype_object(DType dtype) {
  return objects[static_cast<size_t>(dtype)];
}

bool is_dtype_object(PyObject* object) {
  return Py_TYPE(object) == dtype_type;
}

DType dtype_from(PyObject* object) {
  if (is_dtype_object(object)) return dtype_of(object);
  if (object == reinterpret_cast<PyObject*>(&PyFloat_Type)) return DType::Float32;
  if (object == reinterpret_cast<PyObject*>(&PyLong_Type)) return DType::Int64;
  if (object == reinterpret_cast<PyObject*>(&PyBool_Type)) return DType::Bool;
  nb::object text;
  if (PyUnicode_Check(object)) {
    text = nb::borrow(object);
  } else if (PyObject_HasAttrString(object, "dtype") || PyObject_HasAttrString(object, "name") ||
             PyType_Check(object)) {
    // NumPy's own dtypes and scalar types.
    nb::object numpy_dtype = nb::module_::import_("numpy").attr("dtype");
    PyObject* made = PyObject_CallOneArg(numpy_dtype.ptr(), object);
    if (made == nullptr) {
      PyErr_Clear();
    } else {
      text = nb::steal(made).attr("name");
    }
  }
  if (text.is_valid()) {
    std::string_view name(nb::borrow<nb::str>(text).c_str());
    std::string lower(name);
    for (char& letter : lower) {
      letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    }
    if (const std::optional<DType> found = dtype_from_name(lower)) return *found;
  }
  fail(ErrorKind::Type, "[dtype] {} is not a dtype", nb::repr(nb::handle(object)).c_str());
}

void add_dtypes(nb::module_& module) {
  static constexpr char kDoc[] =
      "The type of a tensor's elements: `name`, `itemsize`, equal to another or its name.";
  PyType_Slot slots[] = {{Py_tp_doc, const_cast<char*>(kDoc)},
                         {Py_tp_repr, reinterpret_cast<void*>(repr)},
                         {Py_tp_hash, reinterpret_cast<void*>(hash)},
                         {Py_tp_getset, properties},
                         {Py_tp_methods, methods},
                         {0, nullptr}};
  PyType_Spec spec = {"lamella._native.dtype", sizeof(DTypeObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  dtype_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (dtype_type == nullptr) throw_python_error();
  module.attr("dtype") = nb::handle(reinterpret_cast<PyObject*>(dtype_type));
  for (int i = 0; i < kDTypeCount; ++i) {
    auto* object = PyObject_New(DTypeObject, dtype_type);
    if (object == nullptr) throw_python_error();
    object->dtype = static_cast<DType>(i);
    objects[static_cast<size_t>(i)] = reinterpret_cast<PyObject*>(object);
    const std::string text(name(object->dtype));
    module.attr(text == "bool" ? "bool_" : text.c_str()) =
        nb::handle(objects[static_cast<size_t>(i)]);
  }
  static PyMethodDef maker = {"dtype_from_name", from_name, METH_O,
                              "The dtype that a name, a NumPy dtype or a Python type stands for."};
  module.attr("dtype_from_name") =
      nb::steal(PyCFunction_NewEx(&maker, nullptr, nb::str("lamella._native").ptr()));
}

}  // namespace lamella::python
