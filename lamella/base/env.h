// Options read from the environment. A value that is not accepted is an error that names it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lamella/base/api.h"

namespace lamella {

// The variable's text, or nothing if it is unset or empty.
LAMELLA_API std::optional<std::string> environment(const char* name);

// The variable as a whole number within [low, high]; `fallback` if unset. Throws Value otherwise.
LAMELLA_API int64_t environment_integer(const char* name, int64_t fallback, int64_t low,
                                        int64_t high);

}  // namespace lamella
