// Processes that run one user's function, each forked from this process with all it holds.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>

#include "lamella/data/message.h"
#include "lamella/data/process_group.h"

namespace lamella::python {

class WorkerPool {
 public:
  // Forks `workers` processes; the caller holds Python's lock. In each of them `serve` is called
  // with the process's end of a channel and does not return. `name` is the function's, for errors.
  static std::shared_ptr<WorkerPool> start(std::string name, int workers, int64_t shared_bytes,
                                           nanobind::object serve);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;

  // What an iterator holds; null if the workers answer no more. With the last one they end.
  static std::shared_ptr<data::ProcessGroup> try_lease(const std::shared_ptr<WorkerPool>& pool);
  // Held by whoever looks for workers and starts them if there are none, so that iterators which
  // begin at once share theirs.
  static std::unique_lock<std::mutex> starting();

  // The answer of a free worker, waiting for one. Throws a Python RuntimeError if a worker was
  // lost: it has died, or its answer could not be taken. Called by several threads at once, without
  // Python's lock.
  data::Message ask(const data::Message& request);

  // False in a child of fork, whose parent the workers belong to.
  bool in_this_process() const;

 private:
  class Lease;
  struct Worker {
    int64_t process = 0;
    Channel channel;
    bool reaped = false;
  };

  explicit WorkerPool(std::string name);
  size_t take();
  void give_back(size_t worker);
  // Lets no one ask any more and says why: how the worker ended, or what went `wrong` with its
  // answer. Whoever came first has said it already.
  std::string lose(size_t worker, const std::string& wrong = {});
  void end_lease();
  // Ends the workers. The caller holds the mutex, unless nobody else has the pool.
  void end(const std::string& reason);
  // For the children of fork: they must not hold the ends of others' channels.
  void close_channels();
  static void close_all_channels();

  std::string name_;
  int64_t parent_;
  std::mutex mutex_;  // guards what follows; a worker is its asker's between take and give_back
  std::condition_variable freed_;
  std::vector<Worker> workers_;
  std::vector<size_t> free_;
  int leases_ = 0;
  std::string end_;  // why no worker answers any more
};

// One end of a channel, as a worker's Python code sees it.
struct ChannelHandle {
  Channel channel;
};

void add_worker_pool(nanobind::module_& module);

}  // namespace lamella::python
