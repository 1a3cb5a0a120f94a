// Calls of library functions from generated code.
#include "lamella/tile/cpu/math_value.h"

#include <array>

namespace lamella::tile {

namespace {

// A function that calls a library function for every lane.
LLVMValueRef lane_function(Ir& ir, const math::LibraryFunction& function, LLVMTypeRef type,
                           size_t operands) {
  const std::array parameters = {type, type};
  const std::string name = std::string("each_") + function.name;
  return ir.helper(name, std::span(parameters).first(operands), type, [&] {
    std::array<LLVMValueRef, 2> slots;
    for (size_t k = 0; k < operands; ++k) {
      slots[k] = ir.stack_slot(type, 1, 64);
      ir.store(ir.parameter(static_cast<int>(k)), slots[k], 64);
    }
    ir.loop(ir.word(0), ir.word(kLanes), ir.word(1), [&](LLVMValueRef lane) {
      const LLVMValueRef offset = ir.mul(lane, ir.word(8));
      const auto load = [&](size_t k) { return ir.load(ir.f64, ir.address(slots[k], offset), 8); };
      const LLVMValueRef result = operands == 2
                                      ? ir.call_external(function.name, ir.f64, {load(0), load(1)})
                                      : ir.call_external(function.name, ir.f64, {load(0)});
      ir.store(result, ir.address(slots[0], offset), 8);
    });
    LLVMBuildRet(ir.builder(), ir.load(type, slots[0], 64));
  });
}

}  // namespace

IrReal scale_float32(IrReal p, IrReal n) {
  Ir& ir = *p.ir;
  // AVX-512 has an instruction for it, with the same single rounding.
  if (ir.set() != InstructionSet::Avx512 || !Ir::is_vector(p.v)) {
    return math::scale_in_two_steps(p, n);
  }
  constexpr int64_t kCurrentRounding = 4;
  return {&ir, ir.intrinsic("llvm.x86.avx512.mask.scalef.ps.512", {},
                            {p.v, n.v, LLVMConstNull(LLVMTypeOf(p.v)), ir.integer(ir.i16, -1),
                             ir.integer(ir.i32, kCurrentRounding)})};
}

IrReal call_each(const math::LibraryFunction& function, IrReal a) {
  Ir& ir = *a.ir;
  if (!Ir::is_vector(a.v)) return {&ir, ir.call_external(function.name, ir.f64, {a.v})};
  return {&ir, ir.call(lane_function(ir, function, LLVMTypeOf(a.v), 1), {a.v})};
}

IrReal call_each(const math::LibraryFunction& function, IrReal a, IrReal b) {
  Ir& ir = *a.ir;
  if (!Ir::is_vector(a.v)) return {&ir, ir.call_external(function.name, ir.f64, {a.v, b.v})};
  return {&ir, ir.call(lane_function(ir, function, LLVMTypeOf(a.v), 2), {a.v, b.v})};
}

}  // namespace lamella::tile
