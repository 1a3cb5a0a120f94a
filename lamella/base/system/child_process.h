// The end of a process that this one has forked.
#pragma once

#include <cstdint>
#include <string>

#include "lamella/base/api.h"

namespace lamella {

// Kills the process, if it still runs.
LAMELLA_API void kill_process(int64_t process);
// Waits for the process to end, so that nothing is left of it, and says how it did: "was killed by
// signal 9 (Killed)", "ended with status 3". Whoever waited before has the answer: "ended".
LAMELLA_API std::string reap_process(int64_t process);

}  // namespace lamella
