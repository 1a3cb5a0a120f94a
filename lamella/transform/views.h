// Views resolved to what they read: no element is moved for them.
#pragma once

#include <vector>

#include "lamella/ir/graph.h"
#include "lamella/ops/opdef.h"

namespace lamella {

// A value seen through its chain of views: each axis of the viewing shape walks along one axis of
// `base`, or repeats.
struct ViewedValue {
  // An input, a number, the result of an operator that computes, or of a reshape that merges or
  // splits axes (which names the same memory as its operand).
  Value* base = nullptr;
  InlineVector<int8_t, kMaxRank>
      axis;  // per viewing axis: the base axis it walks, -1 if it repeats
  InlineVector<int64_t, kMaxRank> step;
  struct Offset {
    int8_t axis;         // of the base
    Dim start;           // static
    Value* number;       // plus this number (may be null) ...
    int64_t multiplier;  // ... times this
    Dim low, high;       // the number's accepted values
    const Node* view;    // whose number it is
  };
  std::vector<Offset> offsets;

  bool is_number() const { return base->is_number(); }
};

LAMELLA_API ViewedValue resolve_views(Value* value);
// The same, broadcast to a shape by NumPy's rule.
LAMELLA_API ViewedValue resolve_views(Value* value, const Shape& broadcast);

// Whether elements lie in one order under both layouts: axes of size 1 do not count.
LAMELLA_API bool same_order(const Shape& shape, Layout a, Layout b);

// Whether it reads every element of its base once, in the same order (axes of size 1 aside).
LAMELLA_API bool reads_all_in_order(const ViewedValue& viewed, const Shape& shape);

// For each axis of `to`, the axis of `from` it is, if the shapes differ only in axes of size 1.
LAMELLA_API std::optional<InlineVector<int8_t, kMaxRank>> match_shapes(const Shape& to,
                                                                       const Shape& from);

// The value whose memory this one shares: follows reshapes.
LAMELLA_API Value* memory_owner(Value* value);

// Strides in elements of a value with memory, or of element_numbers, whose elements are their own
// row-major numbers.
LAMELLA_API InlineVector<Dim, kMaxRank> base_strides(const Value& base);

// Inserts copies where a view cannot be read in place: before reshapes of values that do not lie in
// row-major order, before kernels that want dense operands, and for results that are views.
LAMELLA_API void legalize_views(Graph& graph);

}  // namespace lamella
