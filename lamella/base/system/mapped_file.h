// A file mapped into memory for reading.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "lamella/base/api.h"

namespace lamella {

// The content of a regular file, loaded page by page as it is read. The mapping outlives a rename
// over the file or its removal; a process that shortens the file in place while it is mapped makes
// reads beyond the new end fail with a signal.
class LAMELLA_API MappedFile {
 public:
  // Throws Io, naming the file, if it is missing, no regular file, or cannot be read.
  explicit MappedFile(const std::string& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace lamella
