// Error construction and the table of interned file names.
#include "lamella/base/error.h"

#include <mutex>
#include <unordered_set>

namespace lamella {

namespace {

std::string with_location(const std::string& message, SourceLocation location) {
  if (!location.known()) return message;
  return fmt::format("{} at {}:{}", message, location.file, location.line);
}

}  // namespace

const char* intern_file_name(std::string_view file) {
  static std::mutex mutex;
  // Never destroyed: errors may be printed while the process exits.
  static auto& names = *new std::unordered_set<std::string>;
  std::lock_guard lock(mutex);
  return names.emplace(file).first->c_str();
}

Error::Error(ErrorKind kind, std::string message, SourceLocation location)
    : std::runtime_error(with_location(message, location)),
      kind_(kind),
      message_(std::move(message)),
      location_(location) {}

Error Error::at(SourceLocation location) const {
  return location_.known() ? *this : Error(kind_, message_, location);
}

void throw_error(ErrorKind kind, std::string message) {
  throw Error(kind, std::move(message));
}

}  // namespace lamella
