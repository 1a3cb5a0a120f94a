// Visits a range of rows of the outer axes in order, keeping each buffer's address and the position
// on every axis up to date, like an odometer.
#pragma once

#include "lamella/tile/cpu/body_emitter.h"

namespace lamella::tile {

class RowWalk {
 public:
  // Stands at row `first`, counted over the outer axes [axis_begin, axis_end); the other axes stand
  // at 0 plus what `base` adds to each buffer's address.
  RowWalk(Ir& ir, BodyEmitter& body, int axis_begin, int axis_end,
          const std::vector<LLVMValueRef>& base, LLVMValueRef first);

  // Addresses per buffer and positions per outer axis, at the current row.
  std::vector<LLVMValueRef> addresses();
  LLVMValueRef position(int axis);
  // By `rows` rows, which are of one value of all outer axes but the last.
  void advance(LLVMValueRef rows);

 private:
  void carry(int axis, LLVMValueRef steps);

  Ir& ir_;
  BodyEmitter& body_;
  int axis_begin_, axis_end_;
  std::vector<LLVMValueRef> address_slots_;
  std::vector<LLVMValueRef> position_slots_;
};

}  // namespace lamella::tile
