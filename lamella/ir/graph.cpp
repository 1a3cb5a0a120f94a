// Graph clean-up.
#include "lamella/ir/graph.h"

#include <algorithm>
#include <unordered_set>

namespace lamella {

void remove_dead_nodes(Graph& graph) {
  std::unordered_set<const Value*> used;
  for (const Ref<Value>& output : graph.outputs) used.insert(output.get());
  std::vector<Ref<Node>> kept;
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Ref<Node>& node = graph.nodes[i];
    const bool live =
        std::any_of(node->results().begin(), node->results().end(),
                    [&](const Ref<Value>& result) { return used.contains(result.get()); });
    if (!live) continue;
    for (const Ref<Value>& operand : node->operands()) used.insert(operand.get());
    kept.push_back(node);
  }
  std::reverse(kept.begin(), kept.end());
  graph.nodes = std::move(kept);
}

}  // namespace lamella
