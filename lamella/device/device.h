// What the layers above need from a device.
#pragma once

#include <cstdint>
#include <string_view>

#include "lamella/base/api.h"
#include "lamella/device/pool.h"

namespace lamella {

class LAMELLA_API Device {
 public:
  virtual ~Device() = default;

  virtual std::string_view name() const = 0;
  // As MemoryPool::allocate.
  virtual Ref<Allocation> allocate(int64_t size, const Holder& holder = {}) = 0;
  // Copies bytes between two allocations of this device. The ranges must not overlap.
  virtual void copy(void* to, const void* from, int64_t size) = 0;
  // Returns once all work issued so far is done.
  virtual void synchronize() = 0;
  virtual MemoryStatistics statistics() const = 0;
  virtual void reset_peak() = 0;
  // As MemoryPool::compact.
  virtual int64_t compact() = 0;
};

}  // namespace lamella
