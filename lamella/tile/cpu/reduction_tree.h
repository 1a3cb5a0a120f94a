// The trees in which partial results of a reduction combine (the bit contract of tile/program.h).
#pragma once

#include "lamella/tile/cpu/instructions.h"

namespace lamella::tile {

inline constexpr int64_t kChunk = 4096;   // elements of a row per partial result
inline constexpr int64_t kRowLanes = 64;  // interleaved accumulators of a chunk
inline constexpr int64_t kPieces = kRowLanes / kLanes;
inline constexpr int64_t kRowBlock = 64;  // rows of a column reduction per partial result

// The 64 lanes, held as kPieces vectors, combined to a scalar.
LLVMValueRef combine_lanes(Ir& ir, Opcode opcode, DType dtype,
                           std::span<const LLVMValueRef> pieces);

// Combines partial results that arrive in order as a binary counter does: a result joins its left
// neighbour as soon as both stand for the same power of two of chunks.
class PairwiseStack {
 public:
  PairwiseStack(Ir& ir, Opcode opcode, DType dtype);
  void clear();
  void push(LLVMValueRef index, LLVMValueRef partial);
  // The result of all, given at least one was pushed.
  LLVMValueRef finish();

 private:
  LLVMValueRef entry(LLVMValueRef depth);

  Ir& ir_;
  Opcode opcode_;
  DType dtype_;
  LLVMTypeRef type_;
  LLVMValueRef entries_;  // one a power of two
  LLVMValueRef depth_;
};

}  // namespace lamella::tile
