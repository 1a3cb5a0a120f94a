// The microkernels and packing functions of matrix products, compiled when first asked for and
// kept.
#pragma once

#include <array>

#include "lamella/tile/cpu/microkernel_emitter.h"

namespace lamella::tile {

// The largest block of the product that the registers hold, and the widest panel for fewer rows.
MicroShape largest_micro_shape(InstructionSet set);
int widest_panel(InstructionSet set, int rows);

struct PackFunctions {
  PackFunction* copy_rows = nullptr;
  PackFunction* transpose = nullptr;
};

// The functions of products of a dtype, by shape.
class MicroFunctions {
 public:
  static constexpr size_t kMostRows = 8, kMostVectors = 8;
  MicroFunction* at(MicroShape shape) const {
    return functions_[static_cast<size_t>(shape.rows)][static_cast<size_t>(shape.vectors)];
  }

 private:
  friend struct MicroLibrary;
  std::array<std::array<MicroFunction*, kMostVectors + 1>, kMostRows + 1> functions_{};
};

// Both are safe to call from several threads at once, and cheap once the code exists. All
// microkernels of a dtype are compiled at the first product: which of them a product needs depends
// on its sizes, and a new batch size must not compile anything.
const MicroFunctions& micro_functions(DType product, InstructionSet set);
PackFunctions pack_functions(DType input, InstructionSet set);

}  // namespace lamella::tile
