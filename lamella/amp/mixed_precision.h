// Mixed precision for a whole network: which of its cells compute in a 16-bit float.
#pragma once

#include <functional>

#include "lamella/nn/cell.h"

namespace lamella::amp {

using CellTest = std::function<bool(nn::Cell&)>;

// The cells that `chosen` names compute in `dtype` and give float32; the others stay as they are.
LAMELLA_API void convert_cells(nn::Cell& network, DType dtype, const CellTest& chosen);
// All cells compute in `dtype` but those that `kept` names, which compute in float32; the network
// gives float32.
LAMELLA_API void convert_all_cells(nn::Cell& network, DType dtype, const CellTest& kept);

enum class Level : uint8_t {
  O0,  // nothing changes
  O1,  // the cells that gain from it
  O2,  // all cells but those that need float32
  O3,  // all cells
};
// Throws Type unless dtype is Float16 or BFloat16.
LAMELLA_API void auto_mixed_precision(nn::Cell& network, Level level, DType dtype = DType::Float16);

}  // namespace lamella::amp
