// Python's index objects as those of lamella/ops/index.h.
#include "python/src/indexing.h"

#include "python/src/arguments.h"
#include "python/src/array_exchange.h"
#include "python/src/errors.h"
#include "python/src/source_location.h"
#include "python/src/tensor_object.h"
#include <nanobind/stl/string.h>

#include "lamella/ops/functions.h"
#include "lamella/ops/index.h"

namespace nb = nanobind;

namespace lamella::python {

namespace {

int64_t to_integer(PyObject* object) {
  nb::object index = nb::steal(PyNumber_Index(object));
  if (!index.is_valid()) throw_python_error();
  const long long value = PyLong_AsLongLong(index.ptr());
  if (value == -1 && PyErr_Occurred()) throw_python_error();
  return value;
}

std::optional<int64_t> bound(PyObject* object) {
  if (object == Py_None) return std::nullopt;
  return to_integer(object);
}

Index to_index(PyObject* key) {
  if (PyLong_CheckExact(key)) return Index(to_integer(key));
  if (PySlice_Check(key)) {
    const auto* slice = reinterpret_cast<PySliceObject*>(key);
    return Index(Slice{bound(slice->start), bound(slice->stop), bound(slice->step)});
  }
  if (key == Py_Ellipsis) return Index::ellipsis();
  if (key == Py_None) return Index::new_axis();
  if (is_tensor(key)) return Index(tensor_of(key));
  if (PyBool_Check(key) || PyList_Check(key) || PyTuple_Check(key) || PyObject_CheckBuffer(key)) {
    if (PyIndex_Check(key) && !PyBool_Check(key) && !PyObject_HasAttrString(key, "__len__")) {
      return Index(to_integer(key));  // NumPy's integers
    }
    Tensor positions = tensor_from(key, std::nullopt);
    if (is_float(positions.dtype()) && element_count(positions.shape()).is(0)) {
      positions = ops::cast(positions, DType::Int64);  // an empty list
    }
    return Index(positions);
  }
  if (PyIndex_Check(key)) return Index(to_integer(key));
  fail(ErrorKind::Index,
       "[index] an index is an integer, a slice, None, ... or a tensor or list of integers or "
       "bools, got {}",
       Py_TYPE(key)->tp_name);
}

std::vector<Index> to_indices(PyObject* key) {
  std::vector<Index> indices;
  if (PyTuple_Check(key)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i) {
      indices.push_back(to_index(PyTuple_GET_ITEM(key, i)));
    }
  } else {
    indices.push_back(to_index(key));
  }
  return indices;
}

PyObject* get(PyObject* self, PyObject* key) {
  return guarded([&] {
    Operand x(tensor_of(self));
    x.set_location(caller_location());
    return wrap(ops::index(x, to_indices(key)));
  });
}

int set(PyObject* self, PyObject* key, PyObject* value) {
  return guarded(-1, [&] {
    if (value == nullptr) {
      fail(ErrorKind::Type, "[index] elements of a tensor cannot be deleted");
    }
    const SourceLocation location = caller_location();
    Operand x(tensor_of(self)), part;
    x.set_location(location);
    if (!to_operand(value, location, part)) {
      fail(ErrorKind::Type, "[index] a tensor or a number is expected, got {}",
           Py_TYPE(value)->tp_name);
    }
    tensor_of(self).assign(ops::index_update(x, to_indices(key), part));
    return 0;
  });
}

ops::Update update_from(const std::string& mode) {
  static constexpr std::array modes = {"set", "add", "mul", "min", "max"};
  const auto found = std::find(modes.begin(), modes.end(), mode);
  if (found == modes.end()) {
    fail(ErrorKind::Value, "[index] mode must be 'set', 'add', 'mul', 'min' or 'max', got '{}'",
         mode);
  }
  return static_cast<ops::Update>(found - modes.begin());
}

}  // namespace

void add_indexing(nb::module_& module) {
  module.def(
      "index_update",
      [](nb::handle x, nb::handle key, nb::handle value, const std::string& mode) {
        const SourceLocation location = caller_location();
        Operand whole, part;
        if (!to_operand(x.ptr(), location, whole) || !whole.is_tensor() ||
            !to_operand(value.ptr(), location, part)) {
          fail(ErrorKind::Type,
               "[index] a tensor and a tensor or number are expected, got {} and {}",
               Py_TYPE(x.ptr())->tp_name, Py_TYPE(value.ptr())->tp_name);
        }
        return ops::index_update(whole, to_indices(key.ptr()), part, update_from(mode));
      },
      nb::arg("x"), nb::arg("key").none(), nb::arg("value"), nb::arg("mode"),
      "x with the elements x[key] combined with value; repeated places count each time.");
}

void append_indexing_slots(std::vector<PyType_Slot>& slots) {
  slots.push_back({Py_mp_subscript, reinterpret_cast<void*>(get)});
  slots.push_back({Py_mp_ass_subscript, reinterpret_cast<void*>(set)});
}

}  // namespace lamella::python
