// Named tensors in a file, in the safetensors format: a little-endian 64-bit header length, a JSON
// header {"name": {"dtype", "shape", "data_offsets"}, ..., "__metadata__": {"key": "value"}}, then
// the elements, row-major and little-endian, without holes.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lamella/base/api.h"
#include "lamella/base/system/mapped_file.h"
#include "lamella/types/dtype.h"
#include "lamella/types/shape.h"

namespace lamella::io {

// A dense row-major tensor under its name; `data` is not owned.
struct NamedArray {
  std::string name;
  DType dtype = DType::Float32;
  Axes sizes;
  std::span<const std::byte> data;
};

using Metadata = std::map<std::string, std::string>;

// Writes the file atomically: after a crash at any moment, `path` holds its old content or all of
// the new. Elements lie aligned to their size. Throws Value for names that occur twice or are no
// UTF-8, for data that does not fill its sizes, and Type for complex dtypes; Io, with the system's
// reason, if the file cannot be written.
LAMELLA_API void save_tensors(const std::string& path, std::span<const NamedArray> tensors,
                              const Metadata& metadata = {});

// What a header says, checked against the content it describes: tensors in the header's order,
// their data pointing into `content`.
struct TensorList {
  std::vector<NamedArray> tensors;
  Metadata metadata;
};

// Parses the content of a safetensors file. Throws Io, naming `path` and the fault, for content
// that is damaged, truncated or of another format, Unsupported for dtypes that Lamella lacks and
// for MindSpore's protobuf checkpoints.
LAMELLA_API TensorList parse_safetensors(std::span<const std::byte> content,
                                         const std::string& path);

// A safetensors file, mapped into memory: opening it reads the header only. The format is told by
// the content, whatever the file is called.
class LAMELLA_API TensorFile {
 public:
  // Throws as parse_safetensors, and Io if the file cannot be read.
  explicit TensorFile(const std::string& path);

  const std::string& path() const { return path_; }
  const std::vector<NamedArray>& tensors() const { return list_.tensors; }
  const Metadata& metadata() const { return list_.metadata; }
  // Nothing if there is no tensor of the name. The data is valid while the file, or a copy of
  // `mapping`, lives; foreign files may hold it unaligned, so copy bytes instead of casting.
  const NamedArray* find(std::string_view name) const;
  // As find, but throws Value, naming the file, if there is none.
  const NamedArray& at(std::string_view name) const;
  const std::shared_ptr<const MappedFile>& mapping() const { return mapping_; }

 private:
  std::string path_;
  std::shared_ptr<const MappedFile> mapping_;
  TensorList list_;
  std::map<std::string, size_t, std::less<>> places_;
};

}  // namespace lamella::io
