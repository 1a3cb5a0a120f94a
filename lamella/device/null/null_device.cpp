// Counting without memory.
#include "lamella/device/null/null_device.h"

#include <algorithm>

#include "lamella/base/error.h"

namespace lamella {

namespace {

class NullAllocation final : public Allocation {
 public:
  NullAllocation(AllocationOwner& owner, int64_t address, int64_t size, const Holder& holder)
      : Allocation(owner) {
    data_ = reinterpret_cast<void*>(static_cast<intptr_t>(address));
    size_ = size;
    holder_ = holder;
  }
};

}  // namespace

Ref<Allocation> NullDevice::allocate(int64_t size, const Holder& holder) {
  if (size < 0) fail(ErrorKind::Value, "[allocate] size must not be negative, got {}", size);
  const int64_t extent = (std::max<int64_t>(size, 1) + 63) / 64 * 64;
  auto* allocation = new NullAllocation(*this, next_address_.fetch_add(extent), size, holder);
  const int64_t used = used_.fetch_add(size) + size;
  int64_t peak = peak_;
  while (used > peak && !peak_.compare_exchange_weak(peak, used)) {
  }
  ++allocations_;
  return Ref<Allocation>(allocation);
}

void NullDevice::copy(void*, const void*, int64_t size) {
  ++copies_;
  bytes_copied_ += size;
}

void NullDevice::synchronize() {
  ++synchronizations_;
}

MemoryStatistics NullDevice::statistics() const {
  return {.reserved = used_, .used = used_, .peak_used = peak_, .allocation_count = allocations_};
}

void NullDevice::reset_peak() {
  peak_ = used_.load();
}

void NullDevice::reclaim(Allocation& allocation) noexcept {
  used_ -= allocation.size();
  delete static_cast<NullAllocation*>(&allocation);
}

}  // namespace lamella
