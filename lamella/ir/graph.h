// A window made into a graph: what the passes work on.
#pragma once

#include <vector>

#include "lamella/base/pointer_map.h"
#include "lamella/ir/value.h"

namespace lamella {

struct Graph {
  std::vector<Ref<Value>> inputs;   // placeholders, in the order of the window's leaves
  std::vector<Ref<Node>> nodes;     // in program order: operands before users
  std::vector<Ref<Value>> outputs;  // results, inputs or numbers
};

// Those of `nodes` that `outputs` need, in order; values among `given` need not be computed.
LAMELLA_API std::vector<Ref<Node>> needed_nodes(
    std::span<const Ref<Node>> nodes, std::span<const Ref<Value>> outputs,
    const PointerMap<Value, bool>& given = PointerMap<Value, bool>());

// Removes nodes whose results nobody uses.
LAMELLA_API void remove_dead_nodes(Graph& graph);

}  // namespace lamella
