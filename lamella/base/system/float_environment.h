// The floating-point environment kernels run in.
#pragma once

#ifdef __SSE__
#include <xmmintrin.h>
#endif

namespace lamella {

// While alive: round to nearest, denormals on, no exception traps; then whatever was set before.
class DefaultFloatEnvironment {
 public:
#ifdef __SSE__
  DefaultFloatEnvironment() : before_(_mm_getcsr()) {
    if ((before_ & ~kStatusFlags) != kDefault) _mm_setcsr(kDefault);
  }
  ~DefaultFloatEnvironment() {
    if ((before_ & ~kStatusFlags) != kDefault) _mm_setcsr(before_);
  }

 private:
  static constexpr unsigned kStatusFlags = 0x3F;
  static constexpr unsigned kDefault = 0x1F80;
  unsigned before_;
#else
  DefaultFloatEnvironment() {}
#endif

 public:
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;
};

}  // namespace lamella
