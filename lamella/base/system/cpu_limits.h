// How many processors this process may use.
#pragma once

#include "lamella/base/api.h"

namespace lamella {

// min(CPU affinity, cgroup v1 or v2 quota rounded up, OMP_NUM_THREADS if set), at least 1.
LAMELLA_API int available_cpus();

}  // namespace lamella
