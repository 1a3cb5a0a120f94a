// Any bytes are a text file of lines that are not empty and have no ends, or an error.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "lamella/base/error.h"
#include "lamella/data/text_lines.h"
#include "lamella/data/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lamella::data;
  try {
    const auto content = utf8_content(std::as_bytes(std::span<const uint8_t>(data, size)), "input");
    size_t end = 0;
    for (size_t start : find_lines(content)) {
      const std::string_view line = line_from(content, start);
      if (start < end || line.empty() || line.find('\n') != line.npos) std::abort();
      end = start + line.size();
    }
    if (end > content.size()) std::abort();
  } catch (const lamella::Error& error) {
    if (error.kind() != lamella::ErrorKind::Io) std::abort();
  }
  return 0;
}
