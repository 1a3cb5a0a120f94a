// Loads and stores of pieces. Where a machine has no masked access for an element's size, and at
// the end of a row of elements that are not adjacent, they pass through a slot on the stack one by
// one.
#include "lamella/tile/cpu/memory.h"

#include <algorithm>
#include <array>

namespace lamella::tile {

unsigned bytes_of(const Ir& ir, LLVMTypeRef element) {
  if (element == ir.f32) return 4;
  if (element == ir.f64) return 8;
  return (LLVMGetIntTypeWidth(element) + 7) / 8;
}

Tail make_tail(Ir& ir, LLVMValueRef count, int64_t lanes) {
  const LLVMValueRef narrow = LLVMBuildTrunc(ir.builder(), count, ir.i32, "");
  return {.count = count,
          .mask = ir.icmp(LLVMIntULT, ir.lane_numbers(ir.i32, lanes), ir.splat(narrow, lanes))};
}

namespace {

bool has_masked_access(const Ir& ir, unsigned bytes) {
  return ir.set() == InstructionSet::Avx512 || (ir.set() == InstructionSet::Avx2 && bytes >= 4);
}

enum class Direction : uint8_t { FromMemory, ToMemory };

// Copies `count` elements between a contiguous slot and memory with a stride, one by one.
LLVMValueRef copy_function(Ir& ir, LLVMTypeRef element, Direction direction) {
  const unsigned bytes = bytes_of(ir, element);
  const LLVMTypeRef whole = ir.integer(bytes * 8);
  const std::string name =
      (direction == Direction::FromMemory ? "copy_in_" : "copy_out_") + std::to_string(bytes);
  const std::array parameters = {ir.pointer, ir.pointer, ir.i64, ir.i64};
  return ir.helper(name, parameters, nullptr, [&] {
    const LLVMValueRef slot = ir.parameter(0), memory = ir.parameter(1);
    const LLVMValueRef stride = ir.parameter(2), count = ir.parameter(3);
    ir.loop(ir.word(0), count, ir.word(1), [&](LLVMValueRef i) {
      const LLVMValueRef near = ir.address(slot, ir.mul(i, ir.word(bytes)));
      const LLVMValueRef far = ir.address(memory, ir.mul(i, stride));
      if (direction == Direction::FromMemory) {
        ir.store(ir.load(whole, far, bytes), near, bytes);
      } else {
        ir.store(ir.load(whole, near, bytes), far, bytes);
      }
    });
    ir.return_void();
  });
}

LLVMValueRef count_or_all(Ir& ir, const Tail& tail, LLVMTypeRef type) {
  return tail ? tail.count : ir.word(LLVMGetVectorSize(type));
}

LLVMValueRef load_by_elements(Ir& ir, LLVMTypeRef type, LLVMValueRef address, LLVMValueRef stride,
                              const Tail& tail) {
  const LLVMTypeRef element = Ir::element(type);
  const LLVMValueRef slot = ir.stack_slot(type, 1, 64);
  if (tail) ir.store(LLVMConstNull(type), slot, 64);
  ir.call(copy_function(ir, element, Direction::FromMemory),
          {slot, address, stride, count_or_all(ir, tail, type)});
  return ir.load(type, slot, 64);
}

void store_by_elements(Ir& ir, LLVMValueRef value, LLVMValueRef address, LLVMValueRef stride,
                       const Tail& tail) {
  const LLVMTypeRef type = LLVMTypeOf(value);
  const LLVMValueRef slot = ir.stack_slot(type, 1, 64);
  ir.store(value, slot, 64);
  ir.call(copy_function(ir, Ir::element(type), Direction::ToMemory),
          {slot, address, stride, count_or_all(ir, tail, type)});
}

}  // namespace

LLVMValueRef load_piece(Ir& ir, LLVMTypeRef element, LLVMValueRef address, const Tail& tail,
                        int64_t lanes) {
  const LLVMTypeRef type = Ir::vector(element, lanes);
  const unsigned bytes = bytes_of(ir, element);
  if (!tail) return ir.load(type, address, bytes);
  if (!has_masked_access(ir, bytes)) {
    return load_by_elements(ir, type, address, ir.word(bytes), tail);
  }
  return ir.intrinsic("llvm.masked.load", {type, ir.pointer},
                      {address, ir.integer(ir.i32, bytes), tail.mask, LLVMConstNull(type)});
}

void store_piece(Ir& ir, LLVMValueRef value, LLVMValueRef address, const Tail& tail) {
  const LLVMTypeRef type = LLVMTypeOf(value);
  const unsigned bytes = bytes_of(ir, Ir::element(type));
  if (!tail) return ir.store(value, address, bytes);
  if (!has_masked_access(ir, bytes)) {
    return store_by_elements(ir, value, address, ir.word(bytes), tail);
  }
  ir.intrinsic("llvm.masked.store", {type, ir.pointer},
               {value, address, ir.integer(ir.i32, bytes), tail.mask});
}

void store_piece_streamed(Ir& ir, LLVMValueRef value, LLVMValueRef address) {
  const LLVMTypeRef type = LLVMTypeOf(value);
  const unsigned bytes = LLVMGetVectorSize(type) * bytes_of(ir, Ir::element(type));
  ir.store_streamed(value, address, std::min(bytes, 64U));
}

LLVMValueRef gather_piece(Ir& ir, LLVMTypeRef element, LLVMValueRef address, LLVMValueRef stride,
                          const Tail& tail) {
  const LLVMTypeRef type = Ir::vector(element);
  if (tail) return load_by_elements(ir, type, address, stride, tail);
  LLVMValueRef piece = LLVMGetPoison(type);
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    const LLVMValueRef there = ir.address(address, ir.mul(stride, ir.word(lane)));
    piece = ir.insert(piece, ir.load(element, there, bytes_of(ir, element)), lane);
  }
  return piece;
}

void scatter_piece(Ir& ir, LLVMValueRef value, LLVMValueRef address, LLVMValueRef stride,
                   const Tail& tail) {
  if (tail) return store_by_elements(ir, value, address, stride, tail);
  const unsigned bytes = bytes_of(ir, Ir::element(LLVMTypeOf(value)));
  for (int lane = 0; lane < kLanes; ++lane) {
    ir.store(ir.extract(value, lane), ir.address(address, ir.mul(stride, ir.word(lane))), bytes);
  }
}

}  // namespace lamella::tile
