// Graphs as text, for people, dumps and tests of passes:
//
//   graph(%0: f32[s0,4], %1: number f32) {
//     %2: f32[s0,4] = mul(%0, %1)                        // net.scale at train.py:12
//     %3: f32[s0] = sum(%2) {axis=(1), keepdims=false}
//     return %3
//   }
//
// An operand may also be a number written out, "0.5:f32", or a size, "size(4*s0):i64".
#pragma once

#include <string>
#include <string_view>

#include "lamella/base/api.h"
#include "lamella/ir/graph.h"

namespace lamella {

LAMELLA_API std::string print(const Graph& graph);

// The graph of a text. Result types are inferred again and must agree with those written. Throws
// Value with the line number for anything that is not as above.
LAMELLA_API Graph parse_graph(std::string_view text);

}  // namespace lamella
