// A recording as a timeline that Perfetto (ui.perfetto.dev) and chrome://tracing open: Chrome's
// trace event format, JSON.
#pragma once

#include <span>
#include <string>

#include "lamella/base/api.h"
#include "lamella/profile/recording.h"

namespace lamella::profile {

// One track a thread with what it did, nested; beside the thread that runs the program's windows,
// tracks of its steps, of the phases of training, and of the program's own time between windows;
// memory used and reserved as counters. Times are microseconds from the first recording's start.
LAMELLA_API std::string timeline_json(std::span<const Recording> recordings);

}  // namespace lamella::profile
