// The memory plan: which results share memory, and where in the arena each lies.
#pragma once

#include <cstdint>
#include <vector>

#include "lamella/base/api.h"

namespace lamella {

// One piece of memory that steps write and read.
struct PlannedSlot {
  int64_t bytes = 0;
  int first_step = 0;  // the step that writes it
  int last_step = 0;   // the last step that reads it
};

struct ArenaPlan {
  std::vector<int64_t> offsets;  // by slot, multiples of 64
  int64_t bytes = 0;             // of the whole arena
  int64_t lower_bound = 0;       // the largest sum of bytes alive at one step
  int peak_step = 0;             // that step
};

// Places slots so that those alive at the same step never overlap, in little more than the lower
// bound (finding the least is NP-hard). The same slots get the same places.
LAMELLA_API ArenaPlan plan_arena(const std::vector<PlannedSlot>& slots);

}  // namespace lamella
