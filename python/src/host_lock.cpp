// Python as the host of lamella/base/host.h.
#include "python/src/host_lock.h"

#include "python/src/errors.h"

namespace lamella::python {

namespace {

void* release() {
  // Also false while the interpreter shuts down, where nothing may be released any more.
  return PyGILState_Check() != 0 ? PyEval_SaveThread() : nullptr;
}

void acquire(void* state) {
  PyEval_RestoreThread(static_cast<PyThreadState*>(state));
}

void poll() {
  const HostLock lock;
  if (PyErr_CheckSignals() != 0) throw_python_error();
}

}  // namespace

void install_host() {
  set_host({.release = release, .acquire = acquire, .poll = poll});
}

}  // namespace lamella::python
