// The limits of the thread's window while a test, or a part of one, runs.
#pragma once

#include "lamella/ir/window.h"

namespace lamella::testing_support {

// Without arguments the window is as long as a program's, whatever LAMELLA_WINDOW says: for tests
// of what windows save, and of when their errors come.
class ScopedWindowLimits {
 public:
  explicit ScopedWindowLimits(WindowLimits limits = {}) : before_(Window::of_thread().limits()) {
    Window::of_thread().set_limits(limits);
  }
  ~ScopedWindowLimits() { Window::of_thread().set_limits(before_); }
  ScopedWindowLimits(const ScopedWindowLimits&) = delete;
  ScopedWindowLimits& operator=(const ScopedWindowLimits&) = delete;

 private:
  WindowLimits before_;
};

}  // namespace lamella::testing_support
