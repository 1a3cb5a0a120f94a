// Conversion of rows.
#include "python/src/dataset_arrays.h"

#include <cstring>

#include "python/src/array_exchange.h"
#include "python/src/dtype_object.h"
#include "python/src/errors.h"
#include "python/src/host_lock.h"
#include "python/src/tensor_object.h"
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "lamella/ir/runtime_interface.h"

namespace nb = nanobind;

namespace lamella::python {

namespace {

Buffer exclusive_memory(data::Array array) {
  const auto size = static_cast<int64_t>(array.bytes());
  if (array.exclusive() && size > 0) {
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

namespace {

// Strings as UTF-8, which NumPy encodes to equal lengths.
data::Array text_from(nb::object strings) {
  nb::module_ numpy = nb::module_::import_("numpy");
  if (nb::cast<std::string>(strings.attr("dtype").attr("kind")) == "U") {
    strings = numpy.attr("char").attr("encode")(strings, "utf-8");
  }
  nb::object width = strings.attr("dtype").attr("itemsize");
  nb::object bytes =
      numpy.attr("frombuffer")(numpy.attr("ascontiguousarray")(strings).attr("tobytes")(), "uint8");
  nb::list sizes;
  for (nb::handle size : strings.attr("shape")) sizes.append(size);
  sizes.append(width);
  return array_from(nb::object(bytes.attr("reshape")(nb::tuple(sizes))).ptr()).as_text();
}

PyObject* text_to_numpy(const data::Array& text) {
  nb::list strings;
  const auto width = static_cast<size_t>(text.sizes().back());
  const auto* from = reinterpret_cast<const char*>(text.data());
  Axes sizes = text.sizes();
  sizes.pop_back();
  const int64_t count = data::element_count(sizes);
  for (int64_t i = 0; i < count; ++i, from += width) {
    const std::string_view all(from, width);
    const size_t last = all.find_last_not_of('\0');
    const auto length = static_cast<Py_ssize_t>(last == std::string_view::npos ? 0 : last + 1);
    PyObject* string = PyUnicode_DecodeUTF8(from, length, nullptr);
    if (string == nullptr) throw_python_error();
    strings.append(nb::steal(string));
  }
  nb::list shape;
  for (int64_t size : sizes) shape.append(size);
  nb::module_ numpy = nb::module_::import_("numpy");
  return numpy.attr("array")(strings, numpy.attr("str_"))
      .attr("reshape")(nb::tuple(shape))
      .release()
      .ptr();
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
  const auto kind = nb::cast<std::string>(made.attr("dtype").attr("kind"));
  if (kind == "U" || kind == "S") return text_from(std::move(made));
  const auto refuse = [&] {
    fail(ErrorKind::Type, "[dataset] a column holds numbers, bools or strings, got {}",
         nb::repr(made.attr("dtype")).c_str());
  };
  if (kind == "M" || kind == "m" || kind == "O") refuse();
  made = in_native_order(std::move(made));
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
  Py_buffer* const held = view.release();
  std::shared_ptr<const void> owner(held->buf, [held](const void*) {
    const HostLock lock;
    PyBuffer_Release(held);
    delete held;
  });
  if (!dtype) refuse();
  const auto axes = static_cast<size_t>(PyObject_Size(made.attr("shape").ptr()));
  if (sizes.size() != axes) {
    fail(ErrorKind::Type, "[dataset] a column has at most {} axes, got {}", kMaxRank, axes);
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

nb::tuple arrays_to_python(std::vector<data::Array> arrays) {
  nb::list made;
  for (data::Array& array : arrays) made.append(nb::steal(to_numpy(std::move(array))));
  return nb::tuple(made);
}

std::vector<int64_t> numbers_from_python(PyObject* numbers) {
  return nb::cast<std::vector<int64_t>>(nb::handle(numbers));
}

nb::tuple numbers_to_python(const std::vector<int64_t>& numbers) {
  nb::list made;
  for (int64_t number : numbers) made.append(number);
  return nb::tuple(made);
}

PyObject* to_numpy(data::Array array) {
  if (array.type().is_text) return text_to_numpy(array);
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

}  // namespace lamella::python
