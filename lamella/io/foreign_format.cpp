// Recognising formats by their first bytes.
#include "lamella/io/foreign_format.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace lamella::io {

namespace {

using namespace std::string_view_literals;

constexpr std::pair<std::string_view, std::string_view> kSignatures[] = {
    {"PK\x03\x04"sv, "a zip archive (PyTorch checkpoint, .npz)"},
    {"\x93NUMPY"sv, "a NumPy array (.npy)"},
    {"\x89HDF\r\n\x1a\n"sv, "an HDF5 file"},
    {"GGUF"sv, "a GGUF file"},
    {"\x80\x02"sv, "a Python pickle"},
    {"\x80\x03"sv, "a Python pickle"},
    {"\x80\x04"sv, "a Python pickle"},
    {"\x80\x05"sv, "a Python pickle"},
    {"\x1f\x8b"sv, "a gzip file"},
    {"\x7f"
     "ELF"sv,
     "a program"},
    {"<"sv, "text in HTML or XML"},
    {"version https://git-lfs"sv, "a Git LFS pointer; the file itself was not fetched"},
};

// Reads protobuf's wire format from the front of a range.
class Wire {
 public:
  explicit Wire(std::string_view bytes) : bytes_(bytes) {}

  std::optional<uint64_t> varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && !bytes_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(bytes_.front());
      bytes_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }
  // The bytes of a length-delimited field of this number; those the range still has.
  std::optional<std::string_view> field(uint64_t number) {
    if (varint() != (number << 3 | 2)) return std::nullopt;
    const auto length = varint();
    if (!length) return std::nullopt;
    const std::string_view content = bytes_.substr(0, *length);
    bytes_.remove_prefix(content.size());
    return content;
  }

 private:
  std::string_view bytes_;
};

std::string_view as_text(std::span<const std::byte> content) {
  return {reinterpret_cast<const char*>(content.data()), content.size()};
}

}  // namespace

std::string_view foreign_format(std::span<const std::byte> content) {
  for (const auto& [signature, name] : kSignatures) {
    if (as_text(content).starts_with(signature)) return name;
  }
  return {};
}

bool is_mindspore_checkpoint(std::span<const std::byte> content) {
  // message Checkpoint { repeated Value value = 1; }
  // message Value { string tag = 1; TensorProto tensor = 2; MapTensorProto maptensor = 3; }
  constexpr size_t kLongestTag = 4096;
  const auto value = Wire(as_text(content)).field(1);
  if (!value) return false;
  Wire fields(*value);
  const auto tag = fields.field(1);
  if (!tag || tag->empty() || tag->size() > kLongestTag) return false;
  const bool printable =
      std::all_of(tag->begin(), tag->end(), [](char c) { return c >= 0x20 && c != 0x7F; });
  const auto next = fields.varint();
  return printable && (next == 0x12 || next == 0x1A);
}

}  // namespace lamella::io
