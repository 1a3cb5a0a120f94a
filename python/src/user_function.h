// A user's Python function as a part of a pipeline: called here, or in worker processes.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <nanobind/nanobind.h>

#include "lamella/data/message.h"
#include "lamella/data/process_group.h"

namespace lamella::python {

class WorkerPool;

// What the package gives: called as (numbers, arrays), it returns (numbers, arrays); what the
// numbers mean depends on the operation. Copies share all.
class UserFunction {
 public:
  // `shared_bytes`: the function runs in worker processes, with so much memory shared with each.
  UserFunction(nanobind::object handler, std::string name, std::optional<int64_t> shared_bytes);

  // Throws what the function raises. Called by any thread, without Python's lock.
  data::Message call(data::Message request) const;
  // Forks processes that run it as long as the result lives; null if it runs in this process.
  std::shared_ptr<data::ProcessGroup> start_processes(int workers) const;
  const std::string& name() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

void add_user_functions(nanobind::module_& module);

}  // namespace lamella::python
