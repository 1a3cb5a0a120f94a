// One step of an executable: a compiled tile program or a library kernel, with its operands in
// terms of values and size expressions.
#pragma once

#include <memory>
#include <vector>

#include "lamella/tile/cpu/kernel.h"
#include "lamella/transform/fusion.h"

namespace lamella {

// Where an operand's first element lies in its base: elements from the start, plus numbers times
// factors.
struct ElementOffset {
  struct Term {
    Value* number;  // int64
    Dim factor;
    Dim low, high;     // the values accepted
    const Node* view;  // where it comes from, for the error
  };
  Dim constant = 0;
  std::vector<Term> terms;

  friend bool operator==(const ElementOffset& a, const ElementOffset& b) {
    return a.constant == b.constant && a.terms.size() == b.terms.size() &&
           std::equal(a.terms.begin(), a.terms.end(), b.terms.begin(),
                      [](const Term& x, const Term& y) {
                        return x.number == y.number && x.factor == y.factor;
                      });
  }
};

// A strided operand or result of a step.
struct StepBuffer {
  Value* base = nullptr;  // whose memory it is
  tile::Access access = tile::Access::Read;
  ElementOffset offset;
  std::vector<Dim>
      strides;             // for a tile program along its axes, for a kernel along the value's axes
  std::vector<Dim> sizes;  // kernels only
  DType dtype = DType::Float32;
};

class ControlStep;

struct Step {
  // A tile program ...
  tile::Program program;
  Ref<const tile::Kernel> code;
  std::vector<Dim> extents;
  std::vector<Value*> scalars;
  std::vector<Ref<Value>> owned;  // size numbers made for this step
  // ... or a kernel node.
  Node* kernel = nullptr;
  size_t operand_count = 0;              // the first buffers are operands, the rest results
  std::shared_ptr<ControlStep> control;  // of a kernel node with regions

  std::vector<StepBuffer> buffers;  // a base that is a number is passed by value
  std::vector<const Node*> nodes;   // all that the step computes, in program order
};

// The tile program and arguments of a fused group. The program is not compiled yet.
LAMELLA_API Step make_tile_step(const Fusion& fusion, size_t step);
LAMELLA_API Step make_kernel_step(Node& node);

}  // namespace lamella
