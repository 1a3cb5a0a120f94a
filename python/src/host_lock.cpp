// Python as the host of lamella/base/host.h.
#include "python/src/host_lock.h"

#include <chrono>
#include <thread>

#include "python/src/errors.h"
#include <cxxabi.h>

namespace lamella::python {

void stay() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

namespace {

// Before 3.14, Python ends a thread that asks for its lock after the interpreter, by unwinding the
// stack of the thread (pthread_exit), for which C++ is not made. Such a thread stays where it is
// until the process ends, as it does in later versions.
template <typename Ask>
auto take_or_stay(Ask ask) {
  try {
    return ask();
  } catch (const abi::__forced_unwind&) {
    stay();
  }
}

void* release() {
  // Also false while the interpreter shuts down, where nothing may be released any more.
  return PyGILState_Check() != 0 ? PyEval_SaveThread() : nullptr;
}

void acquire(void* state) {
  take_or_stay([&] { PyEval_RestoreThread(static_cast<PyThreadState*>(state)); });
}

void poll() {
  const HostLock lock;
  if (PyErr_CheckSignals() != 0) throw_python_error();
}

}  // namespace

HostLock::HostLock() : state_(take_or_stay([] { return PyGILState_Ensure(); })) {}

void install_host() {
  set_host({.release = release, .acquire = acquire, .poll = poll});
}

}  // namespace lamella::python
