// LAMELLA_GUARD: each allocation alone beside an unmapped page; nothing is kept for reuse.
#include <cstring>
#include <mutex>
#include <unordered_set>

#include "lamella/base/system/pages.h"
#include "lamella/device/pool_implementation.h"

namespace lamella {

namespace {

class GuardedAllocation final : public Allocation {
 public:
  // `pages` hold the memory and the forbidden page.
  GuardedAllocation(AllocationOwner& owner, char* pages, int64_t mapped, int64_t offset,
                    int64_t size, const Holder& holder)
      : Allocation(owner), pages_(pages), mapped_(mapped) {
    data_ = pages + offset;
    size_ = size;
    holder_ = holder;
  }
  char* pages() const { return pages_; }
  int64_t mapped() const { return mapped_; }

 private:
  char* pages_;
  int64_t mapped_;
};

class GuardedPool final : public PoolImplementation {
 public:
  GuardedPool(int64_t limit, GuardMode mode) : PoolImplementation(limit), mode_(mode) {}

  Ref<Allocation> allocate(int64_t size, const Holder& holder) override {
    const int64_t page = page_size();
    const int64_t mapped = round_to_pages(size) + page;
    char* pages = static_cast<char*>(reserve_pages(mapped, size, holder));
    const bool at_end = mode_ == GuardMode::End;
    forbid_access(at_end ? pages + mapped - page : pages, page);
    auto* allocation = new GuardedAllocation(owner(), pages, mapped,
                                             at_end ? mapped - page - size : page, size, holder);
    std::memset(allocation->data(), 0xFF, static_cast<size_t>(size));
    count_use(*allocation);
    const WholeAtForks lock(mutex_);
    live_.insert(allocation);
    ++allocations_;
    return Ref<Allocation>(allocation);
  }

  int64_t compact() override { return 0; }
  int64_t allocation_count() override {
    const WholeAtForks lock(mutex_);
    return allocations_;
  }

 private:
  std::vector<LiveAllocation> live() override {
    const WholeAtForks lock(mutex_);
    std::vector<LiveAllocation> all;
    for (const auto* allocation : live_) {
      all.push_back({allocation, allocation->size(), allocation->holder()});
    }
    return all;
  }
  void trim(int64_t) override {}

  void reclaim(Allocation& freed) noexcept override {
    auto* allocation = static_cast<GuardedAllocation*>(&freed);
    {
      const WholeAtForks lock(mutex_);
      live_.erase(allocation);
    }
    count_release(*allocation);
    return_pages(allocation->pages(), allocation->mapped());
    delete allocation;
  }

  void change_holder(Allocation& allocation, const Holder& holder) override {
    const WholeAtForks lock(mutex_);
    assign_holder(allocation, holder);
  }

  const GuardMode mode_;
  std::mutex mutex_;
  std::unordered_set<const GuardedAllocation*> live_;
  int64_t allocations_ = 0;
};

}  // namespace

std::unique_ptr<PoolImplementation> make_guarded_pool(int64_t limit, GuardMode mode) {
  return std::make_unique<GuardedPool>(limit, mode);
}

}  // namespace lamella
