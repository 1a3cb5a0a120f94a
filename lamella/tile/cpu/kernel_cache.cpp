// Look-up, insertion and eviction of kernels.
#include "lamella/tile/cpu/kernel_cache.h"

#include "lamella/tile/cpu/kernel_code.h"

namespace lamella::tile {

namespace {
constexpr int64_t kCodeLimit = int64_t{256} << 20;
}

KernelCache& KernelCache::instance() {
  static auto& cache = *new KernelCache;  // never destroyed: threads may compile while exiting
  return cache;
}

Ref<const Kernel> KernelCache::find(const Hash128& key, const Program& program,
                                    InstructionSet set) {
  const auto [begin, end] = index_.equal_range(key);
  for (auto i = begin; i != end; ++i) {
    const Entries::iterator entry = i->second;
    if (entry->set != set || !(entry->kernel->program() == program)) continue;
    entries_.splice(entries_.begin(), entries_, entry);
    return entry->kernel;
  }
  return nullptr;
}

void KernelCache::insert(const Hash128& key, InstructionSet set, const Ref<const Kernel>& kernel) {
  entries_.push_front({key, set, kernel});
  index_.emplace(key, entries_.begin());
  statistics_.code_bytes += kernel->code_->code_bytes;
  while (statistics_.code_bytes > kCodeLimit && entries_.size() > 1) {
    const Entries::iterator last = std::prev(entries_.end());
    const auto [begin, end] = index_.equal_range(last->key);
    for (auto i = begin; i != end; ++i) {
      if (i->second != last) continue;
      index_.erase(i);
      break;
    }
    statistics_.code_bytes -= last->kernel->code_->code_bytes;
    ++statistics_.evicted;
    entries_.erase(last);
  }
}

Ref<const Kernel> KernelCache::get(const Program& program, InstructionSet set) {
  const Hash128 program_key = key(program);
  {
    std::lock_guard lock(mutex_);
    if (Ref<const Kernel> kernel = find(program_key, program, set)) {
      ++statistics_.memory_hits;
      return kernel;
    }
  }
  verify(program);
  const std::string object = compile_program(program, set);
  Ref<const Kernel> kernel(new Kernel(std::make_unique<Kernel::Code>(program, set, object)));
  std::lock_guard lock(mutex_);
  ++statistics_.compiled;
  // Another thread may have compiled the same program meanwhile; the first one stays.
  if (Ref<const Kernel> existing = find(program_key, program, set)) return existing;
  insert(program_key, set, kernel);
  return kernel;
}

KernelCacheStatistics KernelCache::statistics() {
  std::lock_guard lock(mutex_);
  return statistics_;
}

Ref<const Kernel> compile(const Program& program, InstructionSet set) {
  return KernelCache::instance().get(program, set);
}

std::vector<Ref<const Kernel>> compile_all(std::span<const Program> programs, InstructionSet set) {
  std::vector<Ref<const Kernel>> kernels;
  for (const Program& program : programs) kernels.push_back(compile(program, set));
  return kernels;
}

KernelCacheStatistics kernel_cache_statistics() {
  return KernelCache::instance().statistics();
}

}  // namespace lamella::tile
