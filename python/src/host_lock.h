// Python's lock: taken by threads that touch Python, given up around long work
// (lamella/base/host.h).
#pragma once

#include <nanobind/nanobind.h>

#include "lamella/base/host.h"

namespace lamella::python {

// Holds Python's lock while it lives, from any thread.
class HostLock {
 public:
  HostLock();
  ~HostLock() { PyGILState_Release(state_); }
  HostLock(const HostLock&) = delete;

 private:
  PyGILState_STATE state_;
};

// Keeps this thread where it is until the process ends.
[[noreturn]] void stay();

// Tells Lamella how to give up the lock, and how to ask for Ctrl-C.
void install_host();

}  // namespace lamella::python
