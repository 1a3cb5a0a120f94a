// Checking UTF-8 by the table of well-formed byte sequences (Unicode standard, table 3-7).
#include "lamella/data/utf8.h"

#include <algorithm>

#include "lamella/base/error.h"

namespace lamella::data {

namespace {

// The length of the well-formed sequence at the front of `bytes`, which is not empty; 0 if there is
// none.
size_t sequence_length(std::string_view bytes) {
  const auto at = [&](size_t i) -> uint8_t {
    return i < bytes.size() ? static_cast<uint8_t>(bytes[i]) : uint8_t{0};
  };
  const auto continues = [&](size_t i) { return (at(i) & 0xC0) == 0x80; };
  const uint8_t first = at(0), second = at(1);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return continues(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (first == 0xE0 && second < 0xA0) return 0;  // could be shorter
    if (first == 0xED && second > 0x9F) return 0;  // half of a surrogate pair
    return continues(1) && continues(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (first == 0xF0 && second < 0x90) return 0;
    if (first == 0xF4 && second > 0x8F) return 0;  // above U+10FFFF
    return continues(1) && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::string_view utf8_content(std::span<const std::byte> bytes, std::string_view path) {
  std::string_view content(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (content.starts_with("\xFF\xFE") || content.starts_with("\xFE\xFF")) {
    fail(ErrorKind::Io, "'{}' is UTF-16; text files are read as UTF-8", path);
  }
  if (content.starts_with("\xEF\xBB\xBF")) content.remove_prefix(3);
  for (size_t i = 0; i < content.size();) {
    const size_t length = sequence_length(content.substr(i));
    if (length == 0) {
      fail(ErrorKind::Io, "{}:{}: byte 0x{:02x} is no UTF-8", path, line_at(content, i),
           static_cast<uint8_t>(content[i]));
    }
    if (content[i] == '\0') {
      fail(ErrorKind::Io, "{}:{}: a zero byte, which no text has", path, line_at(content, i));
    }
    i += length;
  }
  return content;
}

int64_t line_at(std::string_view content, size_t offset) {
  return std::count(content.begin(), content.begin() + static_cast<ptrdiff_t>(offset), '\n') + 1;
}

}  // namespace lamella::data
