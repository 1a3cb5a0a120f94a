// A window's pending nodes as a key and as a graph.
#pragma once

#include <unordered_map>

#include "lamella/ir/graph.h"

namespace lamella {

// The live part of a window: what runs, what it reads, what must be delivered.
struct Capture {
  std::vector<Node*> nodes;     // in program order; result marks number the produced values
  std::vector<Value*> leaves;   // ready values and numbers, each once
  std::vector<bool> leaf_kept;  // whether a gradient scope still reads it after the run
  std::vector<int64_t> leaf_references;  // by the window's nodes, dead ones too
  // Numbers that are part of the key: sizes, and those written in operators' rules. Each once.
  std::vector<Value*> fixed_numbers;
  std::vector<Value*> outputs;

  // The key: nodes, operands, types, which results are outputs. Equal words, equal graph.
  std::vector<uint64_t> words;
  // The key without sizes above 1, and the sizes left out of it, in order.
  std::vector<uint64_t> structure;
  std::vector<int64_t> sizes;
};

LAMELLA_API Capture capture(std::span<const Ref<Node>> nodes);

// The captured nodes lowered into a graph. `sizes` replaces the captured sizes one by one, by
// expressions if the graph is to serve many sizes. `types` receives the result types of the nodes
// as recorded, in terms of `sizes`.
struct LoweredCapture {
  Graph graph;
  std::vector<TensorType> types;
  int64_t shared_nodes = 0;
};
LAMELLA_API LoweredCapture lower(const Capture& captured, std::span<const Dim> sizes);

}  // namespace lamella
