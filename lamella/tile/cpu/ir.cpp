// Construction of LLVM modules.
#include "lamella/tile/cpu/ir.h"

#include <array>

#include "lamella/base/error.h"

namespace lamella::tile {

Ir::Ir(InstructionSet set) : set_(set) {
  context_ = LLVMContextCreate();
  module_ = LLVMModuleCreateWithNameInContext("lamella", context_);
  builder_ = LLVMCreateBuilderInContext(context_);
  i1 = LLVMInt1TypeInContext(context_);
  i8 = LLVMInt8TypeInContext(context_);
  i16 = LLVMInt16TypeInContext(context_);
  i32 = LLVMInt32TypeInContext(context_);
  i64 = LLVMInt64TypeInContext(context_);
  f32 = LLVMFloatTypeInContext(context_);
  f64 = LLVMDoubleTypeInContext(context_);
  pointer = LLVMPointerTypeInContext(context_, 0);
}

Ir::~Ir() {
  LLVMDisposeBuilder(builder_);
  LLVMDisposeModule(module_);
  LLVMContextDispose(context_);
}

namespace {

LLVMValueRef spread(LLVMTypeRef type, LLVMValueRef scalar) {
  if (!Ir::is_vector(type)) return scalar;
  std::array<LLVMValueRef, 64> lanes;
  const unsigned count = LLVMGetVectorSize(type);
  for (unsigned i = 0; i < count; ++i) lanes[i] = scalar;
  return LLVMConstVector(lanes.data(), count);
}

}  // namespace

LLVMValueRef Ir::integer(LLVMTypeRef type, int64_t value) const {
  return spread(type, LLVMConstInt(element(type), static_cast<unsigned long long>(value), 1));
}

LLVMValueRef Ir::real(LLVMTypeRef type, double value) const {
  return spread(type, LLVMConstReal(element(type), value));
}

LLVMValueRef Ir::lane_numbers(LLVMTypeRef element_type, int64_t lanes) const {
  std::array<LLVMValueRef, 64> numbers;
  for (size_t i = 0; i < static_cast<size_t>(lanes); ++i) {
    numbers[i] = LLVMConstInt(element_type, i, 0);
  }
  return LLVMConstVector(numbers.data(), static_cast<unsigned>(lanes));
}

LLVMValueRef Ir::fma(LLVMValueRef a, LLVMValueRef b, LLVMValueRef c) {
  if (set_ != InstructionSet::Generic) return intrinsic("llvm.fma", {a, b, c});
  // Without the instruction, one call a lane; kept in a function of its own for the code's size.
  const LLVMTypeRef type = LLVMTypeOf(a);
  const LLVMTypeRef scalar = element(type);
  const char* name = scalar == f32 ? "fmaf" : "fma";
  if (!is_vector(type)) return call_external(name, type, {a, b, c});
  const std::array parameters = {type, type, type};
  const auto lanes = static_cast<int>(LLVMGetVectorSize(type));
  const LLVMValueRef function =
      helper(name + std::string("_") + std::to_string(lanes), parameters, type, [&] {
        LLVMValueRef result = LLVMGetUndef(type);
        for (int lane = 0; lane < lanes; ++lane) {
          const LLVMValueRef value =
              call_external(name, scalar,
                            {extract(parameter(0), lane), extract(parameter(1), lane),
                             extract(parameter(2), lane)});
          result = LLVMBuildInsertElement(builder_, result, value, integer(i32, lane), "");
        }
        LLVMBuildRet(builder_, result);
      });
  return call(function, {a, b, c});
}

LLVMValueRef Ir::splat(LLVMValueRef scalar, int64_t lanes) {
  if (is_vector(scalar)) return scalar;
  const LLVMTypeRef type = vector(LLVMTypeOf(scalar), lanes);
  if (LLVMIsConstant(scalar) && !LLVMIsUndef(scalar) && LLVMIsAConstantExpr(scalar) == nullptr) {
    return spread(type, scalar);
  }
  const LLVMValueRef first =
      LLVMBuildInsertElement(builder_, LLVMGetPoison(type), scalar, integer(i32, 0), "");
  return LLVMBuildShuffleVector(builder_, first, LLVMGetPoison(type),
                                LLVMConstNull(vector(i32, lanes)), "");
}

LLVMValueRef Ir::insert(LLVMValueRef vector, LLVMValueRef scalar, int64_t lane) {
  return LLVMBuildInsertElement(builder_, vector, scalar, integer(i32, lane), "");
}

LLVMValueRef Ir::extract(LLVMValueRef vector, int lane) {
  return LLVMBuildExtractElement(builder_, vector, integer(i32, lane), "");
}

LLVMValueRef Ir::shuffle(LLVMValueRef a, LLVMValueRef b, std::span<const int> lanes) {
  std::array<LLVMValueRef, 64> mask;
  for (size_t i = 0; i < lanes.size(); ++i) mask[i] = integer(i32, lanes[i]);
  return LLVMBuildShuffleVector(
      builder_, a, b, LLVMConstVector(mask.data(), static_cast<unsigned>(lanes.size())), "");
}

LLVMValueRef Ir::any(LLVMValueRef mask) {
  if (!is_vector(mask)) return mask;
  const LLVMTypeRef bits = integer(LLVMGetVectorSize(LLVMTypeOf(mask)));
  const LLVMValueRef packed = LLVMBuildBitCast(builder_, mask, bits, "");
  return icmp(LLVMIntNE, packed, LLVMConstNull(bits));
}

LLVMValueRef Ir::intrinsic(std::string_view name, std::initializer_list<LLVMTypeRef> types,
                           std::initializer_list<LLVMValueRef> arguments) {
  const unsigned id = LLVMLookupIntrinsicID(name.data(), name.size());
  LAMELLA_CHECK(id != 0);
  auto* type_list = const_cast<LLVMTypeRef*>(types.begin());
  const LLVMValueRef declaration =
      LLVMGetIntrinsicDeclaration(module_, id, type_list, types.size());
  return LLVMBuildCall2(builder_, LLVMIntrinsicGetType(context_, id, type_list, types.size()),
                        declaration, const_cast<LLVMValueRef*>(arguments.begin()),
                        static_cast<unsigned>(arguments.size()), "");
}

LLVMValueRef Ir::intrinsic(std::string_view name, std::initializer_list<LLVMValueRef> arguments) {
  return intrinsic(name, {LLVMTypeOf(*arguments.begin())}, arguments);
}

LLVMValueRef Ir::address(LLVMValueRef base, LLVMValueRef bytes) {
  LLVMValueRef index = bytes;
  return LLVMBuildGEP2(builder_, i8, base, &index, 1, "");
}

LLVMValueRef Ir::load(LLVMTypeRef type, LLVMValueRef address, unsigned alignment) {
  const LLVMValueRef value = LLVMBuildLoad2(builder_, type, address, "");
  LLVMSetAlignment(value, alignment);
  return value;
}

void Ir::store(LLVMValueRef value, LLVMValueRef address, unsigned alignment) {
  LLVMSetAlignment(LLVMBuildStore(builder_, value, address), alignment);
}

void Ir::store_streamed(LLVMValueRef value, LLVMValueRef address, unsigned alignment) {
  const LLVMValueRef store = LLVMBuildStore(builder_, value, address);
  LLVMSetAlignment(store, alignment);
  LLVMMetadataRef one = LLVMValueAsMetadata(integer(i32, 1));
  const LLVMMetadataRef node = LLVMMDNodeInContext2(context_, &one, 1);
  constexpr std::string_view kKind = "nontemporal";
  LLVMSetMetadata(store, LLVMGetMDKindIDInContext(context_, kKind.data(), kKind.size()),
                  LLVMMetadataAsValue(context_, node));
}

void Ir::fence() {
  LLVMBuildFence(builder_, LLVMAtomicOrderingSequentiallyConsistent, false, "");
}

void Ir::prefetch(LLVMValueRef address, int write, int locality) {
  intrinsic("llvm.prefetch", {pointer},
            {address, integer(i32, write), integer(i32, locality), integer(i32, 1)});
}

LLVMValueRef Ir::stack_slot(LLVMTypeRef type, int64_t count, unsigned alignment) {
  // At the start of the entry block, so that a slot asked for inside a loop exists once.
  const LLVMBasicBlockRef here = LLVMGetInsertBlock(builder_);
  const LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(function_);
  const LLVMValueRef first = LLVMGetFirstInstruction(entry);
  if (first) {
    LLVMPositionBuilderBefore(builder_, first);
  } else {
    LLVMPositionBuilderAtEnd(builder_, entry);
  }
  const LLVMValueRef slot = LLVMBuildArrayAlloca(builder_, type, word(count), "");
  LLVMSetAlignment(slot, alignment);
  LLVMPositionBuilderAtEnd(builder_, here);
  return slot;
}

void Ir::add_attributes(LLVMValueRef function) {
  const auto add_enum = [&](std::string_view name) {
    const unsigned kind = LLVMGetEnumAttributeKindForName(name.data(), name.size());
    LLVMAddAttributeAtIndex(function, static_cast<LLVMAttributeIndex>(LLVMAttributeFunctionIndex),
                            LLVMCreateEnumAttribute(context_, kind, 0));
  };
  const auto add_text = [&](std::string_view name, std::string_view value) {
    LLVMAddAttributeAtIndex(
        function, static_cast<LLVMAttributeIndex>(LLVMAttributeFunctionIndex),
        LLVMCreateStringAttribute(context_, name.data(), static_cast<unsigned>(name.size()),
                                  value.data(), static_cast<unsigned>(value.size())));
  };
  add_enum("nounwind");
  // A call of pow is that call: not exp2, whose bits differ and which nobody provides.
  add_text("no-builtins", "");
  if (set_ == InstructionSet::Avx512) {
    add_text("prefer-vector-width", "512");
    add_text("min-legal-vector-width", "512");
  }
}

LLVMValueRef Ir::begin_function(const std::string& name, std::span<const LLVMTypeRef> parameters,
                                LLVMTypeRef result, bool internal) {
  const LLVMTypeRef type = LLVMFunctionType(result ? result : LLVMVoidTypeInContext(context_),
                                            const_cast<LLVMTypeRef*>(parameters.data()),
                                            static_cast<unsigned>(parameters.size()), 0);
  function_ = LLVMAddFunction(module_, name.c_str(), type);
  if (internal) LLVMSetLinkage(function_, LLVMInternalLinkage);
  add_attributes(function_);
  LLVMPositionBuilderAtEnd(builder_, new_block());
  return function_;
}

LLVMValueRef Ir::helper(const std::string& name, std::span<const LLVMTypeRef> parameters,
                        LLVMTypeRef result, FunctionRef<void()> body) {
  if (const LLVMValueRef existing = LLVMGetNamedFunction(module_, name.c_str())) return existing;
  const LLVMValueRef outer = function_;
  const LLVMBasicBlockRef here = LLVMGetInsertBlock(builder_);
  const LLVMValueRef function = begin_function(name, parameters, result, true);
  body();
  function_ = outer;
  LLVMPositionBuilderAtEnd(builder_, here);
  return function;
}

LLVMValueRef Ir::call(LLVMValueRef function, std::initializer_list<LLVMValueRef> arguments) {
  return LLVMBuildCall2(builder_, LLVMGlobalGetValueType(function), function,
                        const_cast<LLVMValueRef*>(arguments.begin()),
                        static_cast<unsigned>(arguments.size()), "");
}

LLVMValueRef Ir::call_external(const char* name, LLVMTypeRef result,
                               std::initializer_list<LLVMValueRef> arguments) {
  LLVMValueRef function = LLVMGetNamedFunction(module_, name);
  if (!function) {
    std::array<LLVMTypeRef, 4> types;
    size_t count = 0;
    for (const LLVMValueRef argument : arguments) types[count++] = LLVMTypeOf(argument);
    function = LLVMAddFunction(
        module_, name, LLVMFunctionType(result, types.data(), static_cast<unsigned>(count), 0));
    const std::string_view nounwind = "nounwind";
    LLVMAddAttributeAtIndex(
        function, static_cast<LLVMAttributeIndex>(LLVMAttributeFunctionIndex),
        LLVMCreateEnumAttribute(
            context_, LLVMGetEnumAttributeKindForName(nounwind.data(), nounwind.size()), 0));
  }
  return call(function, arguments);
}

Ir::Values Ir::loop(LLVMValueRef begin, LLVMValueRef end, LLVMValueRef step, const Values& initial,
                    FunctionRef<Values(LLVMValueRef i, const Values& carried)> body) {
  const LLVMBasicBlockRef before = LLVMGetInsertBlock(builder_);
  const LLVMBasicBlockRef inside = new_block();
  const LLVMBasicBlockRef after = new_block();
  LLVMBuildCondBr(builder_, icmp(LLVMIntSLT, begin, end), inside, after);

  LLVMPositionBuilderAtEnd(builder_, inside);
  LLVMValueRef i = LLVMBuildPhi(builder_, LLVMTypeOf(begin), "");
  Values carried;
  for (const LLVMValueRef value : initial) {
    carried.push_back(LLVMBuildPhi(builder_, LLVMTypeOf(value), ""));
  }
  const Values updated = body(i, carried);
  const LLVMValueRef next = add(i, step);
  LLVMBasicBlockRef latch = LLVMGetInsertBlock(builder_);
  LLVMBuildCondBr(builder_, icmp(LLVMIntSLT, next, end), inside, after);
  const auto connect = [&](LLVMValueRef phi, LLVMValueRef from_before, LLVMValueRef from_latch) {
    std::array values = {from_before, from_latch};
    std::array blocks = {before, latch};
    LLVMAddIncoming(phi, values.data(), blocks.data(), 2);
  };
  connect(i, begin, next);
  for (size_t k = 0; k < initial.size(); ++k) connect(carried[k], initial[k], updated[k]);

  LLVMMoveBasicBlockAfter(after, latch);
  LLVMPositionBuilderAtEnd(builder_, after);
  Values results;
  for (size_t k = 0; k < initial.size(); ++k) {
    const LLVMValueRef phi = LLVMBuildPhi(builder_, LLVMTypeOf(initial[k]), "");
    connect(phi, initial[k], updated[k]);
    results.push_back(phi);
  }
  return results;
}

void Ir::loop(LLVMValueRef begin, LLVMValueRef end, LLVMValueRef step,
              FunctionRef<void(LLVMValueRef i)> body) {
  loop(begin, end, step, {}, [&](LLVMValueRef i, const Values&) {
    body(i);
    return Values{};
  });
}

void Ir::if_then(LLVMValueRef condition, FunctionRef<void()> then) {
  if_then(condition, Values{}, [&] {
    then();
    return Values{};
  });
}

Ir::Values Ir::if_then(LLVMValueRef condition, const Values& otherwise,
                       FunctionRef<Values()> then) {
  const LLVMBasicBlockRef before = LLVMGetInsertBlock(builder_);
  const LLVMBasicBlockRef inside = new_block();
  const LLVMBasicBlockRef after = new_block();
  LLVMBuildCondBr(builder_, condition, inside, after);
  LLVMPositionBuilderAtEnd(builder_, inside);
  const Values values = then();
  const LLVMBasicBlockRef end = LLVMGetInsertBlock(builder_);
  LLVMBuildBr(builder_, after);
  LLVMMoveBasicBlockAfter(after, end);
  LLVMPositionBuilderAtEnd(builder_, after);
  Values results;
  for (size_t k = 0; k < otherwise.size(); ++k) {
    const LLVMValueRef phi = LLVMBuildPhi(builder_, LLVMTypeOf(otherwise[k]), "");
    std::array incoming = {otherwise[k], values[k]};
    std::array blocks = {before, end};
    LLVMAddIncoming(phi, incoming.data(), blocks.data(), 2);
    results.push_back(phi);
  }
  return results;
}

std::string Ir::text() const {
  char* printed = LLVMPrintModuleToString(module_);
  std::string result = printed;
  LLVMDisposeMessage(printed);
  return result;
}

}  // namespace lamella::tile
