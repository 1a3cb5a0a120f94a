// The graphs compiled so far, by what was recorded.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "lamella/runtime/capture.h"
#include "lamella/runtime/executable.h"
#include "lamella/runtime/size_pattern.h"

namespace lamella {

class LAMELLA_API GraphCache {
 public:
  struct Found {
    std::shared_ptr<Executable> executable;
    std::vector<int64_t> bindings;
  };

  // The executable for a capture: the one used last time, else one over symbolic sizes that fits,
  // else one compiled now. The second capture of a structure with other sizes makes the symbolic
  // one.
  Found find_or_compile(const Capture& captured);

  void clear();

 private:
  struct Exact {
    std::vector<uint64_t> words;
    Found found;
  };
  struct Structure {
    std::vector<uint64_t> words;
    std::vector<int64_t> sizes;  // of the first capture
    SizePattern pattern;
    std::vector<TensorType> types;  // of the nodes, in terms of the pattern
    std::shared_ptr<Executable> symbolic;
    int64_t generalized = 0;  // how often a symbolic graph was tried
  };

  std::shared_ptr<Executable> compile(LoweredCapture lowered);
  std::optional<Found> fit(const Structure& structure, const Capture& captured) const;
  std::optional<Found> compile_symbolic(Structure& structure, const Capture& captured);

  std::mutex mutex_;
  std::unordered_map<Hash128, Exact> exact_;
  std::unordered_map<Hash128, Structure> structures_;
};

}  // namespace lamella
