// The kernels of this process by program and instruction set.
#pragma once

#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "lamella/base/function_ref.h"
#include "lamella/base/hash.h"
#include "lamella/tile/cpu/disk_cache.h"
#include "lamella/tile/cpu/kernel.h"

namespace lamella::tile {

class Ir;

// Keeps the kernels used last, up to a number of bytes of code, in front of a cache on disk. A
// kernel that is evicted lives on as long as someone holds it.
class LAMELLA_API KernelCache {
 public:
  struct Options {
    int64_t code_limit = int64_t{256} << 20;
    std::optional<std::string> folder;  // none: nothing on disk
  };
  explicit KernelCache(Options options);
  // The process's own, with the user's cache folder.
  static KernelCache& instance();

  Ref<const Kernel> get(const Program& program, InstructionSet set);
  // The object file of what `emit` emits, from disk or compiled now. `source` names it.
  std::string object(std::string_view source, InstructionSet set, FunctionRef<void(Ir&)> emit);
  KernelCacheStatistics statistics();

 private:
  struct Entry {
    Hash128 key;
    InstructionSet set;
    Ref<const Kernel> kernel;
  };
  using Entries = std::list<Entry>;  // the one used last in front

  Ref<const Kernel> find(const Hash128& key, const Program& program, InstructionSet set);
  void insert(const Hash128& key, InstructionSet set, const Ref<const Kernel>& kernel,
              Entries& evicted);

  const int64_t code_limit_;
  const DiskCache disk_;
  std::mutex mutex_;
  Entries entries_;
  std::unordered_multimap<Hash128, Entries::iterator> index_;
  KernelCacheStatistics statistics_;
};

}  // namespace lamella::tile
