// Loops and branches of an executable: their regions as executables of their own, run in turn.
#pragma once

#include <memory>
#include <vector>

#include "lamella/device/allocation.h"
#include "lamella/ops/opdef.h"
#include "lamella/runtime/executable.h"

namespace lamella {

class ControlStep {
 public:
  // Compiles the regions of a node whose lowering is of kind Control.
  explicit ControlStep(const Node& node);

  // Whether a body can fail because of data.
  bool may_fail() const;
  // Memory that a call needs beside its operands and results; sees their sizes, not their data.
  int64_t scratch_bytes(const KernelCall& call, std::span<const int64_t> bindings) const;
  // The call's operands and results are dense.
  void run(const KernelCall& call, std::span<const int64_t> bindings, Interruption interruption);

 private:
  struct Run;

  // A region as it was recorded, and compiled.
  struct Body {
    Graph recorded;
    std::vector<const Node*> operations;
    std::unique_ptr<Executable> code;
  };

  int64_t state_bytes(const KernelCall& call) const;

  Control form_;
  std::vector<Body> regions_;
};

}  // namespace lamella
