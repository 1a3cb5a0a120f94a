// The recorder behind profilers: hears the library's activities, launches and allocations while a
// recording runs.
#pragma once

#include "lamella/base/api.h"
#include "lamella/profile/recording.h"

namespace lamella::profile {

enum class Memory : uint8_t { Ignored, Recorded };

// One recording runs at a time: throws Value if there is one already.
LAMELLA_API void start_recording(Memory memory);
// Ends it; what is still going on ends now.
LAMELLA_API Recording stop_recording();
LAMELLA_API bool is_recording();

// Marks the present step of the program, from the calling thread: the step before it ends.
LAMELLA_API void record_step(int64_t number);

}  // namespace lamella::profile
