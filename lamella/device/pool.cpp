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

Ref<Allocation> MemoryPool::allocate(int64_t size, const char* tag) {
  if (size < 0) [[unlikely]]
    fail(ErrorKind::Value, "[allocate] size must not be negative, got {}", size);
  return implementation_->allocate(size, tag);
}

MemoryStatistics MemoryPool::statistics() const {
  return {.reserved = implementation_->reserved(),
          .used = implementation_->used(),
          .peak_used = implementation_->peak_used(),
          .allocation_count = implementation_->allocation_count()};
}

void MemoryPool::reset_peak() {
  implementation_->reset_peak();
}

int64_t MemoryPool::compact() {
  return implementation_->compact();
}

MemoryPool& cpu_pool() {
  static MemoryPool* pool = new MemoryPool(pool_options_from_environment());
  return *pool;
}

void* PoolImplementation::try_reserve(int64_t bytes) {
  const int64_t reserved = reserved_.fetch_add(bytes) + bytes;
  if (limit_ == 0 || reserved <= limit_) {
    if (void* pages = map_pages(bytes)) return pages;
  }
  reserved_ -= bytes;
  return nullptr;
}

void* PoolImplementation::reserve_pages(int64_t bytes, int64_t asked) {
  if (void* pages = try_reserve(bytes)) return pages;
  trim(limit_ > bytes ? limit_ - bytes : 0);
  if (void* pages = try_reserve(bytes)) return pages;
  fail_out_of_memory(asked);
}

void PoolImplementation::return_pages(void* pages, int64_t bytes) {
  unmap_pages(pages, bytes);
  reserved_ -= bytes;
}

void PoolImplementation::fail_out_of_memory(int64_t asked) {
  std::map<std::string_view, int64_t> by_tag;
  for (const Holder& holder : holders()) {
    by_tag[holder.tag == nullptr ? "untagged" : holder.tag] += holder.bytes;
  }
  std::vector<std::pair<std::string_view, int64_t>> largest(by_tag.begin(), by_tag.end());
  std::sort(largest.begin(), largest.end(),
            [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string held;
  constexpr size_t kNamed = 8;
  for (size_t i = 0; i < std::min(kNamed, largest.size()); ++i) {
    held += fmt::format("{}{} {}", i == 0 ? "; held by " : ", ", largest[i].first,
                        size_text(largest[i].second));
  }
  if (largest.size() > kNamed) held += fmt::format(" and {} more", largest.size() - kNamed);
  const std::string limit = limit_ > 0 ? fmt::format(" of at most {}", size_text(limit_)) : "";
  fail(ErrorKind::Memory, "[allocate] out of memory: {} ({} bytes) asked, {} in use{}{}",
       size_text(asked), asked, size_text(used()), limit, held);
}

}  // namespace lamella
