// Compiling a graph, planning its memory for given sizes, and running it.
#include "lamella/runtime/executable.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "lamella/base/activity.h"
#include "lamella/base/host.h"
#include "lamella/base/parallel.h"
#include "lamella/base/remark.h"
#include "lamella/device/pool.h"
#include "lamella/ir/text.h"
#include "lamella/runtime/control_step.h"
#include "lamella/runtime/counters.h"
#include "lamella/runtime/dump.h"
#include "lamella/runtime/launch_work.h"
#include "lamella/transform/lowering.h"
#include "lamella/transform/prune.h"

namespace lamella {

namespace {

constexpr size_t kMostInstances = 64;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

[[noreturn]] void fail_start(const Node& view, const SourceLocation& line, int64_t start,
                             int64_t low, int64_t high) {
  throw Error(ErrorKind::Index,
              fmt::format("[{}] start {} is out of range for {}: {} to {} are accepted",
                          view.op().name(), start, text(view.operand(0)->type()), low, high),
              line);
}

}  // namespace

Executable::Executable(Graph graph) : graph_(std::move(graph)) {
  const auto start = std::chrono::steady_clock::now();
  const GraphDump dump;
  if (dump.wanted()) dump.write("1-lowered", print(graph_));
  prune_regions(graph_);
  legalize_views(graph_);
  remove_dead_nodes(graph_);
  if (dump.wanted()) dump.write("2-legalized", print(graph_));
  const Fusion fusion = fuse(graph_);
  if (dump.wanted()) dump.write("3-fused", print(fusion));
  std::vector<tile::Program> programs;
  std::vector<size_t> program_steps;
  for (size_t i = 0; i < fusion.steps.size(); ++i) {
    if (Node* node = fusion.steps[i].kernel) {
      steps_.push_back(make_kernel_step(*node));
      const Lowering& lowering = opdef(*node).lowering();
      bool may_fail = lowering.kernel.may_fail;
      if (lowering.kind == LoweringKind::Control) {
        steps_.back().control = std::make_shared<ControlStep>(*node);
        may_fail = steps_.back().control->may_fail();
      }
      if (may_fail) last_fallible_step_ = static_cast<int>(i);
      ++report_.library_calls;
    } else {
      steps_.push_back(make_tile_step(fusion, i));
      programs.push_back(steps_.back().program);
      program_steps.push_back(i);
      ++report_.kernels;
    }
  }
  if (dump.wanted()) {
    std::string programs_text;
    for (const tile::Program& program : programs) programs_text += tile::print(program) + "\n";
    dump.write("4-tiles", programs_text);
  }
  const auto kernels = [&] {
    const ActivityScope busy(Activity::KernelCompile, static_cast<int64_t>(programs.size()));
    return tile::compile_all(programs, tile::native_instruction_set());
  }();
  for (size_t i = 0; i < kernels.size(); ++i) steps_[program_steps[i]].code = kernels[i];
  make_slots(fusion);
  report_.nodes = static_cast<int64_t>(graph_.nodes.size());
  report_.compile_seconds = seconds_since(start);
}

Executable::~Executable() = default;

void Executable::make_slots(const Fusion& fusion) {
  for (size_t i = 0; i < graph_.inputs.size(); ++i) {
    Value* input = graph_.inputs[i].get();
    input_of_[input] = static_cast<int>(i);
    if (input->is_number()) continue;
    slot_of_[input] = static_cast<int>(slots_.size());
    slots_.push_back({.value = input, .input = static_cast<int>(i), .first_step = -1});
  }
  for (Value* value : fusion.stored) {
    slot_of_[value] = static_cast<int>(slots_.size());
    slots_.push_back({.value = value, .first_step = fusion.step_of(value)});
  }
  for (size_t i = 0; i < steps_.size(); ++i) {
    for (const StepBuffer& buffer : steps_[i].buffers) {
      if (buffer.base->is_number()) continue;
      Slot& slot = slots_[static_cast<size_t>(slot_of_.at(buffer.base))];
      slot.last_step = std::max(slot.last_step, static_cast<int>(i));
    }
  }
  output_of_slot_.assign(slots_.size(), -1);
  for (const Ref<Value>& output : graph_.outputs) {
    const int slot = slot_of_.at(memory_owner(resolve_views(output.get()).base));
    slots_[static_cast<size_t>(slot)].output = true;
    output_of_slot_[static_cast<size_t>(slot)] = static_cast<int>(output_slots_.size());
    output_slots_.push_back(slot);
  }
}

namespace {

std::vector<bool> donations(std::span<const InputArgument> arguments) {
  std::vector<bool> donated;
  for (const InputArgument& argument : arguments) donated.push_back(argument.donated);
  return donated;
}

}  // namespace

std::unique_ptr<Instance> Executable::new_instance(std::span<const int64_t> bindings,
                                                   const std::vector<bool>& donated) const {
  return make_instance({steps_, slots_, slot_of_, input_of_, last_fallible_step_}, bindings,
                       donated);
}

void Executable::with_instance(std::span<const int64_t> bindings, const std::vector<bool>& donated,
                               FunctionRef<void(Instance&)> run) {
  const std::thread::id self = std::this_thread::get_id();
  if (runner_.load(std::memory_order_relaxed) == self) {
    const std::unique_ptr<Instance> own = new_instance(bindings, donated);
    return run(*own);
  }
  std::lock_guard lock(mutex_);
  struct Runner {
    std::atomic<std::thread::id>& runner;
    ~Runner() { runner.store({}, std::memory_order_relaxed); }
  } const holds{runner_};
  runner_.store(self, std::memory_order_relaxed);
  run(instance(bindings, donated));
}

int64_t Executable::arena_bytes(std::span<const int64_t> bindings) {
  int64_t bytes = 0;
  with_instance(bindings, std::vector<bool>(graph_.inputs.size(), false),
                [&](Instance& sized) { bytes = sized.arena.bytes; });
  return bytes;
}

Instance& Executable::instance(std::span<const int64_t> bindings,
                               const std::vector<bool>& donated) {
  Hasher hasher;
  for (int64_t size : bindings) hasher.add(static_cast<uint64_t>(size));
  hasher.add(std::hash<std::vector<bool>>()(donated));
  hasher.add(static_cast<uint64_t>(thread_count()));  // scratch memory is planned for as many
  const Hash128 key = hasher.digest();
  if (const auto found = instances_.find(key); found != instances_.end()) return *found->second;
  const ActivityScope busy(Activity::MemoryPlan);
  if (instances_.size() >= kMostInstances) instances_.clear();
  Instance& made = *(instances_[key] = new_instance(bindings, donated));
  report_.launches = static_cast<int64_t>(made.batches.size());
  report_.arena_bytes = made.arena.bytes;
  report_.arena_lower_bound = made.arena.lower_bound;
  return made;
}

std::vector<Buffer> Executable::run(std::span<const int64_t> bindings,
                                    std::span<InputArgument> arguments,
                                    const RecordedRun& recorded) {
  std::vector<Buffer> outputs;
  with_instance(bindings, donations(arguments), [&](Instance& sized) {
    const RunContext context{bindings, arguments, {}, recorded, Interruption::Allowed};
    const std::vector<Buffer> made = execute(sized, context);
    counters().arena_bytes = sized.arena.bytes;
    counters().arena_lower_bound = sized.arena.lower_bound;
    for (int output : output_slots_) {
      const size_t memory = sized.memory_of(static_cast<size_t>(output));
      const int input = slots_[memory].input;
      if (input < 0) {
        outputs.push_back(made[memory]);
        continue;
      }
      const InputArgument& argument = arguments[static_cast<size_t>(input)];
      if (argument.donated) change_holder(*argument.buffer.allocation, outputs.size(), context);
      outputs.push_back(argument.buffer);
    }
  });
  return outputs;
}

void Executable::run_into(std::span<const int64_t> bindings, std::span<InputArgument> arguments,
                          std::span<char* const> outputs, Interruption interruption,
                          const RecordedRun& recorded, kernels::Scratch temporaries) {
  with_instance(bindings, donations(arguments), [&](Instance& sized) {
    execute(sized, {bindings, arguments, outputs, recorded, interruption, temporaries});
    for (size_t i = 0; i < output_slots_.size(); ++i) {
      const auto slot = static_cast<size_t>(output_slots_[i]);
      const auto bytes = static_cast<size_t>(sized.slot_bytes[slot]);
      // An input handed on, or a result that is given twice.
      if (sized.slot_data[slot] != outputs[i] && bytes > 0) {
        std::memcpy(outputs[i], sized.slot_data[slot], bytes);
      }
    }
  });
}

std::vector<Buffer> Executable::execute(Instance& sized, RunContext context) {
  Ref<Allocation> arena;
  // Where tensors without elements lie if there is no arena.
  alignas(64) static char nothing[64];
  if (sized.arena.bytes == 0) {
    context.arena = nothing;
  } else if (context.temporaries.size >= sized.arena.bytes) {
    context.arena = static_cast<char*>(context.temporaries.data);
  } else {
    arena = make_arena(sized, context);
    context.arena = static_cast<char*>(arena->data());
  }
  std::vector<Buffer> made = place_slots(sized, context);
  fill_arguments(sized, context);
  const Interruption asked = context.interruption;
  LaunchListener* const listener = launch_listener();
  for (size_t b = 0; b < sized.batches.size(); ++b) {
    // Once memory of an input is written over, the run can no longer be undone: it goes on.
    const bool allowed = asked == Interruption::Allowed && b <= sized.last_interruptible_batch;
    if (allowed) poll_host();
    context.interruption = allowed ? Interruption::Allowed : Interruption::Held;
    if (listener != nullptr) [[unlikely]] {
      launch_heard(sized, b, context, *listener);
    } else {
      launch(sized, b, context);
    }
  }
  return made;
}

// Gives every slot its memory; returns the buffers made for outputs.
std::vector<Buffer> Executable::place_slots(Instance& sized, const RunContext& context) {
  std::vector<Buffer> made(slots_.size());
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    const int input = slots_[sized.memory_of(slot)].input;
    if (input >= 0) {
      sized.slot_data[slot] = context.arguments[static_cast<size_t>(input)].data();
    } else if (sized.arena_offset[slot] >= 0) {
      sized.slot_data[slot] = context.arena + sized.arena_offset[slot];
    } else if (!context.outputs.empty()) {
      sized.slot_data[slot] = context.outputs[static_cast<size_t>(output_of_slot_[slot])];
    } else {
      made[slot] = cpu_pool().allocate(sized.slot_bytes[slot], holder_of(slot, context));
      sized.slot_data[slot] = static_cast<char*>(made[slot].data());
    }
  }
  return made;
}

// Puts this run's pointers and numbers into the steps' arguments.
void Executable::fill_arguments(Instance& sized, const RunContext& context) const {
  for (const auto& [number, input] : sized.number_inputs) {
    sized.number_bits[static_cast<size_t>(number)] =
        context.arguments[static_cast<size_t>(input)].bits;
  }
  const auto data_at = [&](const Instance::Pointer& pointer) -> void* {
    if (pointer.slot < 0) return &sized.number_bits[static_cast<size_t>(pointer.number)];
    int64_t offset = pointer.offset;
    for (const auto& term : pointer.terms) {
      const auto number = static_cast<int64_t>(sized.number_bits[static_cast<size_t>(term.number)]);
      if (number < term.low || number > term.high) {
        fail_start(*term.view, context.recorded.line_of(*term.view), number, term.low, term.high);
      }
      offset += number * term.factor;
    }
    return sized.slot_data[static_cast<size_t>(pointer.slot)] + offset;
  };
  for (size_t i = 0; i < steps_.size(); ++i) {
    Instance::StepArguments& step = sized.steps[i];
    for (size_t b = 0; b < step.pointers.size(); ++b) {
      void* data = data_at(step.pointers[b]);
      (steps_[i].kernel != nullptr ? step.views[b].data : step.launch.buffers[b].data) = data;
    }
    for (size_t s = 0; s < step.scalars.size(); ++s) {
      step.launch.scalars[s] = sized.number_bits[static_cast<size_t>(step.scalars[s])];
    }
  }
}

void Executable::launch_heard(Instance& sized, size_t batch, const RunContext& context,
                              LaunchListener& listener) const {
  if (sized.work.empty()) sized.work.resize(sized.batches.size());
  LaunchWork& work = sized.work[batch];
  if (work.parts.empty()) work = work_of(steps_, sized, sized.batches[batch], context.bindings);
  listener.begin({work.parts, context.recorded.operations, work.bytes});
  try {
    launch(sized, batch, context);
  } catch (...) {
    listener.end();
    throw;
  }
  listener.end();
}

std::string Executable::description(const Instance& sized, const Instance::Batch& batch) const {
  const auto extents = [&](size_t step) {
    return fmt::format("[{}]", fmt::join(sized.steps[step].launch.extents, ","));
  };
  std::string text;
  if (batch.by_blocks) {
    text = "in turn on each block of rows:\n";
    for (const size_t i : batch.steps)
      text += "over " + extents(i) + "\n" + tile::print(steps_[i].program);
    return text;
  }
  for (const size_t i : batch.steps) text += (text.empty() ? "over " : ", ") + extents(i);
  return text + "\n" + tile::print(steps_[batch.steps.front()].program);
}

void Executable::launch(Instance& sized, size_t number, const RunContext& context) const {
  ++counters().launches;
  const Instance::Batch& batch = sized.batches[number];
  const Step& step = steps_[batch.steps.front()];
  const Instance::StepArguments& first = sized.steps[batch.steps.front()];
  const auto scratch_of = [&](const Instance::StepArguments& arguments) {
    return arguments.scratch_bytes > 0 ? context.arena + arguments.scratch_offset : nullptr;
  };
  if (step.kernel != nullptr) {
    const std::span<const TensorView> views = first.views;
    const KernelCall call{*step.kernel,
                          views.first(step.operand_count),
                          views.subspan(step.operand_count),
                          {scratch_of(first), first.scratch_bytes}};
    try {
      if (step.control != nullptr) {
        step.control->run(call, context.bindings, context.interruption);
      } else {
        opdef(*step.kernel).lowering().kernel.run(call);
      }
    } catch (const Error& error) {
      throw error.location().known() ? error : error.at(context.recorded.line_of(*step.kernel));
    }
    return;
  }
  remark([&] { return description(sized, batch); });
  if (batch.steps.size() == 1) {
    step.code->run(first.launch, scratch_of(first));
  } else if (batch.by_blocks) {
    std::vector<tile::PreparedLaunch> launches;
    for (const size_t i : batch.steps) {
      const Instance::StepArguments& arguments = sized.steps[i];
      launches.push_back({steps_[i].code.get(), &arguments.launch, scratch_of(arguments)});
    }
    tile::Kernel::run_by_blocks(launches);
  } else {
    const auto swap_launches = [&] {
      for (size_t i = 0; i < batch.steps.size(); ++i)
        std::swap(sized.batch_launches[i], sized.steps[batch.steps[i]].launch);
    };
    sized.batch_launches.resize(batch.steps.size());
    swap_launches();
    step.code->run_all(sized.batch_launches);
    swap_launches();
  }
}

}  // namespace lamella
