// Compiled object files kept in a folder between processes.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>

#include "lamella/base/api.h"
#include "lamella/tile/cpu/kernel.h"

namespace lamella::tile {

// An entry names all that its code depends on (what was compiled, the CPU and its features, LLVM's
// version, this library's build) and carries a digest; one that differs in any of it, or is
// damaged, counts as absent and is replaced. Safe with several processes and threads at once.
class LAMELLA_API DiskCache {
 public:
  // Keeps nothing if the folder is not this user's own (see prepare_private_folder).
  explicit DiskCache(std::optional<std::string> folder);

  // `source` says what was compiled: the text of a program, or the name and sizes of other code.
  std::optional<std::string> find(std::string_view source, InstructionSet set) const;
  void insert(std::string_view source, InstructionSet set, std::string_view object) const;

  bool usable() const { return folder_.has_value(); }
  // The file of an entry.
  std::string path(std::string_view source, InstructionSet set) const;

 private:
  std::optional<std::string> folder_;
  mutable std::atomic<bool> writable_{true};
  mutable std::atomic<uint64_t> insertions_{0};
};

}  // namespace lamella::tile
