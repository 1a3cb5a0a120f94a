// The layout of a launch's arguments as compiled code reads them: one array of 64-bit words holding
// the extents, then for each buffer its address and strides in bytes, then the scalars.
#pragma once

#include "lamella/tile/program.h"

namespace lamella::tile {

struct ArgumentLayout {
  explicit ArgumentLayout(const Program& program)
      : axes(program.outer_rank + 1),
        buffers(static_cast<int>(program.buffers.size())),
        scalars(static_cast<int>(program.scalars.size())) {}

  int extent(int axis) const { return axis; }
  int address(int buffer) const { return axes + buffer * (axes + 1); }
  int stride(int buffer, int axis) const { return address(buffer) + 1 + axis; }
  int scalar(int number) const { return address(buffers) + number; }
  int words() const { return scalar(scalars); }

  int axes, buffers, scalars;
};

}  // namespace lamella::tile
