// Text files as UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "lamella/base/api.h"

namespace lamella::data {

// The content of a text file without its byte order mark. Throws Io, naming the file and the line,
// for bytes that are no UTF-8 and for zero bytes, which UTF-16 files are full of.
LAMELLA_API std::string_view utf8_content(std::span<const std::byte> bytes, std::string_view path);

// The line, from 1, in which the byte at `offset` lies.
LAMELLA_API int64_t line_at(std::string_view content, size_t offset);

}  // namespace lamella::data
