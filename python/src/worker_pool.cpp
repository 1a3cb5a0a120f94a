// Forking workers, asking them, and ending them.
#include "python/src/worker_pool.h"

#include <atomic>
#include <cstdlib>
#include <new>
#include <set>
#include <thread>

#include "python/src/dataset_arrays.h"
#include "python/src/errors.h"
#include "python/src/host_lock.h"
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "lamella/base/system/child_process.h"
#include "lamella/base/system/fork.h"
#include "lamella/base/system/process.h"
#include "lamella/ir/window.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace lamella::python {

namespace {

// All pools of the process. A fork waits while the set is changed, so a child finds it whole.
struct Pools {
  std::mutex starting;
  std::mutex mutex;
  std::set<WorkerPool*> all;
};

// Never destroyed: pools may outlive static objects.
Pools& pools() {
  static Pools* const list = new Pools;
  return *list;
}

// What the program printed and its streams still hold would be printed by each child again.
void flush_streams() {
  for (const char* name : {"stdout", "stderr"}) {
    PyObject* stream = PySys_GetObject(name);
    if (stream == nullptr || stream == Py_None) continue;
    PyObject* done = PyObject_CallMethod(stream, "flush", nullptr);
    if (done == nullptr) PyErr_Clear();
    Py_XDECREF(done);
  }
}

// os.fork without its warning that the process has threads: what of them matters to a child, it
// does not touch (lamella/base/system/fork.h).
int64_t fork_interpreter() {
  flush_streams();
  PyOS_BeforeFork();
  int64_t child = -1;
  try {
    child = fork_process();
  } catch (...) {
    PyOS_AfterFork_Parent();
    throw;
  }
  if (child == 0) {
    PyOS_AfterFork_Child();
  } else {
    PyOS_AfterFork_Parent();
  }
  return child;
}

const char* const kClosed = "[dataset] the iterator was closed";

[[noreturn]] void throw_runtime_error(const std::string& message) {
  const HostLock lock;
  PyErr_SetString(PyExc_RuntimeError, message.c_str());
  throw_python_error();
}

}  // namespace

WorkerPool::WorkerPool(std::string name) : name_(std::move(name)), parent_(process_id()) {
  [[maybe_unused]] static const bool registered = [] {
    in_child_of_fork([] { close_all_channels(); });
    return true;
  }();
  const UnforkableWork whole;
  std::lock_guard lock(pools().mutex);
  pools().all.insert(this);
}

WorkerPool::~WorkerPool() {
  end(kClosed);
  const UnforkableWork whole;
  std::lock_guard lock(pools().mutex);
  pools().all.erase(this);
}

std::shared_ptr<WorkerPool> WorkerPool::start(std::string name, int workers, int64_t shared_bytes,
                                              nb::object serve) {
  // What a worker may want to read is computed before, since it cannot be in the worker.
  Window::of_thread().flush();
  std::shared_ptr<WorkerPool> pool(new WorkerPool(std::move(name)));
  pool->workers_.reserve(static_cast<size_t>(workers));
  for (int i = 0; i < workers; ++i) {
    auto [ours, theirs] = Channel::pair(shared_bytes);
    const int64_t process = fork_interpreter();
    if (process == 0) {
      ours.close();
      try {
        serve(ChannelHandle{std::move(theirs)});
      } catch (nb::python_error& error) {
        error.restore();
        PyErr_Print();
      }
      std::_Exit(1);
    }
    pool->free_.push_back(pool->workers_.size());
    pool->workers_.push_back({.process = process, .channel = std::move(ours)});
  }
  return pool;
}

class WorkerPool::Lease final : public data::ProcessGroup {
 public:
  explicit Lease(std::shared_ptr<WorkerPool> pool) : pool_(std::move(pool)) {}
  ~Lease() override { Lease::stop(); }
  // Keeps the pool: threads of the iterator may still ask it, and are told of the end.
  void stop() override {
    if (!stopped_.exchange(true)) pool_->end_lease();
  }

 private:
  std::atomic<bool> stopped_{false};
  std::shared_ptr<WorkerPool> pool_;
};

std::shared_ptr<data::ProcessGroup> WorkerPool::try_lease(const std::shared_ptr<WorkerPool>& pool) {
  std::lock_guard lock(pool->mutex_);
  if (!pool->end_.empty()) return nullptr;
  auto lease = std::make_shared<Lease>(pool);
  ++pool->leases_;
  return lease;
}

std::unique_lock<std::mutex> WorkerPool::starting() {
  return lock_beside_host(pools().starting);
}

bool WorkerPool::in_this_process() const {
  return parent_ == process_id();
}

void WorkerPool::close_channels() {
  for (Worker& worker : workers_) worker.channel.close();
}

void WorkerPool::close_all_channels() {
  // Whoever held the locks does not exist here.
  new (&pools().starting) std::mutex;
  new (&pools().mutex) std::mutex;
  for (WorkerPool* pool : pools().all) {
    new (&pool->mutex_) std::mutex;
    pool->close_channels();
  }
}

size_t WorkerPool::take() {
  std::unique_lock lock(mutex_);
  freed_.wait(lock, [&] { return !free_.empty() || !end_.empty(); });
  if (!end_.empty()) {
    const std::string reason = end_;
    lock.unlock();
    throw_runtime_error(reason);
  }
  const size_t worker = free_.back();
  free_.pop_back();
  return worker;
}

void WorkerPool::give_back(size_t worker) {
  {
    std::lock_guard lock(mutex_);
    free_.push_back(worker);
  }
  freed_.notify_one();
}

data::Message WorkerPool::ask(const data::Message& request) {
  const size_t number = take();
  Worker& worker = workers_[number];
  std::optional<data::Message> answer;
  try {
    if (data::send_message(worker.channel, request)) answer = data::receive_message(worker.channel);
  } catch (const std::exception& error) {
    lose(number, error.what());
    throw;
  }
  if (!answer) throw_runtime_error(lose(number));
  give_back(number);
  return std::move(*answer);
}

std::string WorkerPool::lose(size_t number, const std::string& wrong) {
  std::string reason;
  {
    std::lock_guard lock(mutex_);
    if (end_.empty()) {
      Worker& worker = workers_[number];
      // It may live, if the user's code closed its channel or the channel is in the middle of
      // something.
      worker.channel.shut_down();
      kill_process(worker.process);
      worker.reaped = true;
      const std::string how = reap_process(worker.process);
      end_ =
          wrong.empty()
              ? fmt::format(
                    "[dataset] worker process {} of '{}' {} before it gave its row; the system "
                    "kills processes when memory runs out",
                    worker.process, name_, how)
              : fmt::format("[dataset] a row of worker process {} of '{}' could not be taken: {}",
                            worker.process, name_, wrong);
    }
    reason = end_;
  }
  freed_.notify_all();
  return reason;
}

void WorkerPool::end_lease() {
  {
    std::lock_guard lock(mutex_);
    if (--leases_ == 0) end(kClosed);
  }
  freed_.notify_all();
}

void WorkerPool::end(const std::string& reason) {
  if (!in_this_process()) return;
  if (end_.empty()) end_ = reason;
  for (Worker& worker : workers_) {
    if (worker.reaped) continue;
    worker.channel.shut_down();
    kill_process(worker.process);
    reap_process(worker.process);
    worker.reaped = true;
  }
}

void add_worker_pool(nb::module_& module) {
  nb::class_<ChannelHandle>(module, "WorkerChannel")
      // (key, numbers, arrays) of the next request; None when the parent is gone.
      .def("receive",
           [](ChannelHandle& self) -> nb::object {
             std::optional<data::Message> request;
             {
               const HostReleased released;
               request = data::receive_message(self.channel);
             }
             if (!request) return nb::none();
             return nb::make_tuple(request->key, numbers_to_python(request->numbers),
                                   arrays_to_python(std::move(request->arrays)));
           })
      // Ends this process once the parent is gone, whatever it does then.
      .def("end_with_parent",
           [](ChannelHandle& self) {
             std::thread([&channel = self.channel] {
               channel.await_end();
               std::_Exit(1);
             }).detach();
           })
      .def(
          "answer",
          [](ChannelHandle& self, nb::handle numbers, nb::handle arrays) {
            const data::Message answer{.numbers = numbers_from_python(numbers.ptr()),
                                       .arrays = arrays_from(arrays.ptr())};
            return data::send_message(self.channel, answer);
          },
          "numbers"_a, "arrays"_a)
      .def(
          "fail",
          [](ChannelHandle& self, nb::bytes failure) {
            return data::send_message(self.channel, {.failure = {failure.c_str(), failure.size()}});
          },
          "failure"_a);
}

}  // namespace lamella::python
