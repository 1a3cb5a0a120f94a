// The functions of tile programs, by opcode: float32 by the templates of this folder, float64 by
// the C library, value by value.
#pragma once

#include "lamella/tile/math/error_function.h"
#include "lamella/tile/math/hyperbolic.h"
#include "lamella/tile/math/power.h"
#include "lamella/tile/math/trigonometric.h"
#include "lamella/tile/opcode.h"

namespace lamella::tile::math {

// A function of float32; the opcode must be one of is_transcendental's. `b` is for Pow and Atan2.
template <typename F>
F function_float32(Opcode opcode, F a, F b) {
  switch (opcode) {
    case Opcode::Exp:
      return exp_float32(a);
    case Opcode::Expm1:
      return expm1_float32(a);
    case Opcode::Log:
      return log_float32(a);
    case Opcode::Log1p:
      return log1p_float32(a);
    case Opcode::Log2:
      return log2_float32(a);
    case Opcode::Sin:
      return sin_float32(a);
    case Opcode::Cos:
      return cos_float32(a);
    case Opcode::Tan:
      return tan_float32(a);
    case Opcode::Asin:
      return asin_float32(a);
    case Opcode::Acos:
      return acos_float32(a);
    case Opcode::Atan:
      return atan_float32(a);
    case Opcode::Sinh:
      return sinh_float32(a);
    case Opcode::Cosh:
      return cosh_float32(a);
    case Opcode::Tanh:
      return tanh_float32(a);
    case Opcode::Erf:
      return erf_float32(a);
    case Opcode::Erfc:
      return erfc_float32(a);
    case Opcode::Gaussian:
      return gaussian_float32(a);
    case Opcode::Sigmoid:
      return sigmoid_float32(a);
    case Opcode::Softplus:
      return softplus_float32(a);
    case Opcode::Pow:
      return pow_float32(a, b);
    default:
      return atan2_float32(a, b);
  }
}

// The C library's function of the same name, or none for gaussian, sigmoid and softplus.
LAMELLA_API const LibraryFunction* library_function(Opcode opcode);

template <typename D>
D function_float64(Opcode opcode, D a, D b) {
  const LibraryFunction* library = library_function(opcode);
  if (library && library->two) return call_each(*library, a, b);
  if (library) return call_each(*library, a);
  if (opcode == Opcode::Gaussian) {
    return gaussian_float64(a, [](D x) { return call_each(*library_function(Opcode::Exp), x); });
  }
  const D z = call_each(*library_function(Opcode::Exp), -abs(a));
  if (opcode == Opcode::Sigmoid) {
    return select(a < 0.0, z, a.constant(1.0)) / (z + 1.0);
  }
  const D rest = call_each(*library_function(Opcode::Log1p), z);
  return select(a > 0.0, a, a.constant(0.0)) + rest;
}

}  // namespace lamella::tile::math
