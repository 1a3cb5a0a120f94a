// Instruction sets and the LLVM target machines for them.
#pragma once

#include <string>

#include <llvm-c/TargetMachine.h>

#include "lamella/tile/cpu/kernel.h"

namespace lamella::tile {

// The processor name and features LLVM compiles for.
struct TargetDescription {
  std::string triple;
  std::string cpu;
  std::string features;
};

const TargetDescription& target_description(InstructionSet set);

// A target machine for the set, owned by the calling thread's use of it: taken from a pool, given
// back when this object dies.
class PooledTargetMachine {
 public:
  explicit PooledTargetMachine(InstructionSet set);
  ~PooledTargetMachine();
  PooledTargetMachine(const PooledTargetMachine&) = delete;
  PooledTargetMachine& operator=(const PooledTargetMachine&) = delete;

  LLVMTargetMachineRef get() const { return machine_; }

 private:
  InstructionSet set_;
  LLVMTargetMachineRef machine_;
};

}  // namespace lamella::tile
