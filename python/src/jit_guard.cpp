// Checking the conditions of a trace.
#include "python/src/jit_guard.h"

#include <array>
#include <cstring>
#include <string_view>

#include "python/src/tensor_object.h"

namespace nb = nanobind;

namespace lamella::python {

bool is_static_constant(PyObject* object) {
  if (object == Py_None || object == Py_Ellipsis || PyBool_Check(object) ||
      PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyUnicode_CheckExact(object) ||
      PyBytes_CheckExact(object)) {
    return true;
  }
  if (!PyTuple_CheckExact(object)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) {
    if (!is_static_constant(PyTuple_GET_ITEM(object, i))) return false;
  }
  return true;
}

bool same_constant(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (a == nullptr || b == nullptr || Py_TYPE(a) != Py_TYPE(b) || !is_static_constant(a)) {
    return false;
  }
  if (PyFloat_CheckExact(a)) {
    const double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
    return std::memcmp(&x, &y, sizeof x) == 0;
  }
  if (PyTuple_CheckExact(a)) {
    if (PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b)) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); ++i) {
      if (!same_constant(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
    }
    return true;
  }
  const int equal = PyObject_RichCompareBool(a, b, Py_EQ);
  if (equal < 0) PyErr_Clear();
  return equal == 1;
}

namespace {

int64_t length_of(PyObject* holder) {
  if (PyList_Check(holder)) return PyList_GET_SIZE(holder);
  return PyDict_Check(holder) ? PyDict_GET_SIZE(holder) : -1;
}

bool attribute_is(PyObject* holder, PyObject* key, PyObject* expected) {
  PyObject* found = PyObject_GetAttr(holder, key);
  if (found == nullptr) PyErr_Clear();
  const bool same = same_constant(found, expected);
  Py_XDECREF(found);
  return same;
}

bool equal(PyObject* a, PyObject* b) {
  const int result = PyObject_RichCompareBool(a, b, Py_EQ);
  if (result < 0) PyErr_Clear();
  return result == 1;
}

}  // namespace

bool Guard::holds() const {
  switch (kind) {
    case Kind::Item:
      return same_constant(PyDict_GetItem(holder, key), expected);
    case Kind::Cell:
      return same_constant(PyCell_GET(holder), expected);
    case Kind::Type:
      return reinterpret_cast<PyObject*>(Py_TYPE(holder)) == expected;
    case Kind::TypeItem:
      return same_constant(_PyType_Lookup(reinterpret_cast<PyTypeObject*>(holder), key), expected);
    case Kind::Attribute:
      return attribute_is(holder, key, expected);
    case Kind::Length:
      return length_of(holder) == number;
    case Kind::ListItem:
      return number < PyList_GET_SIZE(holder) &&
             same_constant(PyList_GET_ITEM(holder, number), expected);
    case Kind::Equal:
      return equal(holder, expected);
    case Kind::Defaults:
      return same_constant(PyFunction_GET_DEFAULTS(holder), expected);
    case Kind::Keywords:
      return PyFunction_GET_KW_DEFAULTS(holder) == expected;
    case Kind::Code:
      return PyFunction_GET_CODE(holder) == expected;
    case Kind::Storage:
      return reinterpret_cast<int64_t>(tensor_of(holder).storage().get()) == number;
  }
  return false;
}

bool operator==(const Guard& a, const Guard& b) {
  const bool same_key = a.key == b.key || same_constant(a.key, b.key);
  const bool same_expected = same_constant(a.expected, b.expected) ||
                             (a.kind == Guard::Kind::Equal && equal(a.expected, b.expected));
  return a.kind == b.kind && a.holder == b.holder && same_key && same_expected &&
         a.number == b.number;
}

Guard guard_from(nb::handle row) {
  constexpr std::array<std::string_view, 12> kNames = {
      "item",      "cell",  "type",     "type item", "attribute", "length",
      "list item", "equal", "defaults", "keywords",  "code",      "storage"};
  const std::string_view name = nb::borrow<nb::str>(row[0]).c_str();
  Guard guard{};
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) guard.kind = static_cast<Guard::Kind>(i);
  }
  const auto object = [&](size_t index) -> PyObject* { return nb::object(row[index]).ptr(); };
  guard.holder = object(1);
  guard.key = object(2);
  guard.expected = object(3);
  guard.number = nb::cast<int64_t>(row[4]);
  static PyObject* const missing =
      nb::module_::import_("lamella._tracing").attr("MISSING").inc_ref().ptr();
  if (guard.expected == missing) guard.expected = nullptr;
  if (guard.kind == Guard::Kind::Storage) {
    guard.number = reinterpret_cast<int64_t>(tensor_of(guard.holder).storage().get());
  }
  return guard;
}

}  // namespace lamella::python
