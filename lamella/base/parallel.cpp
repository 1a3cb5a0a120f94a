// parallel_for over OpenMP (release) or plain threads (the thread-sanitizer build, whose runtime
// does not see through GNU OpenMP's barriers).
#include "lamella/base/parallel.h"

#include <algorithm>
#include <array>
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

using Body = FunctionRef<void(int64_t begin, int64_t end, int64_t thread)>;

// The blocks of a loop, of `grain` each, as a share for every thread; each share in a few pieces.
class Shares {
 public:
  Shares(int64_t count, int64_t grain, int64_t shares, Body body)
      : count_(count),
        grain_(grain),
        blocks_((count + grain - 1) / grain),
        shares_(std::min(shares, kMostShares)),
        body_(body) {
    for (int64_t i = 0; i < shares_; ++i) {
      const auto pieces = static_cast<uint64_t>(std::min(share(i).blocks(), kPieces));
      left_[static_cast<size_t>(i)].pieces = pieces << 32;
    }
  }

  // What there is to do in one thread: its own share, then pieces of others'.
  void run(int64_t thread) noexcept {
    const bool outer = std::exchange(inside_parallel_loop, true);
    for (int64_t i = 0; i < shares_; ++i) {
      const int64_t of = (thread + i) % shares_;
      const bool own = i == 0 && thread < shares_;
      for (int64_t piece; (piece = take(of, own)) >= 0;) run(of, piece, thread);
    }
    inside_parallel_loop = outer;
  }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  static constexpr int64_t kMostShares = 64;  // further threads only take from others
  static constexpr int64_t kPieces = 8;       // of a share

  struct BlockRange {
    int64_t begin, end;
    int64_t blocks() const { return end - begin; }
  };
  // Pieces that nobody has begun: the first one in the low half, behind the last in the high half.
  struct alignas(64) Left {
    uint64_t pieces;
  };

  BlockRange share(int64_t i) const { return {i * blocks_ / shares_, (i + 1) * blocks_ / shares_}; }

  // The next piece of a share, from its front or its back; -1 if there is none.
  int64_t take(int64_t share, bool from_front) {
    const std::atomic_ref pieces(left_[static_cast<size_t>(share)].pieces);
    uint64_t now = pieces.load(std::memory_order_relaxed);
    for (;;) {
      const uint64_t first = now & 0xFFFFFFFF, end = now >> 32;
      if (first == end) return -1;
      const uint64_t next = from_front ? end << 32 | (first + 1) : (end - 1) << 32 | first;
      if (pieces.compare_exchange_weak(now, next, std::memory_order_relaxed)) {
        return static_cast<int64_t>(from_front ? first : end - 1);
      }
    }
  }

  void run(int64_t of, int64_t piece, int64_t thread) noexcept {
    const BlockRange all = share(of);
    const int64_t pieces = std::min(all.blocks(), kPieces);
    const int64_t begin = (all.begin + piece * all.blocks() / pieces) * grain_;
    const int64_t end = (all.begin + (piece + 1) * all.blocks() / pieces) * grain_;
    try {
      body_(begin, std::min(end, count_), thread);
    } catch (...) {
      std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }

  int64_t count_, grain_, blocks_, shares_;
  Body body_;
  std::array<Left, kMostShares> left_;
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
  parallel_for_threads(
      count, grain, [&](int64_t begin, int64_t end, int64_t) { body(begin, end); }, thread_count());
}

void parallel_for_threads(int64_t count, int64_t grain, Body body, int64_t most_threads) {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const int64_t blocks = (count + grain - 1) / grain;
  if (blocks == 1 || inside_parallel_loop) return body(0, count, 0);
  const int64_t threads = std::min({int64_t{thread_count()}, blocks, most_threads});
  if (threads <= 1) return body(0, count, 0);
  Shares shares(count, grain, threads, body);
#ifdef LAMELLA_PARALLEL_OPENMP
  // The runtime may grant fewer threads than asked for; those do all the work.
#pragma omp parallel num_threads(static_cast<int>(threads))
  shares.run(omp_get_thread_num());
#else
  std::vector<std::thread> others;
  for (int64_t i = 1; i < threads; ++i) others.emplace_back([&shares, i] { shares.run(i); });
  shares.run(0);
  for (std::thread& other : others) other.join();
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
