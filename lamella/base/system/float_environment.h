// The floating-point environment kernels run in.
#pragma once

#include "lamella/base/system/float_environment_x86.h"

namespace lamella {

// While alive, in this thread: round to nearest, denormals on, no traps; then as it was before.
class DefaultFloatEnvironment {
 public:
#ifdef __SSE__
  DefaultFloatEnvironment() : before_(float_control()) {
    if (differs()) set_float_control(kDefaultFloatControl);
  }
  ~DefaultFloatEnvironment() {
    if (differs()) set_float_control(before_);
  }
#else
  DefaultFloatEnvironment() {}
#endif
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

#ifdef __SSE__
 private:
  bool differs() const { return (before_ & ~kFloatStatusBits) != kDefaultFloatControl; }
  unsigned before_;
#endif
};

}  // namespace lamella
