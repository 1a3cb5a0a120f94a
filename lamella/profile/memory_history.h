// Memory over time: how much of the host pool was used and reserved when, and who held it at the
// peak.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lamella/base/api.h"
#include "lamella/profile/recording.h"

namespace lamella::profile {

struct MemoryPoint {
  int64_t time = 0;  // nanoseconds of the steady clock
  int64_t used = 0, reserved = 0;
};

// A point at the start of the recording and one at each change; nothing if memory was not recorded.
LAMELLA_API std::vector<MemoryPoint> memory_points(const Recording& recording);

struct HeldMemory {
  std::string holder;  // "conv2d f32[8,6,24,24] (train.py:31)"
  int64_t bytes = 0, count = 0;
};

struct MemoryPeak {
  MemoryPoint point;
  std::vector<HeldMemory> holders;  // that live at the peak, the largest first
  // What temporaries are, if among the holders is an arena that was the largest until then.
  std::vector<HeldMemory> in_arena;
};

// Over all recordings.
LAMELLA_API MemoryPeak memory_peak(std::span<const Recording> recordings);

// "time_ms,used,reserved" lines; times from the start of the first recording.
LAMELLA_API std::string csv(std::span<const Recording> recordings);
LAMELLA_API std::string csv(const MemoryPeak& peak);
LAMELLA_API std::string text(const MemoryPeak& peak, size_t most = 30);

}  // namespace lamella::profile
