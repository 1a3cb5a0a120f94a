// Worker processes, as far as iterators know of them.
#pragma once

#include <memory>
#include <vector>

#include "lamella/base/api.h"

namespace lamella::data {

// Processes that make rows for one operation while an iterator lives. Destroying the last reference
// ends them.
class LAMELLA_API ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;
  // Ends the processes at once; whoever waits for a row of theirs gets an error. Called by any
  // thread.
  virtual void stop() = 0;
};

using ProcessGroups = std::vector<std::shared_ptr<ProcessGroup>>;

}  // namespace lamella::data
