// The two ways a MemoryPool works inside: caching, and guarded by unmapped pages.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "lamella/base/system/fork.h"
#include "lamella/device/pool.h"

namespace lamella {

// Holds a mutex of a pool such that no fork comes meanwhile: a child finds it free.
class WholeAtForks {
 public:
  explicit WholeAtForks(std::mutex& mutex) : lock_(mutex) {}

 private:
  const UnforkableWork whole_;
  const std::lock_guard<std::mutex> lock_;
};

class PoolImplementation : protected AllocationOwner {
 public:
  explicit PoolImplementation(int64_t limit) : limit_(limit) {}
  virtual ~PoolImplementation() = default;

  virtual Ref<Allocation> allocate(int64_t size, const Holder& holder) = 0;
  virtual int64_t compact() = 0;
  // Frees, in the child of a fork, the locks that a fork does not wait for.
  virtual void mend_in_child() {}
  virtual int64_t allocation_count() = 0;

  int64_t reserved() const { return reserved_.load(std::memory_order_relaxed); }
  int64_t used() const { return used_.load(std::memory_order_relaxed); }
  int64_t peak_used() const { return peak_used_.load(std::memory_order_relaxed); }
  int64_t peak_reserved() const { return peak_reserved_.load(std::memory_order_relaxed); }
  int64_t limit() const { return limit_.load(std::memory_order_relaxed); }
  void set_limit(int64_t limit) { limit_ = limit; }
  void reset_peak_used() { peak_used_ = used(); }
  void reset_peak_reserved() { peak_reserved_ = reserved(); }
  void set_listener(AllocationListener* listener) { listener_ = listener; }

  virtual std::vector<LiveAllocation> live() = 0;

 protected:
  // Gives unused blocks back until `reserved` is at most `target` or none is left.
  virtual void trim(int64_t target) = 0;

  AllocationOwner& owner() { return *this; }

  // An allocation was made, or comes back.
  void count_use(const Allocation& made) {
    const int64_t size = made.size();
    raise(peak_used_, used_.fetch_add(size, std::memory_order_relaxed) + size);
    if (auto* listener = listener_.load(std::memory_order_acquire)) [[unlikely]] {
      listener->allocated(made);
    }
  }
  void count_release(const Allocation& freed) {
    used_.fetch_sub(freed.size(), std::memory_order_relaxed);
    if (auto* listener = listener_.load(std::memory_order_acquire)) [[unlikely]] {
      listener->released(freed);
    }
  }

  // Pages from the system, counted as reserved; unused memory goes back first where the limit
  // demands it. Throws Memory, saying that `asked` bytes were wanted for `holder`. No lock may be
  // held.
  void* reserve_pages(int64_t bytes, int64_t asked, const Holder& holder);
  void return_pages(void* pages, int64_t bytes);

 private:
  static void raise(std::atomic<int64_t>& peak, int64_t value) {
    int64_t seen = peak.load(std::memory_order_relaxed);
    while (value > seen && !peak.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
    }
  }
  void* try_reserve(int64_t bytes);
  [[noreturn]] void fail_out_of_memory(int64_t asked, const Holder& holder);

  std::atomic<int64_t> limit_;
  std::atomic<int64_t> reserved_{0};
  std::atomic<int64_t> used_{0};
  std::atomic<int64_t> peak_used_{0};
  std::atomic<int64_t> peak_reserved_{0};
  std::atomic<AllocationListener*> listener_{nullptr};
};

// A limit of 0 is none.
std::unique_ptr<PoolImplementation> make_caching_pool(int64_t limit);
std::unique_ptr<PoolImplementation> make_guarded_pool(int64_t limit, GuardMode mode);

}  // namespace lamella
