// The microkernels and packing functions of matrix products, compiled when first asked for and
// kept.
#pragma once

#include "lamella/tile/cpu/microkernel_emitter.h"

namespace lamella::tile {

// The largest block of the product that the registers hold, and the widest panel for fewer rows.
MicroShape largest_micro_shape(InstructionSet set);
int widest_panel(InstructionSet set, int rows);

struct PackFunctions {
  PackFunction* copy_rows = nullptr;
  PackFunction* transpose = nullptr;
};

// Both are safe to call from several threads at once, and cheap once the code exists.
MicroFunction* micro_function(DType product, MicroShape shape, InstructionSet set);
PackFunctions pack_functions(DType input, InstructionSet set);

}  // namespace lamella::tile
