// Checking the conditions of a trace.
#include "python/src/jit_guard.h"

#include <algorithm>
#include <array>
#include <bit>

#include "python/src/tensor_object.h"

#include "lamella/base/error.h"

namespace nb = nanobind;

namespace lamella::python {

namespace {

bool is_static_constant(PyObject* object, int deepest) {
  if (object == Py_None || object == Py_Ellipsis || PyBool_Check(object) ||
      PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyUnicode_CheckExact(object) ||
      PyBytes_CheckExact(object)) {
    return true;
  }
  if (!PyTuple_CheckExact(object) || deepest == 0) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) {
    if (!is_static_constant(PyTuple_GET_ITEM(object, i), deepest - 1)) return false;
  }
  return true;
}

}  // namespace

bool is_static_constant(PyObject* object) {
  return is_static_constant(object, 100);
}

bool same_constant(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (a == nullptr || b == nullptr || Py_TYPE(a) != Py_TYPE(b) || !is_static_constant(a)) {
    return false;
  }
  if (PyFloat_CheckExact(a)) {
    return std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(a)) ==
           std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(b));
  }
  if (PyTuple_CheckExact(a)) return same_items(a, b);
  const int equal = PyObject_RichCompareBool(a, b, Py_EQ);
  if (equal < 0) PyErr_Clear();
  return equal == 1;
}

bool same_items(PyObject* a, PyObject* b) {
  if (PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); ++i) {
    if (!same_constant(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
  }
  return true;
}

namespace {

bool attribute_is(PyObject* holder, PyObject* key, PyObject* expected) {
  PyObject* found = PyObject_GetAttr(holder, key);
  if (found == nullptr) PyErr_Clear();
  const bool same = same_constant(found, expected);
  Py_XDECREF(found);
  return same;
}

// Not by an `__iter__` of the user's, which may do anything.
PyObject* iterator_of(PyObject* holder) {
  if (PyODict_Check(holder)) return PyODict_Type.tp_iter(holder);
  return PyDict_Check(holder) ? PyDict_Type.tp_iter(holder) : PySet_Type.tp_iter(holder);
}

bool elements_are(PyObject* holder, PyObject* expected) {
  PyObject* iterator = iterator_of(holder);
  PyObject* found = iterator != nullptr ? PySequence_Tuple(iterator) : nullptr;
  if (found == nullptr) PyErr_Clear();
  const bool same = found != nullptr && same_items(found, expected);
  Py_XDECREF(found);
  Py_XDECREF(iterator);
  return same;
}

int64_t storage_number(PyObject* tensor) {
  return reinterpret_cast<int64_t>(tensor_of(tensor).storage().get());
}

constexpr std::string_view kElements = "elements", kStorage = "storage";

// A null `expected` says that there is nothing.
constexpr std::array<GuardKind, 12> kKinds = {{
    // Dictionary `holder` has `expected` under `key`.
    {"item",
     [](const Guard& g) { return same_constant(PyDict_GetItem(g.holder, g.key), g.expected); }},
    // Closure cell `holder` holds `expected`.
    {"cell", [](const Guard& g) { return same_constant(PyCell_GET(g.holder), g.expected); }},
    // `expected` is the type of `holder`.
    {"type",
     [](const Guard& g) { return reinterpret_cast<PyObject*>(Py_TYPE(g.holder)) == g.expected; }},
    // Looking `key` up in type `holder` gives `expected`.
    {"type item",
     [](const Guard& g) {
       auto* type = reinterpret_cast<PyTypeObject*>(g.holder);
       return same_constant(_PyType_Lookup(type, g.key), g.expected);
     }},
    // Reading attribute `key` of `holder` gives `expected`.
    {"attribute", [](const Guard& g) { return attribute_is(g.holder, g.key, g.expected); }},
    // List `holder` has `number` items.
    {"length", [](const Guard& g) { return PyList_GET_SIZE(g.holder) == g.number; }},
    // Item `number` of list `holder` is `expected`.
    {"list item",
     [](const Guard& g) {
       return g.number < PyList_GET_SIZE(g.holder) &&
              same_constant(PyList_GET_ITEM(g.holder, g.number), g.expected);
     }},
    // Set or dictionary `holder` has the elements or keys of the tuple `expected`, in that order.
    {kElements, [](const Guard& g) { return elements_are(g.holder, g.expected); }},
    // Function `holder` has the defaults `expected`, of parameters given by keyword, the code.
    {"defaults",
     [](const Guard& g) { return same_constant(PyFunction_GET_DEFAULTS(g.holder), g.expected); }},
    {"keywords", [](const Guard& g) { return PyFunction_GET_KW_DEFAULTS(g.holder) == g.expected; }},
    {"code", [](const Guard& g) { return PyFunction_GET_CODE(g.holder) == g.expected; }},
    // Tensor `holder` is a handle of the storage `number`.
    {kStorage, [](const Guard& g) { return storage_number(g.holder) == g.number; }},
}};

const GuardKind& kind_named(std::string_view name) {
  const auto found = std::ranges::find(kKinds, name, &GuardKind::name);
  if (found == kKinds.end()) fail(ErrorKind::Internal, "[jit] no guard is called {}", name);
  return *found;
}

}  // namespace

bool defined_in_python(PyTypeObject* type) {
  // Classes made by a class statement share one function that ends their objects.
  static PyObject* const known =
      nb::module_::import_("lamella._guards").attr("Guards").inc_ref().ptr();
  return type->tp_dealloc == reinterpret_cast<PyTypeObject*>(known)->tp_dealloc;
}

const Storage* Guard::storage() const {
  return kind->name == kStorage ? tensor_of(holder).storage().get() : nullptr;
}

bool operator==(const Guard& a, const Guard& b) {
  const bool same_key = a.key == b.key || same_constant(a.key, b.key);
  const bool same_expected =
      a.kind == b.kind && (same_constant(a.expected, b.expected) ||
                           (a.kind->name == kElements && same_items(a.expected, b.expected)));
  return same_expected && a.holder == b.holder && same_key && a.number == b.number;
}

Guard guard_from(nb::handle row) {
  const auto object = [&](size_t index) -> PyObject* { return nb::object(row[index]).ptr(); };
  Guard guard{.kind = &kind_named(nb::borrow<nb::str>(row[0]).c_str()),
              .holder = object(1),
              .key = object(2),
              .expected = object(3),
              .number = nb::cast<int64_t>(row[4])};
  static PyObject* const missing =
      nb::module_::import_("lamella._guards").attr("MISSING").inc_ref().ptr();
  if (guard.expected == missing) guard.expected = nullptr;
  if (guard.storage() != nullptr) guard.number = storage_number(guard.holder);
  return guard;
}

}  // namespace lamella::python
