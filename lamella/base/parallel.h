// Parallel loops. All parallel work of the library goes through parallel_for, so that one thread
// count, one pool and one rule for nesting hold everywhere.
#pragma once

#include <cstdint>

#include "lamella/base/api.h"
#include "lamella/base/function_ref.h"

namespace lamella {

// The number of threads parallel work uses: min(CPU affinity, cgroup quota, OMP_NUM_THREADS), at
// least 1. Read once; set_thread_count overrides it. 1 in a child of fork, until it sets another.
LAMELLA_API int thread_count();
LAMELLA_API void set_thread_count(int count);

// Calls body(begin, end) on disjoint ranges that cover [0, count); every range but the last is a
// multiple of `grain` long. Each thread begins with a part of its own and goes through it in order,
// the same part each time, so that data stays in its cache; a thread that is done takes ranges from
// the end of another's part, since no two processors are equally fast all the time. Runs in the
// calling thread if one range is enough, or inside another parallel loop. The first exception
// thrown by a body is thrown again here.
LAMELLA_API void parallel_for(int64_t count, int64_t grain,
                              FunctionRef<void(int64_t begin, int64_t end)> body);

// The same by at most `most_threads`, for bodies with memory for each thread: `thread` is below
// their number, and of two calls at once each has another.
LAMELLA_API void parallel_for_threads(
    int64_t count, int64_t grain,
    FunctionRef<void(int64_t begin, int64_t end, int64_t thread)> body, int64_t most_threads);

// Makes a library that runs its own OpenMP regions use thread_count() threads when called by this
// thread. Returns the number it will use: 1 inside a parallel loop.
LAMELLA_API int prepare_openmp_library();

}  // namespace lamella
