// Where the user's program calls from: file and line of the innermost Python frame outside the
// package.
#pragma once

#include <string>

#include "lamella/base/error.h"

namespace lamella::python {

// The calling line; unknown if no frame lies outside the package.
SourceLocation caller_location();

// Frames of files whose path begins so belong to the package.
void set_package_folder(std::string folder);

}  // namespace lamella::python
