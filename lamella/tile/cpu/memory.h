// Moves pieces of kLanes elements between memory and vectors without touching memory beyond the
// elements asked for.
#pragma once

#include "lamella/tile/cpu/ir.h"

namespace lamella::tile {

// The elements of an incomplete piece: lanes [0, count).
struct Tail {
  LLVMValueRef count = nullptr;  // int64
  LLVMValueRef mask = nullptr;   // one bool a lane

  explicit operator bool() const { return count != nullptr; }
};

Tail make_tail(Ir& ir, LLVMValueRef count, int64_t lanes = kLanes);

// Adjacent elements of a storage type. Lanes outside the tail read as 0 and are not written.
LLVMValueRef load_piece(Ir& ir, LLVMTypeRef element, LLVMValueRef address, const Tail& tail,
                        int64_t lanes = kLanes);
void store_piece(Ir& ir, LLVMValueRef value, LLVMValueRef address, const Tail& tail);
// A whole piece past the caches, at a multiple of its size or of 64 bytes.
void store_piece_streamed(Ir& ir, LLVMValueRef value, LLVMValueRef address);

// Elements `stride` bytes apart.
LLVMValueRef gather_piece(Ir& ir, LLVMTypeRef element, LLVMValueRef address, LLVMValueRef stride,
                          const Tail& tail);
void scatter_piece(Ir& ir, LLVMValueRef value, LLVMValueRef address, LLVMValueRef stride,
                   const Tail& tail);

unsigned bytes_of(const Ir& ir, LLVMTypeRef element);

}  // namespace lamella::tile
