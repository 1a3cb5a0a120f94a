// Lowering: composites become the operators they are made of, equal computations become one.
#pragma once

#include <unordered_map>

#include "lamella/ir/graph.h"
#include "lamella/ir/recorder.h"
#include "lamella/ops/opdef.h"

namespace lamella {

// Records operations into a graph. Composites are replaced by their bodies (with 16-bit floats
// widened inside), exact simplifications are applied, and a node that exists already is used again.
class LAMELLA_API LoweringRecorder final : public Recorder {
 public:
  explicit LoweringRecorder(Graph& graph) : graph_(graph) {}

  Results record(const Operator& op, std::span<Value* const> operands,
                 Ref<const Attributes> attributes, const SourceLocation& location) override;

  // How many nodes were found to exist already.
  int64_t shared_nodes() const { return shared_nodes_; }

 private:
  Results expand(const OpDef& op, std::span<Value* const> operands,
                 const Ref<const Attributes>& attributes, const SourceLocation& location);
  // The one constant of its dtype and bits (numbers written in composites).
  Value* intern_number(Value* value);

  Graph& graph_;
  std::unordered_multimap<Hash128, Node*> existing_;
  std::unordered_map<Hash128, Ref<Value>> numbers_;
  int64_t shared_nodes_ = 0;
};

// The graph with its composites expanded, equal nodes shared and dead ones removed. Its inputs are
// those of `graph`; its nodes' provenance counts the nodes of `graph`.
LAMELLA_API Graph lower(const Graph& graph);

// What `op` of these operands simplifies to, bit for bit; nothing if it does not.
LAMELLA_API Ref<Value> simplify(const OpDef& op, std::span<Value* const> operands,
                                const Attributes* attributes, const TensorType& result);

}  // namespace lamella
