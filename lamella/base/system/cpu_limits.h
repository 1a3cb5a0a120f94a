// What of the machine this process may use.
#pragma once

#include <cstdint>

#include "lamella/base/api.h"

namespace lamella {

// min(CPU affinity, cgroup v1 or v2 quota rounded up, OMP_NUM_THREADS if set), at least 1.
LAMELLA_API int available_cpus();

// Of the largest cache; processes on other processors may share it.
LAMELLA_API int64_t last_level_cache_bytes();

}  // namespace lamella
