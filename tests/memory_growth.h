// How much more memory the process takes than at an earlier moment.
#pragma once

#include <cstdint>
#include <fstream>

#include <unistd.h>

namespace lamella::testing_support {

class MemoryGrowth {
 public:
  void begin() { before_ = resident_bytes(); }
  // The sanitizers keep what is freed, to find uses of it: nothing can be said under them.
  int64_t bytes() const {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return 0;
#else
    return resident_bytes() - before_;
#endif
  }

 private:
  static int64_t resident_bytes() {
    std::ifstream file("/proc/self/statm");
    int64_t total = 0, resident = 0;
    file >> total >> resident;
    return resident * ::getpagesize();
  }

  int64_t before_ = 0;
};

}  // namespace lamella::testing_support
