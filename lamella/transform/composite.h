// What a composite operator is made of, recorded.
#pragma once

#include <vector>

#include "lamella/ir/tensor.h"

namespace lamella {

// Records the operators that the composite of `node` is made of, with `operands` in place of its
// own, and gives its results in the dtypes it declares. Operands of 16-bit floats are computed with
// in float32, unless the operator keeps their precision.
std::vector<Tensor> expand_composite(const Node& node, std::vector<Tensor> operands);

}  // namespace lamella
