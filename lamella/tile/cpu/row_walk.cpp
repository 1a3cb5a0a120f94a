// The odometer over outer axes.
#include "lamella/tile/cpu/row_walk.h"

namespace lamella::tile {

RowWalk::RowWalk(Ir& ir, BodyEmitter& body, int axis_begin, int axis_end,
                 const std::vector<LLVMValueRef>& base, LLVMValueRef first)
    : ir_(ir), body_(body), axis_begin_(axis_begin), axis_end_(axis_end) {
  std::vector<LLVMValueRef> addresses = base;
  LLVMValueRef rest = first;
  for (int axis = axis_end - 1; axis >= axis_begin; --axis) {
    LLVMValueRef position = rest;
    if (axis > axis_begin) {
      position = LLVMBuildURem(ir.builder(), rest, body.extent(axis), "");
      rest = LLVMBuildUDiv(ir.builder(), rest, body.extent(axis), "");
    }
    for (size_t buffer = 0; buffer < addresses.size(); ++buffer) {
      addresses[buffer] = ir.address(addresses[buffer],
                                     ir.mul(position, body.stride(static_cast<int>(buffer), axis)));
    }
    const LLVMValueRef slot = ir.stack_slot(ir.i64, 1, 8);
    ir.store(position, slot, 8);
    position_slots_.insert(position_slots_.begin(), slot);
  }
  for (const LLVMValueRef address : addresses) {
    const LLVMValueRef slot = ir.stack_slot(ir.pointer, 1, 8);
    ir.store(address, slot, 8);
    address_slots_.push_back(slot);
  }
}

std::vector<LLVMValueRef> RowWalk::addresses() {
  std::vector<LLVMValueRef> result;
  for (const LLVMValueRef slot : address_slots_) result.push_back(ir_.load(ir_.pointer, slot, 8));
  return result;
}

LLVMValueRef RowWalk::position(int axis) {
  return ir_.load(ir_.i64, position_slots_[static_cast<size_t>(axis - axis_begin_)], 8);
}

void RowWalk::advance(LLVMValueRef rows) {
  if (axis_end_ > axis_begin_) carry(axis_end_ - 1, rows);
}

void RowWalk::carry(int axis, LLVMValueRef steps) {
  const LLVMValueRef slot = position_slots_[static_cast<size_t>(axis - axis_begin_)];
  const LLVMValueRef next = ir_.add(ir_.load(ir_.i64, slot, 8), steps);
  ir_.store(next, slot, 8);
  for (size_t buffer = 0; buffer < address_slots_.size(); ++buffer) {
    const LLVMValueRef address = ir_.load(ir_.pointer, address_slots_[buffer], 8);
    const LLVMValueRef distance = ir_.mul(steps, body_.stride(static_cast<int>(buffer), axis));
    ir_.store(ir_.address(address, distance), address_slots_[buffer], 8);
  }
  if (axis == axis_begin_) return;
  // Past the axis's end: back to its start, one further on the axis before.
  ir_.if_then(ir_.icmp(LLVMIntEQ, next, body_.extent(axis)), [&] {
    ir_.store(ir_.word(0), slot, 8);
    for (size_t buffer = 0; buffer < address_slots_.size(); ++buffer) {
      const LLVMValueRef address = ir_.load(ir_.pointer, address_slots_[buffer], 8);
      const LLVMValueRef back = LLVMBuildNeg(
          ir_.builder(), ir_.mul(body_.extent(axis), body_.stride(static_cast<int>(buffer), axis)),
          "");
      ir_.store(ir_.address(address, back), address_slots_[buffer], 8);
    }
    carry(axis - 1, ir_.word(1));
  });
}

}  // namespace lamella::tile
