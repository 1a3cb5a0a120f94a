// A compiled graph: steps, and for each set of sizes it has met a memory plan and ready arguments.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "lamella/base/function_ref.h"
#include "lamella/ir/graph.h"
#include "lamella/runtime/instance.h"
#include "lamella/runtime/kernel_step.h"

namespace lamella {

// What a run is given for one input of the graph: memory, or the bits of a number.
struct InputArgument {
  Buffer buffer;
  char* memory = nullptr;  // instead of a buffer: memory that outlives the run
  uint64_t bits = 0;
  // Whether the run may write its results into this memory: nobody will read it again.
  bool donated = false;

  char* data() const { return memory != nullptr ? memory : static_cast<char*>(buffer.data()); }
};

// Whether a run may be ended by Ctrl-C: only as long as nothing of outside has been written.
enum class Interruption : uint8_t { Allowed, Held };

struct ExecutableReport {
  int64_t nodes = 0;         // after lowering
  int64_t shared_nodes = 0;  // found equal to others
  int64_t kernels = 0;       // fused programs
  int64_t library_calls = 0;
  int64_t launches = 0;     // parallel loops a run makes, library calls included
  int64_t arena_bytes = 0;  // planned
  int64_t arena_lower_bound = 0;
  double compile_seconds = 0;
};

class LAMELLA_API Executable {
 public:
  // Lowers, fuses and compiles. The graph's sizes may be expressions.
  explicit Executable(Graph graph);
  ~Executable();

  // Runs with symbol i bound to bindings[i]. `arguments` has one entry for each graph input;
  // buffers that were donated and reused are moved out of it. Returns a buffer for each output.
  // Throws without effect on any argument if a step fails.
  std::vector<Buffer> run(std::span<const int64_t> bindings, std::span<InputArgument> arguments);
  // The same with memory for each output, which must not be an argument's.
  void run_into(std::span<const int64_t> bindings, std::span<InputArgument> arguments,
                std::span<char* const> outputs, Interruption interruption);

  // Whether a run can fail because of data.
  bool may_fail() const { return last_fallible_step_ >= 0; }

  const ExecutableReport& report() const { return report_; }
  const std::vector<Step>& steps() const { return steps_; }

 private:
  void make_slots(const Fusion& fusion);
  Instance& instance(std::span<const int64_t> bindings, std::span<const InputArgument> arguments);
  std::unique_ptr<Instance> new_instance(std::span<const int64_t> bindings,
                                         std::span<const InputArgument> arguments) const;
  // Calls `run` with the instance for these sizes. Other threads wait; a run inside a run of the
  // same thread, by code of the host that was called while it was asked whether to go on, gets an
  // instance of its own.
  void with_instance(std::span<const int64_t> bindings, std::span<const InputArgument> arguments,
                     FunctionRef<void(Instance&)> run);
  // One run with the memory of outputs as given, or made where none is; returns what was made.
  std::vector<Buffer> execute(Instance& sized, std::span<const int64_t> bindings,
                              std::span<InputArgument> arguments, std::span<char* const> outputs,
                              Interruption interruption);
  std::vector<Buffer> place_slots(Instance& sized, std::span<InputArgument> arguments,
                                  std::span<char* const> outputs, char* arena);
  void fill_arguments(Instance& sized, std::span<const InputArgument> arguments) const;
  struct RunContext {
    std::span<const int64_t> bindings;
    char* arena;
    Interruption interruption;
  };
  void launch(Instance& sized, const Instance::Batch& batch, const RunContext& context) const;

  Graph graph_;
  std::vector<Step> steps_;
  std::vector<Slot> slots_;
  std::unordered_map<const Value*, int> slot_of_;
  std::unordered_map<const Value*, int> input_of_;
  std::vector<int> output_slots_;
  int last_fallible_step_ = -1;
  std::mutex mutex_;
  std::atomic<std::thread::id> runner_{};  // the thread that holds the mutex
  std::unordered_map<Hash128, std::unique_ptr<Instance>> instances_;
  ExecutableReport report_;
};

}  // namespace lamella
