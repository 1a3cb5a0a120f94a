// Errors of arguments that nanobind cannot convert, in the words of the package's other errors.
#pragma once

#include <nanobind/nanobind.h>

namespace lamella::python {

// Makes the functions, methods and properties that are bound in a module and in what it holds say
// what is wrong with their arguments as lamella/_arguments.py does.
void explain_arguments(nanobind::module_& module);

}  // namespace lamella::python
