// Results that no cache could hold until they are read: they are written past the caches, since an
// ordinary store to a line that is not there first reads the line from memory.
#pragma once

#include <span>

#include "lamella/tile/cpu/kernel.h"

namespace lamella::tile {

// The program with the buffers streamed for which that pays in this launch; the program itself if
// there are none. `later` are launches that read its results right away.
LAMELLA_API Program streamed(const Program& program, const Launch& launch,
                             std::span<const PreparedLaunch> later);

// Whether a launch touches so much memory at most that streamed() is worth asking.
LAMELLA_API bool may_stream(const Program& program, const Launch& launch);

}  // namespace lamella::tile
