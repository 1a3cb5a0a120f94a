// Fields of comma-separated values (RFC 4180).
#pragma once

#include <string>
#include <string_view>

namespace lamella::profile {

inline std::string csv_field(std::string_view field) {
  if (field.find_first_of(",\"\n\r") == std::string_view::npos) return std::string(field);
  std::string quoted = "\"";
  for (char c : field) {
    quoted += c;
    if (c == '"') quoted += c;
  }
  return quoted + '"';
}

}  // namespace lamella::profile
