// Options read from the environment.
#include "lamella/base/env.h"

#include <charconv>
#include <cstdlib>

#include "lamella/base/error.h"

namespace lamella {

std::optional<std::string> environment(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  return text;
}

int64_t environment_integer(const char* name, int64_t fallback, int64_t low, int64_t high) {
  const std::optional<std::string> text = environment(name);
  if (!text) return fallback;
  int64_t value = 0;
  const char* end = text->data() + text->size();
  const auto [parsed, status] = std::from_chars(text->data(), end, value);
  if (status != std::errc() || parsed != end || value < low || value > high) {
    fail(ErrorKind::Value, "environment variable {} must be a whole number from {} to {}, got '{}'",
         name, low, high, *text);
  }
  return value;
}

}  // namespace lamella
