// What a profiler has recorded: what each thread did when, and what was allocated.
#pragma once

#include <string>
#include <vector>

#include "lamella/base/activity.h"
#include "lamella/device/allocation.h"
#include "lamella/ir/value.h"

namespace lamella::profile {

// One operation of the program within a launch.
struct OperationShare {
  const Operator* op = nullptr;
  Provenance provenance;
  SourceLocation line;
  double flops = 0;  // as declared
  double share = 0;  // of the launch's time and bytes
};

// Launches that compute the same operations of the program are of one kind.
struct LaunchKind {
  std::vector<OperationShare> operations;
  int64_t bytes = 0;
};

// Times are nanoseconds of the steady clock.
struct Span {
  int64_t begin = 0, end = 0;
  int32_t launch = -1;  // a kind of the thread; -1: an activity
  Activity activity = Activity::Flush;
  int64_t amount = 0;

  int64_t duration() const { return end - begin; }
};

struct ThreadRecord {
  int id = 0;               // from 0, in the order threads were first seen
  std::vector<Span> spans;  // sorted: outer ones before what they hold
  std::vector<LaunchKind> launches;
};

struct MemoryEvent {
  int64_t time = 0;
  const Allocation* allocation = nullptr;
  int64_t bytes = 0;  // negative where memory was given back
  int32_t holder = 0;
  int64_t reserved = 0;  // by the pool
};

struct ArenaRecord {
  const Allocation* allocation = nullptr;
  int64_t time = 0;
  std::vector<std::pair<Holder, int64_t>> contents;  // bytes, when most of it is in use
};

// Allocations of the pool of host memory; empty if they were not asked for.
struct MemoryRecord {
  std::vector<Holder> holders;
  std::vector<MemoryEvent> before;  // what existed when the recording began
  std::vector<MemoryEvent> events;  // sorted
  std::vector<ArenaRecord> arenas;  // those larger than any before
};

struct Recording {
  int64_t began = 0, ended = 0;
  std::vector<ThreadRecord> threads;
  MemoryRecord memory;
};

// What is shown for a launch: its costliest operations.
std::string name_of(const LaunchKind& kind);
// The costliest operation of a launch.
const OperationShare& main_operation(const LaunchKind& kind);

}  // namespace lamella::profile
