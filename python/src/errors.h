// C++ exceptions become Python's built-in ones.
#pragma once

#include <nanobind/nanobind.h>

#include "lamella/base/error.h"

namespace lamella::python {

// Sets the Python exception for the C++ exception being handled. Call inside a catch block.
void set_python_error() noexcept;

// Runs `function` and returns its result; an exception becomes a Python error and `failed`.
template <typename Function, typename Result>
Result guarded(Result failed, Function&& function) noexcept {
  try {
    return function();
  } catch (...) {
    set_python_error();
    return failed;
  }
}
template <typename Function>
PyObject* guarded(Function&& function) noexcept {
  return guarded(static_cast<PyObject*>(nullptr), std::forward<Function>(function));
}

// Throws the Python error that a C API call has set.
[[noreturn]] inline void throw_python_error() {
  nanobind::raise_python_error();
}

void add_error_translation();

}  // namespace lamella::python
