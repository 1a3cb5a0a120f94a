// The exchange goes through the buffer protocol, so that no version of NumPy is built in.
#include "python/src/array_exchange.h"

#include <cstring>

#include "python/src/dtype_object.h"
#include "python/src/errors.h"
#include "python/src/host_lock.h"
#include "python/src/source_location.h"
#include "python/src/tensor_object.h"

#include "lamella/ir/runtime_interface.h"
#include "lamella/ir/trace.h"
#include "lamella/ops/functions.h"

namespace nb = nanobind;

namespace lamella::python {

namespace {

// ---- Memory of a tensor as a Python buffer ----

struct ExportObject {
  PyObject_HEAD Buffer buffer;
  DType dtype;
  bool writable;
  int rank;
  Py_ssize_t sizes[kMaxRank];
  Py_ssize_t strides[kMaxRank];
};

PyTypeObject* export_type = nullptr;

const char* format_of(DType dtype) {
  switch (dtype) {
    case DType::Bool:
      return "?";
    case DType::Int8:
      return "b";
    case DType::UInt8:
      return "B";
    case DType::Int16:
      return "h";
    case DType::Int32:
      return "i";
    case DType::Int64:
      return "q";
    case DType::Float16:
      return "e";
    case DType::Float32:
      return "f";
    case DType::Float64:
      return "d";
    case DType::UInt16:
    case DType::BFloat16:
      return "H";  // the caller gives the bits their meaning
    case DType::UInt32:
      return "I";
    case DType::UInt64:
      return "Q";
    case DType::Complex64:
      return "Zf";
    case DType::Complex128:
      return "Zd";
  }
  return "B";
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  auto* object = reinterpret_cast<ExportObject*>(self);
  if ((flags & PyBUF_WRITABLE) != 0 && !object->writable) {
    PyErr_SetString(PyExc_BufferError, "this memory is read-only");
    return -1;
  }
  view->obj = Py_NewRef(self);
  view->buf = object->buffer.data();
  view->len = object->buffer.size;
  view->itemsize = size_of(object->dtype);
  view->readonly = object->writable ? 0 : 1;
  view->format = const_cast<char*>(format_of(object->dtype));
  view->ndim = object->rank;
  view->shape = object->sizes;
  view->strides = object->strides;
  view->suboffsets = nullptr;
  view->internal = nullptr;
  return 0;
}

void drop_export(PyObject* self) {
  auto* object = reinterpret_cast<ExportObject*>(self);
  if (object->buffer) object->buffer.unpin();
  object->buffer.~Buffer();
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

nb::object export_buffer(Buffer buffer, const TensorType& type, bool writable) {
  auto* object = reinterpret_cast<ExportObject*>(export_type->tp_alloc(export_type, 0));
  if (object == nullptr) throw_python_error();
  new (&object->buffer) Buffer(std::move(buffer));
  if (object->buffer) object->buffer.pin();
  object->dtype = type.dtype;
  object->writable = writable;
  object->rank = rank(type.shape);
  Py_ssize_t stride = size_of(type.dtype);
  for (int axis = object->rank - 1; axis >= 0; --axis) {
    const int64_t size = type.shape[static_cast<size_t>(axis)].value();
    object->sizes[axis] = size;
    object->strides[axis] = stride;
    stride *= std::max<int64_t>(size, 1);
  }
  return nb::steal(reinterpret_cast<PyObject*>(object));
}

// ---- NumPy's names, looked up once ----

PyObject* numpy(const char* attribute) {
  static PyObject* module = [] {
    PyObject* imported = PyImport_ImportModule("numpy");
    if (imported == nullptr) throw_python_error();
    return imported;
  }();
  PyObject* found = PyObject_GetAttrString(module, attribute);
  if (found == nullptr) throw_python_error();
  return found;
}

PyObject* numpy_asarray() {
  static PyObject* function = numpy("asarray");
  return function;
}

// ml_dtypes.bfloat16 as a NumPy dtype, if that package is installed.
PyObject* numpy_bfloat16() {
  static PyObject* dtype = []() -> PyObject* {
    nb::object module = nb::steal(PyImport_ImportModule("ml_dtypes"));
    if (!module.is_valid()) {
      PyErr_Clear();
      return nullptr;
    }
    nb::object scalar = module.attr("bfloat16");
    return PyObject_CallOneArg(nb::steal(numpy("dtype")).ptr(), scalar.ptr());
  }();
  return dtype;
}

// ---- To tensors ----

class BufferView {
 public:
  BufferView(PyObject* object, int flags) {
    if (PyObject_GetBuffer(object, &view_, flags) != 0) throw_python_error();
  }
  ~BufferView() { PyBuffer_Release(&view_); }
  BufferView(const BufferView&) = delete;
  Py_buffer* operator->() { return &view_; }
  Py_buffer* get() { return &view_; }

 private:
  Py_buffer view_{};
};

Shape shape_of(const Py_buffer& view) {
  if (view.ndim > kMaxRank) {
    fail(ErrorKind::Value, "[tensor] a tensor has at most {} axes, the array has {}", kMaxRank,
         view.ndim);
  }
  Shape shape;
  for (int axis = 0; axis < view.ndim; ++axis) shape.push_back(Dim(view.shape[axis]));
  return shape;
}

Tensor copy_from_buffer(PyObject* object, std::optional<DType> meaning) {
  BufferView view(object, PyBUF_STRIDED_RO | PyBUF_FORMAT);
  const std::optional<DType> dtype =
      meaning ? meaning : dtype_of_format(view->format, view->itemsize);
  if (!dtype) {
    fail(ErrorKind::Type,
         "[tensor] elements must be bools, numbers of at most 64 bits or tensors, got a list or an "
         "array of {}",
         *view->format == 'O' ? "other objects" : "NumPy's format " + std::string(view->format));
  }
  const Shape shape = shape_of(*view.get());
  // Looking for the line takes longer than copying a few elements.
  constexpr Py_ssize_t kWorthALine = 64 << 10;
  const TensorType type{*dtype, Layout::RowMajor, shape};
  const SourceLocation line = view->len < kWorthALine ? SourceLocation() : caller_location();
  Buffer buffer = runtime().allocate(view->len, {"tensor", line, type});
  if (view->len > 0 && PyBuffer_ToContiguous(buffer.data(), view.get(), view->len, 'C') != 0) {
    throw_python_error();
  }
  Ref<Value> value = Value::from_buffer(type, std::move(buffer));
  if (Tracer* tracer = Tracer::current()) tracer->constant(value);
  return Tensor(std::move(value));
}

bool is_numpy_array(PyObject* object) {
  static PyObject* type = numpy("ndarray");
  return PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(type)) != 0;
}
bool is_numpy_scalar(PyObject* object) {
  static PyObject* type = numpy("generic");
  return PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(type)) != 0;
}

Tensor from_array(PyObject* array) {
  nb::object dtype = nb::handle(array).attr("dtype");
  if (PyObject* bfloat16 = numpy_bfloat16();
      bfloat16 != nullptr && PyObject_RichCompareBool(dtype.ptr(), bfloat16, Py_EQ) == 1) {
    nb::object bits = nb::handle(array).attr("view")("uint16");
    return copy_from_buffer(bits.ptr(), DType::BFloat16);
  }
  return copy_from_buffer(in_native_order(nb::borrow(array)).ptr(), std::nullopt);
}

Tensor cast_to(Tensor tensor, std::optional<DType> dtype) {
  return dtype && *dtype != tensor.dtype() ? ops::cast(tensor, *dtype) : tensor;
}

// A number, converted by `convert` of Python's, which says by an error that it cannot hold it.
template <typename Convert>
auto converted(PyObject* number, DType dtype, Convert convert) {
  const auto value = convert(number);
  if (PyErr_Occurred()) {
    PyErr_Clear();
    fail(ErrorKind::Value, "[tensor] {} does not hold an int of {} bits{}", name(dtype),
         nb::cast<int64_t>(nb::handle(number).attr("bit_length")()),
         is_float(dtype) ? "" : "; a float dtype does, rounded");
  }
  return value;
}

Tensor number_as(PyObject* number, DType dtype) {
  if (is_float(dtype) || PyFloat_Check(number)) {
    return Tensor::scalar(dtype, converted(number, dtype, PyFloat_AsDouble));
  }
  int overflow = 0;
  PyLong_AsLongLongAndOverflow(number, &overflow);
  if (overflow > 0 && dtype == DType::UInt64) {
    const uint64_t bits = converted(number, dtype, PyLong_AsUnsignedLongLong);
    return Tensor(Value::scalar(dtype, bits));
  }
  return Tensor(Value::scalar_of(dtype, int64_t{converted(number, dtype, PyLong_AsLongLong)}));
}

}  // namespace

std::optional<DType> dtype_of_format(const char* format, Py_ssize_t item_size) {
  if (format == nullptr) return DType::UInt8;
  if (*format == '=' || *format == '@' || *format == '<') ++format;
  switch (*format) {
    case '?':
      return DType::Bool;
    case 'e':
      return DType::Float16;
    case 'f':
      return DType::Float32;
    case 'd':
      return DType::Float64;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
      return item_size == 1   ? DType::Int8
             : item_size == 2 ? DType::Int16
             : item_size == 4 ? DType::Int32
                              : DType::Int64;
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
      return item_size == 1   ? DType::UInt8
             : item_size == 2 ? DType::UInt16
             : item_size == 4 ? DType::UInt32
                              : DType::UInt64;
    case 'Z':
      if (format[1] == 'f') return DType::Complex64;
      if (format[1] == 'd') return DType::Complex128;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

nb::object in_native_order(nb::object array) {
  const nb::object dtype = array.attr("dtype");
  if (nb::cast<bool>(dtype.attr("isnative"))) return array;
  return array.attr("astype")(dtype.attr("newbyteorder")("="));
}

// Lists may hold tensors beside numbers and arrays.
nb::object as_numpy_array(PyObject* data) {
  PyObject* array = PyObject_CallOneArg(numpy_asarray(), data);
  if (array != nullptr) return nb::steal(array);
  // NumPy says: "The requested array has an inhomogeneous shape after 1 dimensions."
  nb::python_error error;
  if (std::string_view(error.what()).find("inhomogeneous") == std::string_view::npos) {
    throw nb::python_error(std::move(error));
  }
  fail(ErrorKind::Value,
       "[tensor] the items of a list must be of one shape, as rows of one length are");
}

PyObject* array_over(Buffer memory, const TensorType& type, bool writable) {
  nb::object exported = export_buffer(std::move(memory), type, writable);
  return as_numpy_array(exported.ptr()).release().ptr();
}

Tensor tensor_from(PyObject* data, std::optional<DType> dtype) {
  if (is_tensor(data)) return cast_to(tensor_of(data).snapshot(), dtype);
  if (PyBool_Check(data)) return number_as(data, dtype.value_or(DType::Bool));
  // Lists are watched by their items; the elements of an array may be written by anyone.
  if (is_numpy_array(data)) Tracer::cannot_repeat("it makes a tensor of a NumPy array");
  if (is_numpy_array(data) || is_numpy_scalar(data)) {
    return cast_to(from_array(is_numpy_array(data) ? data : as_numpy_array(data).ptr()), dtype);
  }
  if (PyFloat_Check(data)) return number_as(data, dtype.value_or(DType::Float32));
  if (PyLong_Check(data)) return number_as(data, dtype.value_or(DType::Int64));
  if (PyList_Check(data) || PyTuple_Check(data)) {
    nb::object array = as_numpy_array(data);
    const nb::object kind = array.attr("dtype").attr("char");
    const bool of_doubles = std::strcmp(nb::borrow<nb::str>(kind).c_str(), "d") == 0;
    Tensor tensor = from_array(array.ptr());
    if (!dtype && of_doubles) dtype = DType::Float32;  // a list of Python floats
    return cast_to(std::move(tensor), dtype);
  }
  Tracer::cannot_repeat("it makes a tensor of an array");
  if (PyObject_CheckBuffer(data) || PyObject_HasAttrString(data, "__array__")) {
    return cast_to(from_array(as_numpy_array(data).ptr()), dtype);
  }
  fail(ErrorKind::Type, "[tensor] expected a number, a list, a NumPy array or a Tensor, got {}",
       Py_TYPE(data)->tp_name);
}

Tensor tensor_over(PyObject* array) {
  auto view = std::make_unique<BufferView>(array, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT);
  const std::optional<DType> dtype = dtype_of_format((*view)->format, (*view)->itemsize);
  if (!dtype) {
    fail(ErrorKind::Type, "[from_numpy] elements of format '{}' cannot be held", (*view)->format);
  }
  const TensorType type{*dtype, Layout::RowMajor, shape_of(*view->get())};
  void* data = (*view)->buf;
  const int64_t size = (*view)->len;
  Buffer memory = wrap_external(data, size, [held = view.release()] {
    const HostLock lock;
    delete held;
  });
  memory.pin();  // for good: the array may be written as long as it lives
  return Tensor(Storage::over_shared(type, std::move(memory)));
}

PyObject* array_of(const Tensor& tensor) {
  TensorType type = tensor.type();
  Buffer buffer;
  bool writable = true;
  Tensor source = tensor;
  PyObject* bfloat16 = type.dtype == DType::BFloat16 ? numpy_bfloat16() : nullptr;
  if (type.dtype == DType::BFloat16 && bfloat16 == nullptr) {
    source = ops::cast(tensor, DType::Float32);
    type.dtype = DType::Float32;
  }
  {
    const HostReleased released;
    buffer = source.storage()->share();
    if (!buffer && type.layout != Layout::RowMajor) {
      buffer = source.data();
      writable = false;
    }
  }
  nb::object exported = export_buffer(std::move(buffer), type, writable);
  nb::object array = as_numpy_array(exported.ptr());
  if (bfloat16 != nullptr) array = array.attr("view")(nb::handle(bfloat16));
  return array.release().ptr();
}

void add_array_exchange(nb::module_& module) {
  PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(drop_export)},
                         {0, nullptr}};
  PyType_Spec spec = {"lamella._native.Export", sizeof(ExportObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  export_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (export_type == nullptr) throw_python_error();
  module.def(
      "tensor_over", [](nb::handle array) { return tensor_over(array.ptr()); }, nb::arg("array"),
      "A tensor that shares the memory of a writable C-contiguous array.");
}

}  // namespace lamella::python
