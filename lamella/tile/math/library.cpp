// The table of C library functions that float64 programs call.
#include "lamella/tile/math/functions.h"

namespace lamella::tile::math {

const LibraryFunction* library_function(Opcode opcode) {
  static const LibraryFunction exp = {.name = "exp", .one = std::exp};
  static const LibraryFunction expm1 = {.name = "expm1", .one = std::expm1};
  static const LibraryFunction log = {.name = "log", .one = std::log};
  static const LibraryFunction log1p = {.name = "log1p", .one = std::log1p};
  static const LibraryFunction log2 = {.name = "log2", .one = std::log2};
  static const LibraryFunction asin = {.name = "asin", .one = std::asin};
  static const LibraryFunction acos = {.name = "acos", .one = std::acos};
  static const LibraryFunction atan = {.name = "atan", .one = std::atan};
  static const LibraryFunction sinh = {.name = "sinh", .one = std::sinh};
  static const LibraryFunction cosh = {.name = "cosh", .one = std::cosh};
  static const LibraryFunction tanh = {.name = "tanh", .one = std::tanh};
  static const LibraryFunction erf = {.name = "erf", .one = std::erf};
  static const LibraryFunction erfc = {.name = "erfc", .one = std::erfc};
  static const LibraryFunction pow = {.name = "pow", .two = std::pow};
  static const LibraryFunction atan2 = {.name = "atan2", .two = std::atan2};
  switch (opcode) {
    case Opcode::Exp:
      return &exp;
    case Opcode::Expm1:
      return &expm1;
    case Opcode::Log:
      return &log;
    case Opcode::Log1p:
      return &log1p;
    case Opcode::Log2:
      return &log2;
    case Opcode::Sin:
      return &kLibrarySin;
    case Opcode::Cos:
      return &kLibraryCos;
    case Opcode::Tan:
      return &kLibraryTan;
    case Opcode::Asin:
      return &asin;
    case Opcode::Acos:
      return &acos;
    case Opcode::Atan:
      return &atan;
    case Opcode::Sinh:
      return &sinh;
    case Opcode::Cosh:
      return &cosh;
    case Opcode::Tanh:
      return &tanh;
    case Opcode::Erf:
      return &erf;
    case Opcode::Erfc:
      return &erfc;
    case Opcode::Pow:
      return &pow;
    case Opcode::Atan2:
      return &atan2;
    default:
      return nullptr;
  }
}

}  // namespace lamella::tile::math
