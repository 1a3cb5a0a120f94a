// The two ways a MemoryPool works inside: caching, and guarded by unmapped pages.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "lamella/device/pool.h"

namespace lamella {

class PoolImplementation : protected AllocationOwner {
 public:
  explicit PoolImplementation(int64_t limit) : limit_(limit) {}
  virtual ~PoolImplementation() = default;

  virtual Ref<Allocation> allocate(int64_t size, const char* tag) = 0;
  virtual int64_t compact() = 0;
  virtual int64_t allocation_count() = 0;

  int64_t reserved() const { return reserved_.load(std::memory_order_relaxed); }
  int64_t used() const { return used_.load(std::memory_order_relaxed); }
  int64_t peak_used() const { return peak_used_.load(std::memory_order_relaxed); }
  void reset_peak() { peak_used_ = used(); }

 protected:
  struct Holder {
    const char* tag;
    int64_t bytes;
  };

  // Every live allocation, for the out-of-memory report.
  virtual std::vector<Holder> holders() = 0;
  // Gives unused blocks back until `reserved` is at most `target` or none is left.
  virtual void trim(int64_t target) = 0;

  AllocationOwner& owner() { return *this; }

  void count_use(int64_t size) {
    const int64_t used = used_.fetch_add(size, std::memory_order_relaxed) + size;
    int64_t peak = peak_used();
    while (used > peak &&
           !peak_used_.compare_exchange_weak(peak, used, std::memory_order_relaxed)) {
    }
  }
  void count_release(int64_t size) { used_.fetch_sub(size, std::memory_order_relaxed); }

  // Pages from the system, counted as reserved; unused memory goes back first where the limit
  // demands it. Throws Memory, saying that `asked` bytes were wanted. No lock may be held.
  void* reserve_pages(int64_t bytes, int64_t asked);
  void return_pages(void* pages, int64_t bytes);

 private:
  void* try_reserve(int64_t bytes);
  [[noreturn]] void fail_out_of_memory(int64_t asked);

  const int64_t limit_;
  std::atomic<int64_t> reserved_{0};
  std::atomic<int64_t> used_{0};
  std::atomic<int64_t> peak_used_{0};
};

// A limit of 0 is none.
std::unique_ptr<PoolImplementation> make_caching_pool(int64_t limit);
std::unique_ptr<PoolImplementation> make_guarded_pool(int64_t limit, GuardMode mode);

}  // namespace lamella
