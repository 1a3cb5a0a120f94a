// The host CPU: every call has happened when it returns.
#include "lamella/device/cpu/cpu_device.h"

#include <cstring>

namespace lamella {

namespace {

class CpuDevice final : public Device {
 public:
  std::string_view name() const override { return "cpu"; }
  Ref<Allocation> allocate(int64_t size, const Holder& holder) override {
    return cpu_pool().allocate(size, holder);
  }
  void copy(void* to, const void* from, int64_t size) override {
    if (size > 0) std::memcpy(to, from, static_cast<size_t>(size));
  }
  void synchronize() override {}
  MemoryStatistics statistics() const override { return cpu_pool().statistics(); }
  void reset_peak() override { cpu_pool().reset_peak(); }
  int64_t compact() override { return cpu_pool().compact(); }
};

}  // namespace

Device& cpu_device() {
  static CpuDevice* device = new CpuDevice;
  return *device;
}

}  // namespace lamella
