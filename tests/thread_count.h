// The number of threads while a test, or a part of one, runs.
#pragma once

#include "lamella/base/parallel.h"

namespace lamella::testing_support {

class ScopedThreadCount {
 public:
  explicit ScopedThreadCount(int count) { set_thread_count(count); }
  ~ScopedThreadCount() { set_thread_count(before_); }
  ScopedThreadCount(const ScopedThreadCount&) = delete;
  ScopedThreadCount& operator=(const ScopedThreadCount&) = delete;

 private:
  const int before_ = thread_count();
};

}  // namespace lamella::testing_support
