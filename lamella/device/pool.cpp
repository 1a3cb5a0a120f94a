// What both kinds of pool share: options, limits, the out-of-memory report.
#include "lamella/device/pool.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include "lamella/base/env.h"
#include "lamella/base/error.h"
#include "lamella/base/system/pages.h"
#include "lamella/device/pool_implementation.h"

namespace lamella {

namespace {

std::string size_text(int64_t bytes) {
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  double value = static_cast<double>(bytes);
  const char* unit = "bytes";
  for (const char* larger : {"KiB", "MiB", "GiB", "TiB"}) {
    if (value < 1024) break;
    value /= 1024;
    unit = larger;
  }
  return fmt::format("{:.1f} {}", value, unit);
}

}  // namespace

PoolOptions pool_options_from_environment() {
  PoolOptions options;
  options.guard = static_cast<GuardMode>(environment_integer("LAMELLA_GUARD", 0, 0, 2));
  if (environment("LAMELLA_MEMORY_LIMIT")) {
    options.limit = environment_integer("LAMELLA_MEMORY_LIMIT", 0, 1, INT64_MAX);
  }
  return options;
}

MemoryPool::MemoryPool(PoolOptions options) {
  const int64_t limit = options.limit.value_or(memory_limit());
  implementation_ = options.guard == GuardMode::Off ? make_caching_pool(limit)
                                                    : make_guarded_pool(limit, options.guard);
}

MemoryPool::~MemoryPool() = default;

Ref<Allocation> MemoryPool::allocate(int64_t size, const Holder& holder) {
  if (size < 0) [[unlikely]]
    fail(ErrorKind::Value, "[allocate] size must not be negative, got {}", size);
  return implementation_->allocate(size, holder);
}

MemoryStatistics MemoryPool::statistics() const {
  return {.reserved = implementation_->reserved(),
          .used = implementation_->used(),
          .peak_used = implementation_->peak_used(),
          .peak_reserved = implementation_->peak_reserved(),
          .allocation_count = implementation_->allocation_count()};
}

int64_t MemoryPool::reserved() const {
  return implementation_->reserved();
}

void MemoryPool::reset_peak() {
  reset_peak_used();
  reset_peak_reserved();
}

void MemoryPool::reset_peak_used() {
  implementation_->reset_peak_used();
}

void MemoryPool::reset_peak_reserved() {
  implementation_->reset_peak_reserved();
}

int64_t MemoryPool::limit() const {
  return implementation_->limit();
}

void MemoryPool::set_limit(int64_t bytes) {
  if (bytes < 0) fail(ErrorKind::Value, "[set_limit] bytes must not be negative, got {}", bytes);
  const int64_t system = memory_limit();
  implementation_->set_limit(bytes == 0 || (system > 0 && system < bytes) ? system : bytes);
}

std::vector<LiveAllocation> MemoryPool::live() const {
  return implementation_->live();
}

void MemoryPool::set_listener(AllocationListener* listener) {
  implementation_->set_listener(listener);
}

int64_t MemoryPool::compact() {
  return implementation_->compact();
}

void MemoryPool::mend_in_child() {
  implementation_->mend_in_child();
}

MemoryPool& cpu_pool() {
  static MemoryPool* const pool = [] {
    in_child_of_fork([] { cpu_pool().mend_in_child(); });
    return new MemoryPool(pool_options_from_environment());
  }();
  return *pool;
}

void* PoolImplementation::try_reserve(int64_t bytes) {
  const int64_t reserved = reserved_.fetch_add(bytes) + bytes;
  if (limit() == 0 || reserved <= limit()) {
    if (void* pages = map_pages(bytes)) {
      raise(peak_reserved_, reserved);
      return pages;
    }
  }
  reserved_ -= bytes;
  return nullptr;
}

void* PoolImplementation::reserve_pages(int64_t bytes, int64_t asked, const Holder& holder) {
  if (void* pages = try_reserve(bytes)) return pages;
  trim(std::max<int64_t>(limit() - bytes, 0));
  if (void* pages = try_reserve(bytes)) return pages;
  fail_out_of_memory(asked, holder);
}

void PoolImplementation::return_pages(void* pages, int64_t bytes) {
  unmap_pages(pages, bytes);
  reserved_ -= bytes;
}

void PoolImplementation::fail_out_of_memory(int64_t asked, const Holder& holder) {
  struct Share {
    int64_t bytes = 0, count = 0;
  };
  std::map<std::string, Share> by_holder;
  for (const LiveAllocation& allocation : live()) {
    Share& share = by_holder[text(allocation.holder)];
    share.bytes += allocation.bytes;
    ++share.count;
  }
  std::vector<std::pair<std::string, Share>> largest(by_holder.begin(), by_holder.end());
  std::stable_sort(largest.begin(), largest.end(),
                   [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });
  std::string held;
  constexpr size_t kNamed = 8;
  for (size_t i = 0; i < std::min(kNamed, largest.size()); ++i) {
    const auto& [name, share] = largest[i];
    held += fmt::format("{}{}{} {}", i == 0 ? "; held by " : ", ",
                        share.count > 1 ? fmt::format("{} x ", share.count) : "", name,
                        size_text(share.bytes));
  }
  if (largest.size() > kNamed) held += fmt::format(" and {} more", largest.size() - kNamed);
  const std::string limit = this->limit() > 0 ? " of at most " + size_text(this->limit()) : "";
  const std::string asker = holder.name == nullptr ? "" : " for " + text(holder);
  throw Error(ErrorKind::Memory,
              fmt::format("[allocate] out of memory: {} ({} bytes) asked{}, {} in use{}{}",
                          size_text(asked), asked, asker, size_text(used()), limit, held),
              holder.location);
}

}  // namespace lamella
