// What the operating system knows about this process: number, host, terminal.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "lamella/base/api.h"

namespace lamella {

// This process's number; another one after a fork.
LAMELLA_API int64_t process_id();

// The machine's name, "localhost" if it has none.
LAMELLA_API std::string host_name();

// Whether `stream` is shown on a terminal, and how many characters a line of it has (80 if not
// known).
LAMELLA_API bool is_terminal(std::FILE* stream);
LAMELLA_API int terminal_width(std::FILE* stream);

}  // namespace lamella
