// Working memory a kernel is lent for one call.
#pragma once

#include <cstdint>

#include "lamella/base/api.h"
#include "lamella/device/allocation.h"

namespace lamella::kernels {

// Each kernel that needs working memory has a <name>_scratch_bytes beside it. A call that is lent
// less than that (nothing, by default; or too little, after the thread count was changed) takes
// what it needs from cpu_pool() for its duration.
struct Scratch {
  void* data = nullptr;  // 64-byte aligned
  int64_t size = 0;      // bytes
};

constexpr int64_t scratch_aligned(int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

// Cuts the working memory of one call into parts. Kernels ask first for the whole, then for its
// parts in a fixed order.
class LAMELLA_API ScratchParts {
 public:
  ScratchParts(Scratch lent, int64_t bytes);

  // The next `bytes`, 64-byte aligned; their size counts as scratch_aligned(bytes) in the whole.
  void* take(int64_t bytes);
  // All that is left, to lend on.
  Scratch rest() const { return {next_, left_}; }

 private:
  Ref<Allocation> own_;
  char* next_ = nullptr;
  int64_t left_ = 0;
};

}  // namespace lamella::kernels
