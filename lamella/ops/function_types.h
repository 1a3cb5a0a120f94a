// The types that operators' parameters are declared with.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "lamella/ir/tensor.h"

namespace lamella {

// An operand that may be left out.
using OptionalOperand = Operand;
using ObjectAttribute = Ref<AttributeObject>;

}  // namespace lamella
