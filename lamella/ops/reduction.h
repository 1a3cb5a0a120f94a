// How a reduction over any axes is done in steps that each have one form.
#pragma once

#include "lamella/base/api.h"
#include "lamella/types/tensor_type.h"

namespace lamella {

// The steps of a reduction, by the memory order of its operand alone, so that its bits never depend
// on what it is fused with. Axes of size 1 are in neither.
struct ReductionSteps {
  Axes inner;  // the innermost reduced axes in memory: reduced first, as rows
  Axes outer;  // the rest, reduced as columns
};
LAMELLA_API ReductionSteps reduction_steps(const TensorType& type, const Axes& axes);

}  // namespace lamella
