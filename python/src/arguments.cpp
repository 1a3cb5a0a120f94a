// Conversion of arguments; every refusal names the operator and the parameter.
#include "python/src/arguments.h"

#include <charconv>
#include <cstdlib>

#include "python/src/array_exchange.h"
#include "python/src/dtype_object.h"
#include "python/src/errors.h"
#include "python/src/tensor_object.h"

namespace nb = nanobind;

namespace lamella::python {

namespace {

[[noreturn]] void refuse(std::string_view op, const Parameter& parameter, const char* expected,
                         PyObject* got) {
  fail(ErrorKind::Type, "[{}] {} must be {}, got {} ({})", op, parameter.name, expected,
       nb::repr(nb::handle(got)).c_str(), Py_TYPE(got)->tp_name);
}

int64_t to_integer(PyObject* object, const Parameter& parameter, std::string_view op,
                   const char* expected) {
  if (PyFloat_Check(object)) refuse(op, parameter, expected, object);
  nb::object index = nb::steal(PyNumber_Index(object));
  if (!index.is_valid()) {
    PyErr_Clear();
    refuse(op, parameter, expected, object);
  }
  const long long value = PyLong_AsLongLong(index.ptr());
  if (value == -1 && PyErr_Occurred()) throw_python_error();
  return value;
}

// Integers out of one integer, a sequence, or a tensor of them.
template <typename List>
List to_integers(PyObject* object, const Parameter& parameter, std::string_view op) {
  constexpr const char* expected = "an integer or a sequence of integers";
  List list;
  nb::object converted;
  if ((is_tensor(object) && tensor_of(object).rank() > 0) ||
      PyObject_HasAttrString(object, "tolist")) {
    converted = nb::handle(object).attr("tolist")();
    object = converted.ptr();
  }
  const bool several = PyTuple_Check(object) || PyList_Check(object) ||
                       (PySequence_Check(object) && !is_tensor(object) && !PyUnicode_Check(object));
  if (!several) {
    list.push_back(to_integer(object, parameter, op, expected));
    return list;
  }
  nb::object sequence = nb::steal(PySequence_Fast(object, expected));
  if (!sequence.is_valid()) throw_python_error();
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(sequence.ptr());
  if (count > kMaxRank) {
    fail(ErrorKind::Value, "[{}] {} has {} entries; a tensor has at most {} axes", op,
         parameter.name, count, kMaxRank);
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(sequence.ptr(), i);
    list.push_back(to_integer(item, parameter, op, expected));
  }
  return list;
}

// "{0, 1}" in its numbers.
std::vector<int64_t> numbers_in(std::string_view text) {
  std::vector<int64_t> numbers;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at != end) {
    int64_t number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error == std::errc()) numbers.push_back(number);
    at = error == std::errc() ? next : at + 1;
  }
  return numbers;
}

}  // namespace

bool to_operand(PyObject* object, const SourceLocation& location, Operand& operand) {
  if (is_tensor(object)) {
    operand = Operand(tensor_of(object));
  } else if (PyFloat_Check(object)) {
    operand = Operand(PyFloat_AS_DOUBLE(object));
  } else if (PyBool_Check(object)) {
    operand = Operand(object == Py_True);
  } else if (PyLong_Check(object)) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    const double rounded = overflow == 0 ? 0 : PyLong_AsDouble(object);
    if (PyErr_Occurred()) throw_python_error();
    operand = overflow != 0 ? Operand(rounded) : Operand(int64_t{value});
  } else if (PyList_Check(object) || PyTuple_Check(object) || PyObject_CheckBuffer(object)) {
    if (PyBytes_Check(object) || PyByteArray_Check(object)) return false;
    operand = Operand(tensor_from(object, std::nullopt));
  } else {
    return false;
  }
  operand.set_location(location);
  return true;
}

AttributeValue to_attribute(PyObject* object, const Parameter& parameter, std::string_view op) {
  switch (parameter.kind) {
    case ParameterKind::Bool: {
      const int truth = PyObject_IsTrue(object);
      if (truth < 0) throw_python_error();
      return truth == 1;
    }
    case ParameterKind::Integer:
      return to_integer(object, parameter, op, "an integer");
    case ParameterKind::Real: {
      const double value = PyFloat_AsDouble(object);
      if (value == -1.0 && PyErr_Occurred()) {
        PyErr_Clear();
        refuse(op, parameter, "a number", object);
      }
      return value;
    }
    case ParameterKind::TypeName:
      return dtype_from(object);
    case ParameterKind::Text: {
      if (!PyUnicode_Check(object)) refuse(op, parameter, "a string", object);
      return std::string(nb::borrow<nb::str>(object).c_str());
    }
    case ParameterKind::AxisList:
      if (object == Py_None) return Axes{};
      return to_integers<Axes>(object, parameter, op);
    case ParameterKind::SizeList:
      return to_integers<Shape>(object, parameter, op);
    default:
      break;
  }
  fail(ErrorKind::Unsupported, "[{}] {} cannot be given from Python", op, parameter.name);
}

AttributeValue default_attribute(const Parameter& parameter) {
  const std::string text(parameter.default_text);
  switch (parameter.kind) {
    case ParameterKind::Bool:
      return text == "true";
    case ParameterKind::Integer:
      return static_cast<int64_t>(std::strtoll(text.c_str(), nullptr, 0));
    case ParameterKind::Real:
      return std::strtod(text.c_str(), nullptr);
    case ParameterKind::TypeName: {
      std::string lower = text.substr(text.rfind(':') + 1);
      for (char& letter : lower) {
        letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
      }
      if (const auto found = dtype_from_name(lower)) return *found;
      break;
    }
    case ParameterKind::Text:
      return text.size() >= 2 ? text.substr(1, text.size() - 2) : std::string();
    case ParameterKind::AxisList: {
      Axes axes;
      for (int64_t number : numbers_in(text)) axes.push_back(number);
      return axes;
    }
    case ParameterKind::SizeList: {
      Shape shape;
      for (int64_t number : numbers_in(text)) shape.push_back(number);
      return shape;
    }
    default:
      break;
  }
  fail(ErrorKind::Internal, "the default '{}' of parameter {} cannot be read", text,
       parameter.name);
}

nb::object to_python(const AttributeValue& value) {
  if (const bool* truth = std::get_if<bool>(&value)) return nb::bool_(*truth);
  if (const auto* integer = std::get_if<int64_t>(&value)) return nb::int_(*integer);
  if (const double* number = std::get_if<double>(&value)) return nb::float_(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return nb::str(text->c_str());
  if (const DType* dtype = std::get_if<DType>(&value)) return nb::borrow(dtype_object(*dtype));
  nb::list numbers;
  if (const Axes* axes = std::get_if<Axes>(&value)) {
    for (int64_t axis : *axes) numbers.append(axis);
  } else if (const Shape* shape = std::get_if<Shape>(&value)) {
    for (Dim size : *shape) numbers.append(size.value());
  } else {
    return nb::none();
  }
  return nb::tuple(numbers);
}

std::string_view kind_name(ParameterKind kind) {
  switch (kind) {
    case ParameterKind::Tensor:
      return "tensor";
    case ParameterKind::Optional:
      return "optional tensor";
    case ParameterKind::Tensors:
      return "tensors";
    case ParameterKind::Bool:
      return "bool";
    case ParameterKind::Integer:
      return "int";
    case ParameterKind::Real:
      return "float";
    case ParameterKind::TypeName:
      return "dtype";
    case ParameterKind::Text:
      return "str";
    case ParameterKind::AxisList:
      return "axes";
    case ParameterKind::SizeList:
      return "shape";
    case ParameterKind::Object:
      return "object";
  }
  return "";
}

}  // namespace lamella::python
