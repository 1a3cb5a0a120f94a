// The caching memory pool: freed memory is kept by size and handed out again without a system call.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lamella/base/api.h"
#include "lamella/device/allocation.h"

namespace lamella {

class PoolImplementation;

struct MemoryStatistics {
  int64_t reserved = 0;          // bytes held from the system, used or cached
  int64_t used = 0;              // bytes in live allocations, as asked for
  int64_t peak_used = 0;         // the largest `used` since the start or its reset
  int64_t peak_reserved = 0;     // the largest `reserved` since the start or its reset
  int64_t allocation_count = 0;  // allocations made since the start

  // The share of reserved memory no live allocation uses; 0 if nothing is reserved.
  double fragmentation() const {
    return reserved == 0 ? 0.0 : 1.0 - static_cast<double>(used) / static_cast<double>(reserved);
  }
};

// An allocation that exists.
struct LiveAllocation {
  const Allocation* allocation;  // its identity: it may be gone by now
  int64_t bytes;
  Holder holder;
};

// Told of every allocation a pool makes and takes back, in the thread that does it.
class AllocationListener {
 public:
  virtual void allocated(const Allocation& allocation) noexcept = 0;
  virtual void released(const Allocation& allocation) noexcept = 0;

 protected:
  ~AllocationListener() = default;
};

// LAMELLA_GUARD: every allocation apart, with an unmapped page right behind its last byte (End, 1)
// or right before its first (Begin, 2), filled with 0xFF (NaN in every float dtype) and unmapped
// when freed, so that the first wrong access faults. With End an address is aligned only as far as
// the size is.
enum class GuardMode : uint8_t { Off, End, Begin };

struct PoolOptions {
  GuardMode guard = GuardMode::Off;
  // The most bytes `reserved` may reach; nothing means what the system gives.
  std::optional<int64_t> limit;
};

// Options from LAMELLA_GUARD (0, 1, 2) and LAMELLA_MEMORY_LIMIT (bytes).
LAMELLA_API PoolOptions pool_options_from_environment();

// Host memory, 64-byte aligned (but see GuardMode). Safe from any thread.
//
// Up to 32 KiB: 8 size classes a doubling, cut from slabs, one short lock each. Above: whole
// mappings (with huge pages where the system has them), reused best-fit if at most a quarter of the
// block would be wasted. Reserved memory stays below 1.25 times the peak of used memory + 64 MiB:
// past that the largest unused blocks go back before a new one is mapped.
class LAMELLA_API MemoryPool {
 public:
  explicit MemoryPool(PoolOptions options = {});
  // Every allocation must be gone.
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  // Memory for `size` >= 0 bytes. Throws Memory: the size asked and for whom, what is in use and
  // the largest holders; the pool stays usable. Throws Value if size is negative.
  Ref<Allocation> allocate(int64_t size, const Holder& holder = {});

  MemoryStatistics statistics() const;
  int64_t reserved() const;
  void reset_peak();  // of both kinds
  void reset_peak_used();
  void reset_peak_reserved();
  // The most bytes `reserved` may reach from now on; 0, or more than the system has, is what it
  // has. What is reserved already stays. Throws Value if it is negative.
  int64_t limit() const;
  void set_limit(int64_t bytes);

  // Every allocation that exists, in no order.
  std::vector<LiveAllocation> live() const;
  // Null for none. It must outlive every allocation made while it is set.
  void set_listener(AllocationListener* listener);
  // Gives unused memory back to the system; returns the bytes given back.
  int64_t compact();
  // To be called in the child of a fork, before anything else.
  void mend_in_child();

 private:
  std::unique_ptr<PoolImplementation> implementation_;
};

// The process's pool of host memory, made with pool_options_from_environment() at first use and
// never destroyed.
LAMELLA_API MemoryPool& cpu_pool();

}  // namespace lamella
