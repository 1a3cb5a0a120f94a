// Lanes to a scalar, partial results to one.
#include "lamella/tile/cpu/reduction_tree.h"

namespace lamella::tile {

LLVMValueRef combine_lanes(Ir& ir, Opcode opcode, DType dtype,
                           std::span<const LLVMValueRef> pieces) {
  std::vector<LLVMValueRef> parts(pieces.begin(), pieces.end());
  while (parts.size() > 1) {
    const size_t half = parts.size() / 2;
    for (size_t i = 0; i < half; ++i) {
      parts[i] = reduction_step(ir, opcode, dtype, parts[i], parts[i + half]);
    }
    parts.resize(half);
  }
  LLVMValueRef all = parts[0];
  for (int half = kLanes / 2; half >= 1; half /= 2) {
    std::array<int, kLanes> low, high;
    for (int i = 0; i < half; ++i) {
      low[static_cast<size_t>(i)] = i;
      high[static_cast<size_t>(i)] = i + half;
    }
    const auto lanes = static_cast<size_t>(half);
    all = reduction_step(ir, opcode, dtype, ir.shuffle(all, all, std::span(low).first(lanes)),
                         ir.shuffle(all, all, std::span(high).first(lanes)));
  }
  return ir.extract(all, 0);
}

PairwiseStack::PairwiseStack(Ir& ir, Opcode opcode, DType dtype)
    : ir_(ir), opcode_(opcode), dtype_(dtype), type_(compute_type(ir, dtype)) {
  entries_ = ir.stack_slot(type_, 64, 16);
  depth_ = ir.stack_slot(ir.i64, 1, 8);
}

void PairwiseStack::clear() {
  ir_.store(ir_.word(0), depth_, 8);
}

LLVMValueRef PairwiseStack::entry(LLVMValueRef depth) {
  LLVMValueRef index = depth;
  return LLVMBuildGEP2(ir_.builder(), type_, entries_, &index, 1, "");
}

void PairwiseStack::push(LLVMValueRef index, LLVMValueRef partial) {
  // As many joins as the index has trailing one bits.
  const LLVMValueRef joins =
      ir_.intrinsic("llvm.cttz", {ir_.i64}, {ir_.bit_not(index), ir_.integer(ir_.i1, 0)});
  const LLVMValueRef depth = ir_.load(ir_.i64, depth_, 8);
  const Ir::Values joined = ir_.loop(
      ir_.word(0), joins, ir_.word(1), {partial}, [&](LLVMValueRef i, const Ir::Values& right) {
        const LLVMValueRef left_depth = ir_.sub(ir_.sub(depth, ir_.word(1)), i);
        const LLVMValueRef left = ir_.load(type_, entry(left_depth), 1);
        return Ir::Values{reduction_step(ir_, opcode_, dtype_, left, right[0])};
      });
  const LLVMValueRef new_depth = ir_.sub(depth, joins);
  ir_.store(joined[0], entry(new_depth), 1);
  ir_.store(ir_.add(new_depth, ir_.word(1)), depth_, 8);
}

LLVMValueRef PairwiseStack::finish() {
  const LLVMValueRef last = ir_.sub(ir_.load(ir_.i64, depth_, 8), ir_.word(1));
  const LLVMValueRef top = ir_.load(type_, entry(last), 1);
  return ir_.loop(ir_.word(0), last, ir_.word(1), {top},
                  [&](LLVMValueRef i, const Ir::Values& right) {
                    const LLVMValueRef left_depth = ir_.sub(ir_.sub(last, ir_.word(1)), i);
                    const LLVMValueRef left = ir_.load(type_, entry(left_depth), 1);
                    return Ir::Values{reduction_step(ir_, opcode_, dtype_, left, right[0])};
                  })[0];
}

}  // namespace lamella::tile
