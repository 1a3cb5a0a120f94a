// Loops and branches without the results that nobody reads.
#pragma once

#include "lamella/ir/graph.h"

namespace lamella {

// Takes away stacked results of scans, and results of branches, that no node and no output of the
// graph reads; what only they needed in the regions goes with them.
LAMELLA_API void prune_regions(Graph& graph);

}  // namespace lamella
