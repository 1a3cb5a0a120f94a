// Detection of the CPU's instruction set and construction of target machines.
#include "lamella/tile/cpu/target.h"

#include <array>
#include <mutex>
#include <vector>

#include <llvm-c/Core.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>

#include "lamella/base/env.h"
#include "lamella/base/error.h"

namespace lamella::tile {

namespace {

// The first use of LLVM in the process.
void initialize_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    // This LLVM is the library's own, so its options disturb nobody. Strength reduction takes a
    // third of the compile time and gains nothing on our loops, which step by constants.
    const std::array options = {"lamella", "-disable-lsr"};
    LLVMParseCommandLineOptions(static_cast<int>(options.size()), options.data(), "");
  });
}

std::string take(char* message) {
  std::string text = message;
  LLVMDisposeMessage(message);
  return text;
}

TargetDescription describe(InstructionSet set) {
  initialize_llvm();
  TargetDescription result;
  result.triple = take(LLVMGetDefaultTargetTriple());
#if defined(__x86_64__)
  switch (set) {
    case InstructionSet::Generic:
      result.cpu = "x86-64";
      break;
    case InstructionSet::Avx2:
      result.cpu = "x86-64-v3";
      break;
    case InstructionSet::Avx512:
      result.cpu = take(LLVMGetHostCPUName());
      result.features = take(LLVMGetHostCPUFeatures());
      break;
  }
#else
  result.cpu = take(LLVMGetHostCPUName());
  result.features = take(LLVMGetHostCPUFeatures());
#endif
  return result;
}

InstructionSet detect() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("f16c");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (avx2 && avx512) return InstructionSet::Avx512;
  if (avx2) return InstructionSet::Avx2;
#endif
  return InstructionSet::Generic;
}

InstructionSet choose() {
  const InstructionSet widest = detect();
  const std::string wanted = environment("LAMELLA_ISA").value_or("");
  if (wanted.empty()) return widest;
  constexpr std::array<std::string_view, 3> names = {"generic", "avx2", "avx512"};
  for (size_t i = 0; i < names.size(); ++i) {
    if (wanted == names[i]) return std::min(widest, static_cast<InstructionSet>(i));
  }
  fail(ErrorKind::Value, "LAMELLA_ISA must be generic, avx2 or avx512, got \"{}\"", wanted);
}

struct Pool {
  std::mutex mutex;
  std::array<std::vector<LLVMTargetMachineRef>, 3> idle;
};

Pool& pool() {
  static auto& instance = *new Pool;  // never destroyed: kernels may be compiled while exiting
  return instance;
}

LLVMTargetMachineRef make_machine(InstructionSet set) {
  const TargetDescription& description = target_description(set);
  LLVMTargetRef target = nullptr;
  char* message = nullptr;
  if (LLVMGetTargetFromTriple(description.triple.c_str(), &target, &message)) {
    fail(ErrorKind::Internal, "[tile] LLVM has no target for {}: {}", description.triple,
         take(message));
  }
  // Small code model: a kernel's constants lie beside its code, and what is far, the C library's
  // functions, the linker reaches through stubs.
  const LLVMTargetMachineRef machine = LLVMCreateTargetMachine(
      target, description.triple.c_str(), description.cpu.c_str(), description.features.c_str(),
      LLVMCodeGenLevelDefault, LLVMRelocPIC, LLVMCodeModelSmall);
  LAMELLA_CHECK(machine != nullptr);
  return machine;
}

}  // namespace

InstructionSet native_instruction_set() {
  static const InstructionSet set = choose();
  return set;
}

const TargetDescription& target_description(InstructionSet set) {
  static auto& descriptions = *new std::array<TargetDescription, 3>{
      describe(InstructionSet::Generic), describe(InstructionSet::Avx2),
      describe(InstructionSet::Avx512)};
  return descriptions[static_cast<size_t>(set)];
}

PooledTargetMachine::PooledTargetMachine(InstructionSet set) : set_(set) {
  {
    std::lock_guard lock(pool().mutex);
    auto& idle = pool().idle[static_cast<size_t>(set)];
    if (!idle.empty()) {
      machine_ = idle.back();
      idle.pop_back();
      return;
    }
  }
  machine_ = make_machine(set);
}

PooledTargetMachine::~PooledTargetMachine() {
  std::lock_guard lock(pool().mutex);
  pool().idle[static_cast<size_t>(set_)].push_back(machine_);
}

}  // namespace lamella::tile
