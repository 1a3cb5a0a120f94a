// Calls of users' functions, with random numbers of their own.
#include "python/src/user_function.h"

#include "python/src/dataset_arrays.h"
#include "python/src/errors.h"
#include "python/src/host_lock.h"
#include "python/src/worker_pool.h"
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "lamella/base/system/fork.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace lamella::python {

namespace {

// Functions of the package: call(handler, key, numbers, arrays) gives the call random numbers of
// its own; serve(channel, handler) answers requests in a worker; raised(failure) is the exception
// that a worker described.
PyObject* call_function = nullptr;
PyObject* serve_function = nullptr;
PyObject* raised_function = nullptr;

}  // namespace

struct UserFunction::State {
  SharedObject handler;
  std::string name;
  std::optional<int64_t> shared_bytes;
  std::mutex mutex;
  std::weak_ptr<WorkerPool> pool;

  // The workers that an iterator has started, also while they end.
  std::shared_ptr<WorkerPool> running() {
    const UnforkableWork whole;  // a child of fork finds the mutex free
    std::lock_guard lock(mutex);
    std::shared_ptr<WorkerPool> workers = pool.lock();
    return workers && workers->in_this_process() ? workers : nullptr;
  }
};

UserFunction::UserFunction(nb::object handler, std::string name,
                           std::optional<int64_t> shared_bytes)
    : state_(new State{.handler = SharedObject(std::move(handler)),
                       .name = std::move(name),
                       .shared_bytes = shared_bytes,
                       .mutex = {},
                       .pool = {}}) {}

const std::string& UserFunction::name() const {
  return state_->name;
}

data::Message UserFunction::call(data::Message request) const {
  if (const std::shared_ptr<WorkerPool> workers = state_->running()) {
    data::Message answer = workers->ask(request);
    if (answer.failure.empty()) return answer;
    const HostLock lock;
    nb::object exception = nb::handle(raised_function)(
        nb::bytes(answer.failure.data(), answer.failure.size()), state_->name);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
    throw_python_error();
  }
  const HostLock lock;
  nb::object answer = nb::handle(call_function)(nb::handle(state_->handler.get()), request.key,
                                                numbers_to_python(request.numbers),
                                                arrays_to_python(std::move(request.arrays)));
  nb::object numbers = answer[0], arrays = answer[1];
  return {.numbers = numbers_from_python(numbers.ptr()), .arrays = arrays_from(arrays.ptr())};
}

std::shared_ptr<data::ProcessGroup> UserFunction::start_processes(int workers) const {
  if (!state_->shared_bytes) return nullptr;
  const std::unique_lock<std::mutex> starting = WorkerPool::starting();
  if (const std::shared_ptr<WorkerPool> running = state_->running()) {
    if (auto lease = WorkerPool::try_lease(running)) return lease;
  }
  const HostLock lock;
  nb::object handler = nb::borrow(state_->handler.get());
  nb::object serve =
      nb::module_::import_("functools").attr("partial")(nb::handle(serve_function), handler);
  const std::shared_ptr<WorkerPool> started =
      WorkerPool::start(state_->name, workers, *state_->shared_bytes, std::move(serve));
  auto lease = WorkerPool::try_lease(started);
  std::lock_guard guard(state_->mutex);
  state_->pool = started;
  return lease;
}

void add_user_functions(nb::module_& module) {
  nb::class_<UserFunction>(module, "UserFunction")
      .def(nb::init<nb::object, std::string, std::optional<int64_t>>(), "handler"_a, "name"_a,
           "shared_bytes"_a.none())
      .def_prop_ro("name", &UserFunction::name);
  module.def(
      "set_call_functions",
      [](nb::object call, nb::object serve, nb::object raised) {
        call_function = call.release().ptr();
        serve_function = serve.release().ptr();
        raised_function = raised.release().ptr();
      },
      "call"_a, "serve"_a, "raised"_a);
}

}  // namespace lamella::python
