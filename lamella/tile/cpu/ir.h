// A thin layer over LLVM's C API: one module under construction, types by lane count, constants
// that fit a type, intrinsics by name, structured loops and branches.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include <llvm-c/Core.h>

#include "lamella/base/function_ref.h"
#include "lamella/tile/cpu/kernel.h"

namespace lamella::tile {

// The lanes of every vector, for every instruction set: LLVM splits a piece into the registers a
// machine has, so the operations and their order, hence the bits, are the same on all.
inline constexpr int kLanes = 16;

class Ir {
 public:
  using Values = std::vector<LLVMValueRef>;

  explicit Ir(InstructionSet set);
  ~Ir();
  Ir(const Ir&) = delete;
  Ir& operator=(const Ir&) = delete;

  InstructionSet set() const { return set_; }
  LLVMModuleRef module() const { return module_; }
  LLVMBuilderRef builder() const { return builder_; }

  // Element types.
  LLVMTypeRef i1, i8, i16, i32, i64, f32, f64, pointer;
  LLVMTypeRef integer(unsigned bits) const { return LLVMIntTypeInContext(context_, bits); }
  // `element` with kLanes lanes, or another number.
  static LLVMTypeRef vector(LLVMTypeRef element, int64_t lanes = kLanes) {
    return LLVMVectorType(element, static_cast<unsigned>(lanes));
  }
  static bool is_vector(LLVMTypeRef type) { return LLVMGetTypeKind(type) == LLVMVectorTypeKind; }
  static bool is_vector(LLVMValueRef value) { return is_vector(LLVMTypeOf(value)); }
  static LLVMTypeRef element(LLVMTypeRef type) {
    return is_vector(type) ? LLVMGetElementType(type) : type;
  }
  // `element`, as a vector if `shape` is one.
  static LLVMTypeRef like(LLVMTypeRef shape, LLVMTypeRef element_type) {
    return is_vector(shape) ? LLVMVectorType(element_type, LLVMGetVectorSize(shape)) : element_type;
  }

  // Constants of a scalar or vector type.
  LLVMValueRef integer(LLVMTypeRef type, int64_t value) const;
  LLVMValueRef real(LLVMTypeRef type, double value) const;
  LLVMValueRef word(int64_t value) const { return integer(i64, value); }
  // 0, 1, 2, ... as a vector of an integer type.
  LLVMValueRef lane_numbers(LLVMTypeRef element_type, int64_t lanes = kLanes) const;

  // Operations. The names follow LLVM's instructions.
  LLVMValueRef add(LLVMValueRef a, LLVMValueRef b) { return LLVMBuildAdd(builder_, a, b, ""); }
  LLVMValueRef sub(LLVMValueRef a, LLVMValueRef b) { return LLVMBuildSub(builder_, a, b, ""); }
  LLVMValueRef mul(LLVMValueRef a, LLVMValueRef b) { return LLVMBuildMul(builder_, a, b, ""); }
  LLVMValueRef fadd(LLVMValueRef a, LLVMValueRef b) { return LLVMBuildFAdd(builder_, a, b, ""); }
  LLVMValueRef fsub(LLVMValueRef a, LLVMValueRef b) { return LLVMBuildFSub(builder_, a, b, ""); }
  LLVMValueRef fmul(LLVMValueRef a, LLVMValueRef b) { return LLVMBuildFMul(builder_, a, b, ""); }
  LLVMValueRef fdiv(LLVMValueRef a, LLVMValueRef b) { return LLVMBuildFDiv(builder_, a, b, ""); }
  LLVMValueRef fneg(LLVMValueRef a) { return LLVMBuildFNeg(builder_, a, ""); }
  LLVMValueRef bit_and(LLVMValueRef a, LLVMValueRef b) { return LLVMBuildAnd(builder_, a, b, ""); }
  LLVMValueRef bit_or(LLVMValueRef a, LLVMValueRef b) { return LLVMBuildOr(builder_, a, b, ""); }
  LLVMValueRef bit_xor(LLVMValueRef a, LLVMValueRef b) { return LLVMBuildXor(builder_, a, b, ""); }
  LLVMValueRef bit_not(LLVMValueRef a) { return LLVMBuildNot(builder_, a, ""); }
  LLVMValueRef shl(LLVMValueRef a, int64_t n) {
    return LLVMBuildShl(builder_, a, integer(LLVMTypeOf(a), n), "");
  }
  LLVMValueRef lshr(LLVMValueRef a, int64_t n) {
    return LLVMBuildLShr(builder_, a, integer(LLVMTypeOf(a), n), "");
  }
  LLVMValueRef ashr(LLVMValueRef a, int64_t n) {
    return LLVMBuildAShr(builder_, a, integer(LLVMTypeOf(a), n), "");
  }
  LLVMValueRef icmp(LLVMIntPredicate predicate, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildICmp(builder_, predicate, a, b, "");
  }
  LLVMValueRef fcmp(LLVMRealPredicate predicate, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildFCmp(builder_, predicate, a, b, "");
  }
  LLVMValueRef select(LLVMValueRef condition, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildSelect(builder_, condition, a, b, "");
  }
  LLVMValueRef bitcast(LLVMValueRef a, LLVMTypeRef element_type) {
    return LLVMBuildBitCast(builder_, a, like(LLVMTypeOf(a), element_type), "");
  }
  // Conversions to an element type, keeping the lanes.
  LLVMValueRef convert(LLVMOpcode opcode, LLVMValueRef a, LLVMTypeRef element_type) {
    return LLVMBuildCast(builder_, opcode, a, like(LLVMTypeOf(a), element_type), "");
  }
  LLVMValueRef fma(LLVMValueRef a, LLVMValueRef b, LLVMValueRef c);
  LLVMValueRef splat(LLVMValueRef scalar, int64_t lanes = kLanes);
  LLVMValueRef extract(LLVMValueRef vector, int lane);
  LLVMValueRef insert(LLVMValueRef vector, LLVMValueRef scalar, int64_t lane);
  LLVMValueRef shuffle(LLVMValueRef a, LLVMValueRef b, std::span<const int> lanes);
  // True if any lane of a bool (vector) is.
  LLVMValueRef any(LLVMValueRef mask);
  // An intrinsic overloaded on `types`.
  LLVMValueRef intrinsic(std::string_view name, std::initializer_list<LLVMTypeRef> types,
                         std::initializer_list<LLVMValueRef> arguments);
  // The intrinsic overloaded on its first argument's type.
  LLVMValueRef intrinsic(std::string_view name, std::initializer_list<LLVMValueRef> arguments);

  // Memory. Addresses are a base pointer plus bytes.
  LLVMValueRef address(LLVMValueRef base, LLVMValueRef bytes);
  LLVMValueRef load(LLVMTypeRef type, LLVMValueRef address, unsigned alignment);
  void store(LLVMValueRef value, LLVMValueRef address, unsigned alignment);
  // Past the caches; visible to other threads after a fence.
  void store_streamed(LLVMValueRef value, LLVMValueRef address, unsigned alignment);
  void fence();
  // Hints that never fault: into the first cache for writing, into the second one for reading.
  void prefetch_for_writing(LLVMValueRef address) { prefetch(address, 1, 3); }
  void prefetch_for_reading(LLVMValueRef address) { prefetch(address, 0, 2); }
  // Room in the function's frame for `count` values.
  LLVMValueRef stack_slot(LLVMTypeRef type, int64_t count, unsigned alignment);

  // Functions and control flow.
  LLVMValueRef begin_function(const std::string& name, std::span<const LLVMTypeRef> parameters,
                              LLVMTypeRef result, bool internal);
  LLVMValueRef function() const { return function_; }
  LLVMValueRef parameter(int i) const { return LLVMGetParam(function_, static_cast<unsigned>(i)); }
  LLVMValueRef call(LLVMValueRef function, std::initializer_list<LLVMValueRef> arguments);
  LLVMValueRef call_external(const char* name, LLVMTypeRef result,
                             std::initializer_list<LLVMValueRef> arguments);
  void return_void() { LLVMBuildRetVoid(builder_); }
  // Runs body(i, carried) for i = begin; i < end; i += step; gives the carried values at the end.
  Values loop(LLVMValueRef begin, LLVMValueRef end, LLVMValueRef step, const Values& initial,
              FunctionRef<Values(LLVMValueRef i, const Values& carried)> body);
  void loop(LLVMValueRef begin, LLVMValueRef end, LLVMValueRef step,
            FunctionRef<void(LLVMValueRef i)> body);
  void if_then(LLVMValueRef condition, FunctionRef<void()> then);
  // `then()` where the condition holds, else `otherwise`, element by element the same types.
  Values if_then(LLVMValueRef condition, const Values& otherwise, FunctionRef<Values()> then);

  // Builds an internal function apart from the one under construction, once per name.
  LLVMValueRef helper(const std::string& name, std::span<const LLVMTypeRef> parameters,
                      LLVMTypeRef result, FunctionRef<void()> body);

  std::string text() const;

 private:
  void prefetch(LLVMValueRef address, int write, int locality);
  void add_attributes(LLVMValueRef function);
  LLVMBasicBlockRef new_block() { return LLVMAppendBasicBlockInContext(context_, function_, ""); }

  InstructionSet set_;
  LLVMContextRef context_;
  LLVMModuleRef module_;
  LLVMBuilderRef builder_;
  LLVMValueRef function_ = nullptr;
};

}  // namespace lamella::tile
