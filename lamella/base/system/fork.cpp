// The handlers of fork, over pthread_atfork.
#include "lamella/base/system/fork.h"

#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <new>
#include <system_error>
#include <vector>

#include <pthread.h>
#include <unistd.h>

#include "lamella/base/error.h"
#include "lamella/base/host.h"

namespace lamella {

namespace {

using Function = void (*)();

// Who works, and whether somebody forks. While a thread forks, no other begins to work.
struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  int working = 0;
  bool forking = false;
};

thread_local int depth = 0;  // of UnforkableWork in this thread

struct Handlers {
  std::vector<Function> before, in_child;
  Gate gate;
};

// Never destroyed: threads may outlive static objects.
Handlers& handlers() {
  static Handlers* const all = new Handlers;
  return *all;
}

bool may_fork(const Gate& gate) {
  return !gate.forking && gate.working == (depth > 0 ? 1 : 0);
}

void prepare() {
  for (Function function : handlers().before) function();
  Gate& gate = handlers().gate;
  std::unique_lock lock(gate.mutex);
  while (!may_fork(gate)) {
    lock.unlock();
    {
      // What is waited for may itself wait for the host's lock, which is taken again when the
      // gate's is free: nobody who holds the gate's waits for anything.
      const HostReleased released;
      std::unique_lock waiting(gate.mutex);
      gate.changed.wait(waiting, [&] { return may_fork(gate); });
    }
    lock.lock();
  }
  gate.forking = true;
}

void in_parent() {
  Gate& gate = handlers().gate;
  {
    std::lock_guard lock(gate.mutex);
    gate.forking = false;
  }
  gate.changed.notify_all();
}

void in_child() {
  // Other threads may have been waiting at the gate: it is made anew.
  Gate* gate = new (&handlers().gate) Gate;
  gate->working = depth > 0 ? 1 : 0;
  for (Function function : handlers().in_child) function();
}

void install() {
  [[maybe_unused]] static const int installed = pthread_atfork(prepare, in_parent, in_child);
}

}  // namespace

void before_fork(void (*function)()) {
  install();
  handlers().before.push_back(function);
}

void in_child_of_fork(void (*function)()) {
  install();
  handlers().in_child.push_back(function);
}

UnforkableWork::UnforkableWork() {
  if (depth++ > 0) return;
  Gate& gate = handlers().gate;
  std::unique_lock lock(gate.mutex);
  gate.changed.wait(lock, [&] { return !gate.forking; });
  ++gate.working;
}

UnforkableWork::~UnforkableWork() {
  if (--depth > 0) return;
  Gate& gate = handlers().gate;
  {
    std::lock_guard lock(gate.mutex);
    --gate.working;
  }
  gate.changed.notify_all();
}

int64_t fork_process() {
  const pid_t child = ::fork();
  if (child < 0) {
    fail(ErrorKind::Io, "[fork] the system made no process: {}",
         std::generic_category().message(errno));
  }
  return child;
}

}  // namespace lamella
