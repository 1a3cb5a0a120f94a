// What the runtime has done so far; the tests and reports read it.
#pragma once

#include <cstdint>

#include "lamella/base/api.h"

namespace lamella {

struct RuntimeCounters {
  int64_t flushes = 0;     // windows run
  int64_t graphs = 0;      // graphs compiled
  int64_t graph_hits = 0;  // windows whose graph was found
  int64_t launches = 0;    // parallel loops and library calls
  // Of the last window run: memory for temporaries as planned, and the least any order of places
  // could do with, the largest sum of bytes that live at one step of its schedule.
  int64_t arena_bytes = 0;
  int64_t arena_lower_bound = 0;
};

LAMELLA_API RuntimeCounters& counters();

}  // namespace lamella
