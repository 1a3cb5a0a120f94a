// parallel_for over OpenMP (release) or plain threads (the thread-sanitizer build, whose runtime
// does not see through GNU OpenMP's barriers).
#include "lamella/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>

#ifdef LAMELLA_PARALLEL_OPENMP
#include <omp.h>
#else
#include <thread>
#include <vector>
#endif

#include "lamella/base/error.h"
#include "lamella/base/logging.h"
#include "lamella/base/system/cpu_limits.h"
#include "lamella/base/system/fork.h"

namespace lamella {

namespace {

std::atomic<int> configured_threads{0};
thread_local bool inside_parallel_loop = false;

// A child of fork has none of the parent's threads, but OpenMP's records of them: waiting for them
// would never end. So the pool ends before a fork, and the child begins with its own thread.
[[maybe_unused]] const bool prepared_for_fork = [] {
#ifdef LAMELLA_PARALLEL_OPENMP
  before_fork([] { omp_pause_resource_all(omp_pause_hard); });
#endif
  in_child_of_fork([] { configured_threads = 1; });
  return true;
}();

// Runs body on one share of the range and keeps the first exception of all shares.
class Shares {
 public:
  Shares(int64_t count, int64_t grain, int64_t shares, FunctionRef<void(int64_t, int64_t)> body)
      : count_(count),
        grain_(grain),
        blocks_((count + grain - 1) / grain),
        shares_(shares),
        body_(body) {}

  void run(int64_t share) noexcept {
    const int64_t begin = share * blocks_ / shares_ * grain_;
    const int64_t end = std::min(count_, (share + 1) * blocks_ / shares_ * grain_);
    if (begin >= end) return;
    const bool outer = std::exchange(inside_parallel_loop, true);
    try {
      body_(begin, end);
    } catch (...) {
      std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
    inside_parallel_loop = outer;
  }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  int64_t count_, grain_, blocks_, shares_;
  FunctionRef<void(int64_t, int64_t)> body_;
  std::mutex mutex_;
  std::exception_ptr failure_;
};

}  // namespace

int thread_count() {
  int count = configured_threads.load(std::memory_order_relaxed);
  if (count == 0) {
    count = available_cpus();
    configured_threads = count;
    log().debug("using {} threads", count);
  }
  return count;
}

void set_thread_count(int count) {
  if (count < 1)
    fail(ErrorKind::Value, "[set_thread_count] count must be at least 1, got {}", count);
  configured_threads = count;
}

void parallel_for(int64_t count, int64_t grain, FunctionRef<void(int64_t, int64_t)> body) {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const int64_t blocks = (count + grain - 1) / grain;
  if (blocks == 1 || inside_parallel_loop) return body(0, count);
  const int64_t threads = std::min<int64_t>(thread_count(), blocks);
  if (threads == 1) return body(0, count);
  Shares shares(count, grain, threads, body);
#ifdef LAMELLA_PARALLEL_OPENMP
#pragma omp parallel num_threads(static_cast<int>(threads))
  {
    // The runtime may grant fewer threads than asked for; every share must still run.
    for (int64_t share = omp_get_thread_num(); share < threads; share += omp_get_num_threads()) {
      shares.run(share);
    }
  }
#else
  std::vector<std::thread> workers;
  for (int64_t share = 1; share < threads; ++share) {
    workers.emplace_back([&shares, share] { shares.run(share); });
  }
  shares.run(0);
  for (std::thread& worker : workers) worker.join();
#endif
  shares.rethrow();
}

int prepare_openmp_library() {
#ifdef LAMELLA_PARALLEL_OPENMP
  if (omp_in_parallel()) return 1;
  const int threads = thread_count();
  if (omp_get_max_threads() != threads) omp_set_num_threads(threads);
  return threads;
#else
  return inside_parallel_loop ? 1 : thread_count();
#endif
}

}  // namespace lamella
