// From a module to an object file in memory, and from an object file to callable code.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lamella/tile/cpu/ir.h"

namespace lamella::tile {

// Optimises the module and compiles it to an object file.
std::string compile_object(Ir& ir);

// An object file linked into this process; its memory is released with this object.
class LinkedCode {
 public:
  explicit LinkedCode(std::string_view object);
  ~LinkedCode();
  LinkedCode(const LinkedCode&) = delete;
  LinkedCode& operator=(const LinkedCode&) = delete;

  // The address of a function. Throws Internal if the object has none of that name.
  void* find(const char* name) const;

 private:
  struct Library;
  Library* library_;
};

}  // namespace lamella::tile
