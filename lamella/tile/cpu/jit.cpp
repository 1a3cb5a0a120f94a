// Code generation and linking by LLVM's ORC layer.
#include "lamella/tile/cpu/jit.h"

#include <array>
#include <cmath>
#include <mutex>

#include <llvm-c/Analysis.h>
#include <llvm-c/Error.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include "lamella/base/error.h"
#include "lamella/tile/cpu/target.h"
#include "lamella/tile/math/division.h"
#include "lamella/tile/math/functions.h"

namespace lamella::tile {

namespace {

void check(LLVMErrorRef error, std::string_view step) {
  if (!error) return;
  char* message = LLVMGetErrorMessage(error);
  const std::string text = message;
  LLVMDisposeErrorMessage(message);
  fail(ErrorKind::Internal, "[tile] {} failed: {}", step, text);
}

}  // namespace

std::string compile_object(Ir& ir) {
#ifndef NDEBUG
  char* problem = nullptr;
  if (LLVMVerifyModule(ir.module(), LLVMReturnStatusAction, &problem)) {
    fail(ErrorKind::Internal, "[tile] emitted a module that LLVM rejects: {}", problem);
  }
  LLVMDisposeMessage(problem);
#endif
  const PooledTargetMachine machine(ir.set());
  LLVMSetTarget(ir.module(), target_description(ir.set()).triple.c_str());
  const LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine.get());
  LLVMSetModuleDataLayout(ir.module(), layout);
  LLVMDisposeTargetData(layout);

  const LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  const LLVMErrorRef error = LLVMRunPasses(
      ir.module(), "function(instcombine<no-verify-fixpoint>,early-cse)", machine.get(), options);
  LLVMDisposePassBuilderOptions(options);
  check(error, "optimising a kernel");

  LLVMMemoryBufferRef buffer = nullptr;
  char* message = nullptr;
  if (LLVMTargetMachineEmitToMemoryBuffer(machine.get(), ir.module(), LLVMObjectFile, &message,
                                          &buffer)) {
    const std::string text = message;
    LLVMDisposeMessage(message);
    fail(ErrorKind::Internal, "[tile] generating code failed: {}", text);
  }
  std::string object(LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
  LLVMDisposeMemoryBuffer(buffer);
  return object;
}

// One JITDylib of the session. LLVM cannot delete these, so a cleared one is used again.
struct LinkedCode::Library {
  LLVMOrcJITDylibRef dylib;
};

namespace {

class Session {
 public:
  // Never destroyed: kernels may outlive static objects.
  static Session& instance() {
    static auto& session = *new Session;
    return session;
  }

  LLVMOrcLLJITRef jit() const { return jit_; }

  LLVMOrcJITDylibRef acquire() {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      const LLVMOrcJITDylibRef dylib = idle_.back();
      idle_.pop_back();
      return dylib;
    }
    const std::string name = fmt::format("kernel{}", count_++);
    const LLVMOrcJITDylibRef dylib = LLVMOrcExecutionSessionCreateBareJITDylib(
        LLVMOrcLLJITGetExecutionSession(jit_), name.c_str());
    return dylib;
  }
  void release(LLVMOrcJITDylibRef dylib) {
    LLVMConsumeError(LLVMOrcJITDylibClear(dylib));
    std::lock_guard lock(mutex_);
    idle_.push_back(dylib);
  }

  // The C library's functions that kernels call, by address: nothing is looked up by name in the
  // process.
  void define_functions(LLVMOrcJITDylibRef dylib) const {
    struct Function {
      const char* name;
      void* address;
    };
    std::vector<Function> functions = {
        {"fmaf", reinterpret_cast<void*>(static_cast<float (*)(float, float, float)>(::fmaf))},
        {"fma", reinterpret_cast<void*>(static_cast<double (*)(double, double, double)>(::fma))},
        {"memset", reinterpret_cast<void*>(::memset)},
        {"memcpy",
         reinterpret_cast<void*>(static_cast<void* (*)(void*, const void*, size_t)>(::memcpy))},
    };
    const auto add = [&](const math::LibraryFunction& function) {
      functions.push_back({function.name, function.two ? reinterpret_cast<void*>(function.two)
                                                       : reinterpret_cast<void*>(function.one)});
    };
    add(math::kLibraryFmod);
    for (int i = 0; i < kOpcodeCount; ++i) {
      const auto* function = math::library_function(static_cast<Opcode>(i));
      if (function) add(*function);
    }
    std::vector<LLVMOrcCSymbolMapPair> pairs;
    for (const Function& function : functions) {
      pairs.push_back(
          {LLVMOrcLLJITMangleAndIntern(jit_, function.name),
           {reinterpret_cast<LLVMOrcExecutorAddress>(function.address),
            {LLVMJITSymbolGenericFlagsExported | LLVMJITSymbolGenericFlagsCallable, 0}}});
    }
    check(LLVMOrcJITDylibDefine(dylib, LLVMOrcAbsoluteSymbols(pairs.data(), pairs.size())),
          "defining library functions");
  }

 private:
  Session() {
    target_description(InstructionSet::Generic);  // initialises LLVM
    check(LLVMOrcCreateLLJIT(&jit_, nullptr), "starting the just-in-time linker");
  }

  LLVMOrcLLJITRef jit_ = nullptr;
  std::mutex mutex_;
  std::vector<LLVMOrcJITDylibRef> idle_;
  int64_t count_ = 0;
};

}  // namespace

LinkedCode::LinkedCode(std::string_view object) {
  Session& session = Session::instance();
  library_ = new Library{session.acquire()};
  try {
    session.define_functions(library_->dylib);
    const LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRangeCopy(object.data(), object.size(), "kernel");
    check(LLVMOrcLLJITAddObjectFile(session.jit(), library_->dylib, buffer), "linking a kernel");
  } catch (...) {
    session.release(library_->dylib);
    delete library_;
    throw;
  }
}

LinkedCode::~LinkedCode() {
  Session::instance().release(library_->dylib);
  delete library_;
}

namespace {

struct Lookup {
  LLVMErrorRef error = nullptr;
  LLVMOrcExecutorAddress address = 0;
};

void record_lookup(LLVMErrorRef error, LLVMOrcCSymbolMapPairs result, size_t count, void* context) {
  auto& lookup = *static_cast<Lookup*>(context);
  lookup.error = error;
  if (!error && count == 1) lookup.address = result[0].Sym.Address;
}

}  // namespace

void* LinkedCode::find(const char* name) const {
  const LLVMOrcLLJITRef jit = Session::instance().jit();
  LLVMOrcCJITDylibSearchOrderElement order = {library_->dylib,
                                              LLVMOrcJITDylibLookupFlagsMatchAllSymbols};
  LLVMOrcCLookupSetElement symbol = {LLVMOrcLLJITMangleAndIntern(jit, name),
                                     LLVMOrcSymbolLookupFlagsRequiredSymbol};
  // The session's queue of code to link is common to all threads: one look-up at a time, or another
  // thread may take this one's work and still be at it when the call returns.
  static std::mutex one_at_a_time;
  std::lock_guard lock(one_at_a_time);
  Lookup lookup;
  LLVMOrcExecutionSessionLookup(LLVMOrcLLJITGetExecutionSession(jit), LLVMOrcLookupKindStatic,
                                &order, 1, &symbol, 1, record_lookup, &lookup);
  check(lookup.error, "linking a kernel");
  LAMELLA_CHECK(lookup.address != 0);
  return reinterpret_cast<void*>(lookup.address);
}

}  // namespace lamella::tile
