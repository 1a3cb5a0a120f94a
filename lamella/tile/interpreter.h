// Executors of tile programs that compile nothing: one that defines what compiled code must give to
// the last bit, and one that computes the same mathematics independently.
#pragma once

#include "lamella/base/api.h"
#include "lamella/tile/program.h"

namespace lamella::tile {

// Runs the program exactly as program.h states it: each instruction rounds to its dtype, reductions
// follow their trees, functions are those of tile/math. Compiled kernels give the same bits, except
// for the sign and payload of NaN.
LAMELLA_API void interpret(const Program& program, const Launch& launch);

// Runs the program in long double with the C library's functions, rounding only where a value is
// cast or stored: for judging the accuracy of the others.
LAMELLA_API void interpret_in_long_double(const Program& program, const Launch& launch);

}  // namespace lamella::tile
