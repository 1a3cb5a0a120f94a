// Type rules that many operators share.
#pragma once

#include "lamella/ops/opdef.h"

namespace lamella::infer {

// Result = the first operand's type; the others must broadcast to its shape.
LAMELLA_API void same(InferCall& call);
// NumPy broadcasting of all operands; the dtype of the last operand, the layout of the first
// operand that has the result's shape, or else its rank.
LAMELLA_API void elementwise(InferCall& call);
// The same with a bool result.
LAMELLA_API void predicate(InferCall& call);
// The first operand's type with its axes (attribute 0: Axes, normalised, not empty) of size 1.
LAMELLA_API void reduce_keeping_axes(InferCall& call);

}  // namespace lamella::infer
