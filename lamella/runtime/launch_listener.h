// What the runtime tells a profiler: each launch with the operations it computes, and what lies in
// a window's arena. Without a listener a launch costs one branch.
#pragma once

#include <span>
#include <vector>

#include "lamella/base/function_ref.h"
#include "lamella/device/allocation.h"
#include "lamella/ir/value.h"

namespace lamella {

// The share of a launch that is one node's.
struct LaunchPart {
  const Node* node = nullptr;  // as compiled; its provenance counts the recorded operations
  double flops = 0;            // as the operator's declared cost says
  double share = 1;            // of the launch's time and bytes; the shares of a launch add up to 1
};

struct LaunchEvent {
  std::span<const LaunchPart> parts;
  // The operations of the window (or of the body of a loop) the launch is of.
  std::span<const Node* const> operations;
  int64_t bytes = 0;  // read and written, each operand and result once

  // The operation a part belongs to, as the program called it; the node itself if none is known.
  const Node& operation(const LaunchPart& part) const {
    const auto number = static_cast<size_t>(part.node->provenance().operation);
    return number < operations.size() ? *operations[number] : *part.node;
  }
};

struct LaunchWork {
  std::vector<LaunchPart> parts;
  int64_t bytes = 0;
};

// One result in a window's arena, at the step where most bytes live.
struct ArenaShare {
  Holder holder;
  int64_t bytes = 0;
};

// Told from the thread that runs the window. Launches of a loop's body begin and end inside the
// launch of the loop.
class LaunchListener {
 public:
  virtual void begin(const LaunchEvent& event) noexcept = 0;
  virtual void end() noexcept = 0;
  // An arena was allocated; `contents` says what lies in it, if called before this returns.
  virtual void arena(const Allocation& arena,
                     FunctionRef<std::vector<ArenaShare>()> contents) noexcept = 0;

 protected:
  ~LaunchListener() = default;
};

// The listener; null for none. It must live as long as the process.
LAMELLA_API LaunchListener* launch_listener();
LAMELLA_API void set_launch_listener(LaunchListener* listener);

}  // namespace lamella
