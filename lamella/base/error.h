// Errors are part of the interface: every failure a user can cause is a lamella::Error whose kind
// maps to one of Python's built-in exceptions.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "lamella/base/api.h"

namespace lamella {

enum class ErrorKind : uint8_t {
  Type,         // an argument of the wrong type or dtype (TypeError)
  Value,        // a shape, axis or option that is not accepted (ValueError)
  Index,        // an index outside its axis (IndexError)
  Memory,       // an allocation that failed (MemoryError)
  Io,           // a file that is missing, damaged or cannot be written (OSError)
  Unsupported,  // something Lamella does not have (NotImplementedError)
  Internal,     // a broken invariant of Lamella itself (RuntimeError)
};

// A place in the user's program. `file` points to an interned, never freed string.
struct SourceLocation {
  const char* file = nullptr;
  int32_t line = 0;

  bool known() const { return file != nullptr; }
  friend bool operator==(const SourceLocation&, const SourceLocation&) = default;
};

// Returns a pointer to a copy of `file` that lives as long as the process.
LAMELLA_API const char* intern_file_name(std::string_view file);

class LAMELLA_API Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, std::string message, SourceLocation location = {});

  ErrorKind kind() const { return kind_; }
  // The message without the location; what() has both.
  const std::string& message() const { return message_; }
  const SourceLocation& location() const { return location_; }

  // The same error, said to come from `location` unless it already names one.
  Error at(SourceLocation location) const;

 private:
  ErrorKind kind_;
  std::string message_;
  SourceLocation location_;
};

[[noreturn]] LAMELLA_API void throw_error(ErrorKind kind, std::string message);

// Throws an Error; the message is written with fmt's format syntax.
template <typename... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  throw_error(kind, fmt::format(format, std::forward<Args>(args)...));
}

// States an invariant of Lamella itself; a violation is a bug in Lamella, never in user code.
#define LAMELLA_CHECK(condition)                                                            \
  do {                                                                                      \
    if (!(condition)) [[unlikely]]                                                          \
      ::lamella::fail(::lamella::ErrorKind::Internal, "{}:{}: invariant does not hold: {}", \
                      __FILE__, __LINE__, #condition);                                      \
  } while (false)

}  // namespace lamella
