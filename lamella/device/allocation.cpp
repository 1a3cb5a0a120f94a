// Allocations over memory that belongs to someone else.
#include "lamella/device/allocation.h"

#include <utility>

namespace lamella {

namespace {

class ExternalAllocation final : public Allocation {
 public:
  ExternalAllocation(AllocationOwner& owner, void* data, int64_t size,
                     std::function<void()> release)
      : Allocation(owner), release_(std::move(release)) {
    data_ = data;
    size_ = size;
    holder_ = "external";
  }
  ~ExternalAllocation() {
    if (release_) release_();
  }

 private:
  std::function<void()> release_;
};

class ExternalOwner final : public AllocationOwner {
 public:
  void reclaim(Allocation& allocation) noexcept override {
    delete static_cast<ExternalAllocation*>(&allocation);
  }
};

}  // namespace

std::string text(const Holder& holder) {
  std::string said = holder.name == nullptr ? "unnamed" : holder.name;
  if (holder.has_type) said += fmt::format(" {}", text(holder.type));
  if (holder.location.known()) {
    said += fmt::format(" ({}:{})", holder.location.file, holder.location.line);
  }
  return said;
}

Ref<Allocation> wrap_external(void* data, int64_t size, std::function<void()> release) {
  static ExternalOwner owner;
  return Ref<Allocation>(new ExternalAllocation(owner, data, size, std::move(release)));
}

}  // namespace lamella
