// Loops and branches recorded once, whatever the number of turns: a loop of a thousand turns is one
// node with the body as its region. All can be differentiated.
//
// A body is called once, with placeholders for what is carried from turn to turn. It may use any
// tensor of outside, draw random numbers (anew in every turn), and contain loops and branches; it
// cannot read a tensor's elements, nor write a tensor of outside (Value).
#pragma once

#include <functional>
#include <optional>
#include <source_location>
#include <vector>

#include "lamella/base/api.h"
#include "lamella/ir/tensor.h"

namespace lamella {

// The caller's line: as a default argument it is where the call stands.
inline SourceLocation here(std::source_location line = std::source_location::current()) {
  return {line.file_name(), static_cast<int32_t>(line.line())};
}

enum class Direction : uint8_t { Forward, Reverse };

struct ScanResult {
  std::vector<Tensor> carried;
  // For a body: what one turn gives. Of the whole scan: the same of all turns, along a new first
  // axis.
  std::vector<Tensor> stacked;
};

using ScanBody = std::function<ScanResult(const std::vector<Tensor>& carried,
                                          const std::vector<Tensor>& slices)>;

// Where the backward pass has what it reads of a turn from: memory, or the body once more.
enum class Residuals : uint8_t { Saved, Recomputed };

struct ScanOptions {
  std::optional<int64_t> length = {};  // needed where there is no sequence
  Direction direction = Direction::Forward;
  Residuals residuals = Residuals::Saved;
};

// Calls the body for each index of the sequences' first axis with slices at that index. What is
// carried keeps its shape and dtype (Value otherwise). Throws Value for sequences of different
// lengths, and where neither a sequence nor a length is given.
LAMELLA_API ScanResult scan(const ScanBody& body, const std::vector<Tensor>& initial,
                            const std::vector<Tensor>& sequences, const ScanOptions& options = {},
                            SourceLocation where = here());

// What a recorded scan keeps for its backward pass, to make another like it.
LAMELLA_API Residuals residuals_of(const Node& scan);

using BranchBody = std::function<std::vector<Tensor>()>;

// The results of `then` if `condition`, one bool, holds, else of `otherwise`; both are recorded,
// one is run. Results must agree in number, shape and dtype (Value).
LAMELLA_API std::vector<Tensor> cond(const Tensor& condition, const BranchBody& then,
                                     const BranchBody& otherwise, SourceLocation where = here());

using LoopCondition = std::function<Tensor(const std::vector<Tensor>& carried)>;
using LoopBody = std::function<std::vector<Tensor>(const std::vector<Tensor>& carried)>;

// Calls the body as long as `condition`, one bool, holds for what is carried. Its gradient runs the
// body once more and keeps what every turn begins with; it cannot be differentiated again.
LAMELLA_API std::vector<Tensor> while_loop(const LoopCondition& condition, const LoopBody& body,
                                           const std::vector<Tensor>& initial,
                                           SourceLocation where = here());

}  // namespace lamella
