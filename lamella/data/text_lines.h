// Lines of text, which end with LF or CRLF; the last one need not.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "lamella/base/api.h"

namespace lamella::data {

// Where each line begins that is not empty.
LAMELLA_API std::vector<size_t> find_lines(std::string_view content);
// The line that begins at `start`, without its end.
LAMELLA_API std::string_view line_from(std::string_view content, size_t start);

}  // namespace lamella::data
