// The gradient of operators that let none through: their results are constant but for jumps, or are
// to be taken for constants.
#pragma once

#include "lamella/ops/opdef.h"

namespace lamella {

inline void give_nothing(VjpCall&) {}
inline constexpr Gradient zero_gradient = vjp(give_nothing);

// What leads to a result through such operators alone need not be kept for a walk back.
inline bool is_zero(const Gradient& gradient) {
  return gradient.function == give_nothing;
}

}  // namespace lamella
