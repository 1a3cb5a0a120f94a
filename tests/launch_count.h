// How many kernels a piece of program launches.
#pragma once

#include <functional>

#include "tests/window_limits.h"

#include "lamella/runtime/counters.h"

namespace lamella::testing_support {

// The launches of a second run, when everything is compiled, in a window as long as a program's.
inline int64_t launches_of(const std::function<void()>& run) {
  const ScopedWindowLimits long_window;
  run();
  const int64_t before = counters().launches;
  run();
  return counters().launches - before;
}

}  // namespace lamella::testing_support
