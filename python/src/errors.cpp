// The mapping from kinds of errors to Python's exceptions.
#include "python/src/errors.h"

#include "python/src/source_location.h"

namespace lamella::python {

namespace {

PyObject* exception_for(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Type:
      return PyExc_TypeError;
    case ErrorKind::Value:
      return PyExc_ValueError;
    case ErrorKind::Index:
      return PyExc_IndexError;
    case ErrorKind::Memory:
      return PyExc_MemoryError;
    case ErrorKind::Io:
      return PyExc_OSError;
    case ErrorKind::Unsupported:
      return PyExc_NotImplementedError;
    case ErrorKind::Internal:
      break;
  }
  return PyExc_RuntimeError;
}

}  // namespace

void set_python_error() noexcept {
  try {
    throw;
  } catch (nanobind::python_error& error) {
    error.restore();
  } catch (const Error& error) {
    const Error located = error.location().known() ? error : error.at(caller_location());
    PyErr_SetString(exception_for(error.kind()), located.what());
  } catch (const nanobind::builtin_exception& error) {
    PyErr_SetString(PyExc_TypeError, error.what());
  } catch (const nanobind::cast_error&) {
    PyErr_SetString(PyExc_TypeError, "a value has another type than the one expected");
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}

void add_error_translation() {
  nanobind::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const Error& error) {
      const Error located = error.location().known() ? error : error.at(caller_location());
      PyErr_SetString(exception_for(error.kind()), located.what());
    }
  });
}

}  // namespace lamella::python
