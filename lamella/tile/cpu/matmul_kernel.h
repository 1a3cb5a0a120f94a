// Matrix products compiled for the CPU.
#pragma once

#include <span>

#include "lamella/base/api.h"
#include "lamella/base/ref.h"
#include "lamella/tile/cpu/kernel.h"
#include "lamella/tile/matmul.h"

namespace lamella::tile {

// A compiled matrix program, for any sizes and strides. Immutable and safe to run from several
// threads at once.
class LAMELLA_API MatmulKernel : public RefCounted<MatmulKernel> {
 public:
  MatmulKernel(MatmulProgram program, InstructionSet set);

  const MatmulProgram& program() const { return program_; }
  // Bytes of working memory a launch needs, for the current thread count.
  int64_t scratch_bytes(const MatmulLaunch& launch) const;
  // Runs over all threads. `scratch` holds scratch_bytes, aligned to 64 bytes.
  void run(const MatmulLaunch& launch, void* scratch) const;

 private:
  MatmulProgram program_;
  InstructionSet set_;
  Ref<const Kernel> epilogue_;
};

}  // namespace lamella::tile
