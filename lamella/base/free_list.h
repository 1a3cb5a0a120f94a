// Memory of small objects that come and go in great numbers: nodes, values, storages. What a thread
// lets go of, it keeps for its next objects of that size; the C library's own per-thread cache
// holds only a handful, and a window holds thousands.
#pragma once

#include <cstddef>

#include "lamella/base/api.h"

namespace lamella {

// Memory for an object of `bytes`, aligned as ::operator new aligns. Under the address sanitizer
// nothing is kept, so that it sees every object that is used too late.
LAMELLA_API void* take_small(size_t bytes);
// Gives back what take_small gave for `bytes`, in any thread.
LAMELLA_API void give_small(void* memory, size_t bytes) noexcept;

// Base of classes whose objects lie in such memory.
template <typename Derived>
class SmallObject {
 public:
  static void* operator new(size_t bytes) { return take_small(bytes); }
  static void operator delete(void* memory, size_t bytes) { give_small(memory, bytes); }
};

}  // namespace lamella
