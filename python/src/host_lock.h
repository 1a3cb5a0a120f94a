// Python's lock around long work of ours, and around short work of Python's in other threads.
#pragma once

#include <nanobind/nanobind.h>

namespace lamella::python {

// Gives up Python's lock while it lives, if this thread holds it.
class HostRelease {
 public:
  HostRelease() : state_(PyGILState_Check() ? PyEval_SaveThread() : nullptr) {}
  ~HostRelease() {
    if (state_ != nullptr) PyEval_RestoreThread(state_);
  }
  HostRelease(const HostRelease&) = delete;

 private:
  PyThreadState* state_;
};

// Holds Python's lock while it lives, from any thread.
class HostLock {
 public:
  HostLock() : state_(PyGILState_Ensure()) {}
  ~HostLock() { PyGILState_Release(state_); }
  HostLock(const HostLock&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace lamella::python
