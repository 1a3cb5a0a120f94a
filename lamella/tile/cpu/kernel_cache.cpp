// Look-up, insertion and eviction of kernels.
#include "lamella/tile/cpu/kernel_cache.h"

#include "lamella/base/parallel.h"
#include "lamella/base/system/cache_folder.h"
#include "lamella/tile/cpu/kernel_code.h"

namespace lamella::tile {

KernelCache::KernelCache(Options options)
    : code_limit_(options.code_limit), disk_(std::move(options.folder)) {}

KernelCache& KernelCache::instance() {
  // Never destroyed: threads may compile while the process exits.
  static auto& cache = *new KernelCache({.folder = [] {
    auto folder = cache_folder_path();
    // The folder holds other caches too, so the private one is the folder itself.
    return folder && prepare_private_folder(*folder) ? std::optional(*folder + "/kernels")
                                                     : std::nullopt;
  }()});
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

void KernelCache::insert(const Hash128& key, InstructionSet set, const Ref<const Kernel>& kernel,
                         Entries& evicted) {
  entries_.push_front({key, set, kernel});
  index_.emplace(key, entries_.begin());
  statistics_.code_bytes += kernel->code_->code_bytes;
  while (statistics_.code_bytes > code_limit_ && entries_.size() > 1) {
    const Entries::iterator last = std::prev(entries_.end());
    const auto [begin, end] = index_.equal_range(last->key);
    index_.erase(std::find_if(begin, end, [&](const auto& item) { return item.second == last; }));
    statistics_.code_bytes -= last->kernel->code_->code_bytes;
    ++statistics_.evicted;
    evicted.splice(evicted.end(), entries_, last);
  }
}

std::string KernelCache::object(std::string_view source, InstructionSet set,
                                FunctionRef<void(Ir&)> emit) {
  if (auto found = disk_.find(source, set)) {
    std::lock_guard lock(mutex_);
    ++statistics_.disk_hits;
    return *std::move(found);
  }
  Ir ir(set);
  emit(ir);
  std::string result = compile_object(ir);
  disk_.insert(source, set, result);
  std::lock_guard lock(mutex_);
  ++statistics_.compiled;
  return result;
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
  Program nameless = program;
  nameless.name.clear();
  const std::string code = object(print(nameless), set, [&](Ir& ir) { emit_program(ir, program); });
  Ref<const Kernel> kernel(new Kernel(std::make_unique<Kernel::Code>(program, set, code)));
  Entries evicted;  // released after the lock: that frees code
  std::lock_guard lock(mutex_);
  // Another thread may have made the same program meanwhile; the first one stays.
  if (Ref<const Kernel> existing = find(program_key, program, set)) return existing;
  insert(program_key, set, kernel, evicted);
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
  std::vector<Ref<const Kernel>> kernels(programs.size());
  parallel_for(static_cast<int64_t>(programs.size()), 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      kernels[i] = compile(programs[i], set);
    }
  });
  return kernels;
}

KernelCacheStatistics kernel_cache_statistics() {
  return KernelCache::instance().statistics();
}

}  // namespace lamella::tile
