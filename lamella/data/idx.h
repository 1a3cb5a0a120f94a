// The idx format of the MNIST family: a magic number, the sizes, then unsigned bytes.
//   byte 0-1: 0; byte 2: element type (0x08: unsigned byte); byte 3: number of axes;
//   a big-endian 32-bit size for each axis; the elements, row-major.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lamella/data/array.h"

namespace lamella::data {

// The whole content of a file, unpacked if it is a gzip stream. Throws Io naming the file.
LAMELLA_API std::vector<std::byte> read_file(const std::string& path);

// The uint8 array of an idx file's content. Throws Io, naming `path`, if the content is damaged,
// too short or too long; Unsupported for other element types.
LAMELLA_API Array parse_idx(std::vector<std::byte> content, const std::string& path);

}  // namespace lamella::data
