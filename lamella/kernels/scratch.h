// Working memory a kernel is lent for one call.
#pragma once

#include <cstdint>

namespace lamella::kernels {

// Each kernel that needs working memory has a <name>_scratch_bytes beside it. A call that is lent
// less than that (nothing, by default) takes what it needs from cpu_pool() for its duration.
struct Scratch {
  void* data = nullptr;  // 64-byte aligned
  int64_t size = 0;      // bytes
};

}  // namespace lamella::kernels
