// Graph clean-up.
#include "lamella/ir/graph.h"

#include <algorithm>

namespace lamella {

std::vector<Ref<Node>> needed_nodes(std::span<const Ref<Node>> nodes,
                                    std::span<const Ref<Value>> outputs,
                                    const PointerMap<Value, bool>& given) {
  PointerMap<Value, bool> used(outputs.size() + nodes.size());
  for (const Ref<Value>& output : outputs) used.insert(output.get());
  std::vector<Ref<Node>> needed;
  for (size_t i = nodes.size(); i-- > 0;) {
    const Ref<Node>& node = nodes[i];
    const bool live =
        std::any_of(node->results().begin(), node->results().end(), [&](const Ref<Value>& result) {
          return used.contains(result.get()) && !given.contains(result.get());
        });
    if (!live) continue;
    for (const Ref<Value>& operand : node->operands()) used.insert(operand.get());
    needed.push_back(node);
  }
  std::reverse(needed.begin(), needed.end());
  return needed;
}

void remove_dead_nodes(Graph& graph) {
  graph.nodes = needed_nodes(graph.nodes, graph.outputs);
}

}  // namespace lamella
