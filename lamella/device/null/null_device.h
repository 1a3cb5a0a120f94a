// A device that counts what it is asked for and does nothing: plans and schedules can be checked on
// it without memory or time.
#pragma once

#include <atomic>

#include "lamella/device/device.h"

namespace lamella {

// Allocations carry a distinct non-null address that must not be read or written.
class LAMELLA_API NullDevice final : public Device, private AllocationOwner {
 public:
  std::string_view name() const override { return "null"; }
  Ref<Allocation> allocate(int64_t size, const Holder& holder = {}) override;
  void copy(void* to, const void* from, int64_t size) override;
  void synchronize() override;
  MemoryStatistics statistics() const override;
  void reset_peak() override;
  int64_t compact() override { return 0; }

  int64_t copies() const { return copies_; }
  int64_t bytes_copied() const { return bytes_copied_; }
  int64_t synchronizations() const { return synchronizations_; }

 private:
  void reclaim(Allocation& allocation) noexcept override;

  std::atomic<int64_t> used_{0}, peak_{0}, allocations_{0}, next_address_{1 << 12};
  std::atomic<int64_t> copies_{0}, bytes_copied_{0}, synchronizations_{0};
};

}  // namespace lamella
