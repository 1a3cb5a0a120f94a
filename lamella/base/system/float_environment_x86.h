// The control and status register of SSE arithmetic.
#pragma once

#ifdef __SSE__
#include <xmmintrin.h>

namespace lamella {

inline unsigned float_control() {
  return _mm_getcsr();
}
inline void set_float_control(unsigned control) {
  _mm_setcsr(control);
}
// Round to nearest, denormals on, no traps; and the bits that only record what happened.
inline constexpr unsigned kDefaultFloatControl = 0x1F80;
inline constexpr unsigned kFloatStatusBits = 0x3F;

}  // namespace lamella
#endif
