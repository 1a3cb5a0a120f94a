// The caching pool: slabs of equal blocks for small sizes, whole mappings for large ones. A free
// block stays an Allocation object without references, so reuse makes nothing new.
#include <array>
#include <atomic>
#include <bit>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_set>

#include "lamella/base/system/pages.h"
#include "lamella/device/pool_implementation.h"

namespace lamella {

namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kSmallLimit = 32 << 10;
constexpr int64_t kSlabBytes = 64 << 10;
constexpr int64_t kUnusedAllowance = 64 << 20;

// Sizes in units of kAlignment: 1 ... 8, then 8 classes a doubling.
constexpr int class_of(int64_t size) {
  const uint64_t units = static_cast<uint64_t>(std::max<int64_t>(size - 1, 0) / kAlignment);
  if (units < 8) return static_cast<int>(units);
  const int shift = static_cast<int>(std::bit_width(units)) - 4;  // units >> shift is in [8, 16)
  return 8 * shift + static_cast<int>(units >> shift);
}
constexpr int64_t class_bytes(int index) {
  if (index < 8) return (index + 1) * kAlignment;
  const int shift = index / 8 - 1;
  return (static_cast<int64_t>(index % 8 + 8 + 1) << shift) * kAlignment;
}
constexpr int kClasses = class_of(kSmallLimit) + 1;
static_assert(class_bytes(class_of(1)) == 64 && class_bytes(class_of(512)) == 512);
static_assert(class_bytes(class_of(513)) == 576 && class_bytes(class_of(1025)) == 1152);
static_assert(class_bytes(kClasses - 1) == kSmallLimit);

// Held for a few instructions at a time.
class SpinLock {
 public:
  void lock() {
    for (int spins = 0; held_.exchange(true, std::memory_order_acquire);) {
      if (++spins > 64) std::this_thread::yield();
    }
  }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> held_{false};
};

struct Slab;
class Block;
using BlocksBySize = std::multimap<int64_t, Block*>;

class Block final : public Allocation {
 public:
  Block(AllocationOwner& owner, void* memory, Slab* slab) : Allocation(owner), slab_(slab) {
    data_ = memory;
    size_ = kFree;
  }
  static constexpr int64_t kFree = -1;

  void take(int64_t size, const Holder& holder) {
    size_ = size;
    holder_ = holder;
  }
  void give_back() { size_ = kFree; }
  bool is_free() const { return size_ == kFree; }
  Slab* slab() const { return slab_; }

  Block* next = nullptr;         // in the free list of its size class
  BlocksBySize::node_type node;  // of a large block in use: its entry among the free ones

 private:
  Slab* slab_;  // null for a large block
};

// Pages cut into blocks of one size class.
struct Slab {
  int size_class;
  void* pages;
  int64_t bytes;
  std::deque<Block> blocks;
};

struct alignas(64) SizeClass {
  SpinLock lock;
  Block* free = nullptr;
  int64_t allocations = 0;
  std::vector<std::unique_ptr<Slab>> slabs;
};

class CachingPool final : public PoolImplementation {
 public:
  explicit CachingPool(int64_t limit) : PoolImplementation(limit) {}
  ~CachingPool() override { compact(); }

  Ref<Allocation> allocate(int64_t size, const Holder& holder) override {
    Block* block = size <= kSmallLimit ? take_small(size, holder) : take_large(size, holder);
    count_use(*block);
    return Ref<Allocation>(block);
  }

  // A fork may have come while another thread held a small lock: it took a free block, which is
  // lost here, or was about to give one back.
  void mend_in_child() override {
    for (SizeClass& size_class : classes_) size_class.lock.unlock();
  }

  int64_t compact() override {
    const int64_t before = reserved();
    trim(0);
    return before - reserved();
  }

  int64_t allocation_count() override {
    int64_t count = 0;
    for (SizeClass& size_class : classes_) {
      std::lock_guard lock(size_class.lock);
      count += size_class.allocations;
    }
    const WholeAtForks lock(large_mutex_);
    return count + large_allocations_;
  }

 private:
  Block* take_small(int64_t size, const Holder& holder) {
    SizeClass& size_class = classes_[static_cast<size_t>(class_of(size))];
    {
      std::lock_guard lock(size_class.lock);
      if (Block* block = size_class.free) [[likely]] {
        size_class.free = block->next;
        ++size_class.allocations;
        block->take(size, holder);
        return block;
      }
    }
    return take_from_new_slab(size_class, class_of(size), size, holder);
  }

  Block* take_from_new_slab(SizeClass& size_class, int index, int64_t size, const Holder& holder) {
    const int64_t block_bytes = class_bytes(index);
    const int64_t bytes = std::max(kSlabBytes, round_to_pages(4 * block_bytes));
    auto slab = std::make_unique<Slab>(index, reserve_pages(bytes, size, holder), bytes);
    for (int64_t at = 0; at + block_bytes <= bytes; at += block_bytes) {
      slab->blocks.emplace_back(owner(), static_cast<char*>(slab->pages) + at, slab.get());
    }
    std::lock_guard lock(size_class.lock);
    for (size_t i = slab->blocks.size() - 1; i > 0; --i) {
      slab->blocks[i].next = size_class.free;
      size_class.free = &slab->blocks[i];
    }
    Block* block = &slab->blocks.front();
    block->take(size, holder);
    ++size_class.allocations;
    size_class.slabs.push_back(std::move(slab));
    return block;
  }

  Block* take_large(int64_t size, const Holder& holder) {
    const int64_t bytes = round_to_pages(size);
    {
      const WholeAtForks lock(large_mutex_);
      ++large_allocations_;
      const auto found = free_large_.lower_bound(bytes);
      if (found != free_large_.end() && found->first <= bytes + bytes / 4) {
        Block* block = found->second;
        block->node = free_large_.extract(found);
        block->take(size, holder);
        return block;
      }
    }
    const int64_t bound = peak_used() + peak_used() / 4 + kUnusedAllowance;
    if (reserved() + bytes > bound) trim(std::max<int64_t>(bound - bytes, 0));
    void* pages = reserve_pages(bytes, size, holder);
    auto* block = new Block(owner(), pages, nullptr);
    const WholeAtForks lock(large_mutex_);
    BlocksBySize::iterator entry = free_large_.emplace(bytes, block);
    block->node = free_large_.extract(entry);
    block->take(size, holder);
    large_.insert(block);
    return block;
  }

  void reclaim(Allocation& freed) noexcept override {
    Block& block = static_cast<Block&>(freed);
    count_release(block);
    if (Slab* slab = block.slab()) {
      SizeClass& size_class = classes_[static_cast<size_t>(slab->size_class)];
      std::lock_guard lock(size_class.lock);
      block.give_back();
      block.next = size_class.free;
      size_class.free = &block;
    } else {
      const WholeAtForks lock(large_mutex_);
      block.give_back();
      free_large_.insert(std::move(block.node));
    }
  }

  void change_holder(Allocation& allocation, const Holder& holder) override {
    if (Slab* slab = static_cast<Block&>(allocation).slab()) {
      std::lock_guard lock(classes_[static_cast<size_t>(slab->size_class)].lock);
      assign_holder(allocation, holder);
    } else {
      const WholeAtForks lock(large_mutex_);
      assign_holder(allocation, holder);
    }
  }

  void trim(int64_t target) override {
    trim_large(target);
    if (reserved() > target) trim_slabs();
  }

  // The largest blocks first.
  void trim_large(int64_t target) {
    const WholeAtForks lock(large_mutex_);
    while (!free_large_.empty() && reserved() > target) {
      const auto last = std::prev(free_large_.end());
      return_pages(last->second->data(), last->first);
      large_.erase(last->second);
      delete last->second;
      free_large_.erase(last);
    }
  }

  // Slabs of which no block is in use.
  void trim_slabs() {
    for (SizeClass& size_class : classes_) {
      std::vector<std::unique_ptr<Slab>> unused;
      {
        std::lock_guard lock(size_class.lock);
        const auto in_use =
            std::partition(size_class.slabs.begin(), size_class.slabs.end(), [](const auto& slab) {
              return std::any_of(slab->blocks.begin(), slab->blocks.end(),
                                 [](const Block& block) { return !block.is_free(); });
            });
        unused.assign(std::make_move_iterator(in_use),
                      std::make_move_iterator(size_class.slabs.end()));
        size_class.slabs.erase(in_use, size_class.slabs.end());
        size_class.free = nullptr;
        for (const auto& slab : size_class.slabs) {
          for (Block& block : slab->blocks) {
            if (!block.is_free()) continue;
            block.next = size_class.free;
            size_class.free = &block;
          }
        }
      }
      for (const auto& slab : unused) return_pages(slab->pages, slab->bytes);
    }
  }

  std::vector<LiveAllocation> live() override {
    std::vector<LiveAllocation> all;
    const auto add = [&](const Block& block) {
      if (!block.is_free()) all.push_back({&block, block.size(), block.holder()});
    };
    for (SizeClass& size_class : classes_) {
      std::lock_guard lock(size_class.lock);
      for (const auto& slab : size_class.slabs) {
        for (const Block& block : slab->blocks) add(block);
      }
    }
    const WholeAtForks lock(large_mutex_);
    for (const Block* block : large_) add(*block);
    return all;
  }

  std::array<SizeClass, kClasses> classes_;
  std::mutex large_mutex_;
  BlocksBySize free_large_;  // by mapped bytes
  std::unordered_set<Block*> large_;
  int64_t large_allocations_ = 0;
};

}  // namespace

std::unique_ptr<PoolImplementation> make_caching_pool(int64_t limit) {
  return std::make_unique<CachingPool>(limit);
}

}  // namespace lamella
