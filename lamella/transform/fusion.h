// Fusion: which operators share a kernel.
//
// A group runs over one domain (a shape and its memory order). Elementwise operators over the
// domain join; a reduction along the innermost axes turns the group into rows, whose results join
// again with the elements of their row (softmax, layer norm: one kernel); a reduction over outer
// axes turns it into columns and ends it. No operator's arithmetic changes: grouping never changes
// a bit.
#pragma once

#include <vector>

#include "lamella/ir/graph.h"
#include "lamella/tile/program.h"
#include "lamella/transform/views.h"

namespace lamella {

// Where a value of a group lies in the group's domain.
struct PlacedValue {
  // For each of the value's axes the domain axis it is; -1 for axes of size 1.
  InlineVector<int8_t, kMaxRank> domain_axis;
  // Whether it has an element for every domain point (else one for every row or column).
  bool full = true;
};

struct FusionGroup {
  tile::Reduction reduction = tile::Reduction::None;
  Shape domain;
  Layout layout = Layout::RowMajor;
  Axes reduced;              // domain axes, sorted
  std::vector<Node*> nodes;  // in program order
};

// A step of the schedule: a fused group or a single kernel node.
struct ScheduledStep {
  FusionGroup group;  // if `kernel` is null
  Node* kernel = nullptr;
};

struct Fusion {
  std::vector<ScheduledStep> steps;
  // Results that need memory: outputs, and what a step other than their own reads.
  std::vector<Value*> stored;

  const PlacedValue& placed(const Value* value) const { return placed_[value->mark]; }
  int step_of(const Value* value) const { return step_of_[value->mark]; }

  std::vector<PlacedValue> placed_;  // by Value::mark
  std::vector<int> step_of_;         // by Value::mark; -1 for inputs, numbers and views
};

// Groups the nodes of a legalised graph and orders the steps. Sets Value::mark of every value.
LAMELLA_API Fusion fuse(const Graph& graph);

// Strides of a viewed operand along the domain's axes, in elements of its base; `axes` places the
// reading node's axes in the domain of rank `domain_rank`.
LAMELLA_API InlineVector<Dim, kMaxRank> domain_strides(const ViewedValue& viewed,
                                                       const InlineVector<int8_t, kMaxRank>& axes,
                                                       int domain_rank);
}  // namespace lamella
