// The line of the user's program that calls into the library, for operations that library code
// records on its behalf: a layer's nodes and errors name the line that called the layer.
#pragma once

#include "lamella/base/api.h"
#include "lamella/base/error.h"

namespace lamella {

// Where operations of this thread come from instead of where they say; unknown if they speak for
// themselves.
LAMELLA_API const SourceLocation& current_call_site();

// Whether the operation being recorded is the first of the outermost call site; true once for each.
// A loop over calls turns there, and not at every operation that bears the same line.
LAMELLA_API bool take_call_site_start();

// Sets the call site while it lives; an unknown location lets operations speak for themselves.
class LAMELLA_API CallSiteScope {
 public:
  explicit CallSiteScope(SourceLocation location);
  ~CallSiteScope();
  CallSiteScope(const CallSiteScope&) = delete;
  CallSiteScope& operator=(const CallSiteScope&) = delete;

 private:
  SourceLocation outer_;
};

}  // namespace lamella
