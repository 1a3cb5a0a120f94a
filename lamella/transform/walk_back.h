// The walk from results back to operands over recorded operations, for gradients and for the
// backward passes of loops and branches.
#pragma once

#include "lamella/base/pointer_map.h"
#include "lamella/ir/tensor.h"

namespace lamella {

// What is known of the derivatives so far, by value.
using Cotangents = PointerMap<Value, Tensor>;

// Adds to the cotangent of a value.
void accumulate(Cotangents& cotangents, const Value* value, const Tensor& cotangent);

// Extends `cotangents` from results to everything between them and `wrt`, over the operations that
// are on the current recorder's tape from number `first` on.
void walk_back(Cotangents& cotangents, std::span<Value* const> wrt, size_t first);
// The same over given operations, in the order in which they were recorded.
void walk_back(Cotangents& cotangents, std::span<Value* const> wrt,
               std::span<const Ref<Node>> nodes);

}  // namespace lamella
