// Finding line ends.
#include "lamella/data/text_lines.h"

namespace lamella::data {

std::vector<size_t> find_lines(std::string_view content) {
  std::vector<size_t> starts;
  for (size_t start = 0; start < content.size();) {
    if (!line_from(content, start).empty()) starts.push_back(start);
    const size_t end = content.find('\n', start);
    if (end == std::string_view::npos) break;
    start = end + 1;
  }
  return starts;
}

std::string_view line_from(std::string_view content, size_t start) {
  const size_t end = content.find('\n', start);
  std::string_view line = content.substr(start, end == std::string_view::npos ? end : end - start);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace lamella::data
