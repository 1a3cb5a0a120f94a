// Compiling a graph, planning its memory for given sizes, and running it.
#include "lamella/runtime/executable.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "lamella/base/host.h"
#include "lamella/base/parallel.h"
#include "lamella/device/pool.h"
#include "lamella/ir/text.h"
#include "lamella/runtime/counters.h"
#include "lamella/runtime/dump.h"
#include "lamella/transform/lowering.h"

namespace lamella {

// Memory that steps share: an input, an output, or a temporary.
struct Executable::Slot {
  Value* value = nullptr;
  int input = -1;  // number of the graph input
  bool output = false;
  int first_step = 0;
  int last_step = -1;
};

// Everything that depends on the sizes.
struct Executable::Instance {
  struct Pointer {
    int slot = -1;       // -1: a number
    int number = -1;     // index into number_bits
    int64_t offset = 0;  // bytes
    struct Term {
      int number;
      int64_t factor;  // bytes
    };
    std::vector<Term> terms;
  };
  struct StepInstance {
    std::vector<Pointer> pointers;  // one a buffer of the step
    tile::Launch launch;
    std::vector<int> scalars;  // index into number_bits
    std::vector<TensorView> views;
    int64_t scratch_bytes = 0;
    int scratch_slot = -1;
  };
  // Steps run one after the other; several launches of one kernel may be one step.
  struct Batch {
    size_t first = 0, count = 1;
  };
  std::vector<StepInstance> steps;
  std::vector<Batch> batches;
  std::vector<int64_t> slot_bytes;
  std::vector<int64_t> arena_offset;  // by slot, -1 if it is not in the arena
  std::vector<int> shares;            // by slot: the slot whose memory it takes over, or -1
  std::vector<int64_t> scratch_offset;
  ArenaPlan arena;
  std::vector<uint64_t> number_bits;  // sizes are filled in; numbers of inputs at each run
  std::vector<std::pair<int, int>> number_inputs;  // (number, graph input)
  std::vector<char*> slot_data;
  std::vector<tile::Launch> batch_launches;
};

namespace {

constexpr size_t kMostInstances = 64;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Executable::Executable(Graph graph) : graph_(std::move(graph)) {
  const auto start = std::chrono::steady_clock::now();
  const GraphDump dump;
  if (dump.wanted()) dump.write("1-lowered", print(graph_));
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
      if (opdef(*node).lowering().kernel.may_fail) last_fallible_step_ = static_cast<int>(i);
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
  const auto kernels = tile::compile_all(programs, tile::native_instruction_set());
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
  for (const Ref<Value>& output : graph_.outputs) {
    const int slot = slot_of_.at(memory_owner(resolve_views(output.get()).base));
    slots_[static_cast<size_t>(slot)].output = true;
    output_slots_.push_back(slot);
  }
}

std::unique_ptr<Executable::Instance> Executable::make_instance(
    std::span<const int64_t> bindings, std::span<const InputArgument> arguments) {
  auto made = std::make_unique<Instance>();
  std::unordered_map<const Value*, int> numbers;
  const auto number_of = [&](Value* value) {
    const auto [entry, fresh] =
        numbers.try_emplace(value, static_cast<int>(made->number_bits.size()));
    if (!fresh) return entry->second;
    uint64_t bits = value->scalar_bits();
    if (value->state() == Value::State::Size) {
      bits = scalar_bits_from(value->type().dtype, value->size_expression().evaluate(bindings));
    } else if (value->state() == Value::State::NumberInput) {
      made->number_inputs.emplace_back(entry->second, input_of_.at(value));
    }
    made->number_bits.push_back(bits);
    return entry->second;
  };
  for (const Slot& slot : slots_) {
    made->slot_bytes.push_back(element_count(slot.value->type().shape).evaluate(bindings) *
                               size_of(slot.value->type().dtype));
  }
  for (const Step& step : steps_) {
    Instance::StepInstance& instance = made->steps.emplace_back();
    for (Dim extent : step.extents) instance.launch.extents.push_back(extent.evaluate(bindings));
    for (Value* scalar : step.scalars) instance.scalars.push_back(number_of(scalar));
    instance.launch.scalars.resize(step.scalars.size());
    for (const StepBuffer& buffer : step.buffers) {
      Instance::Pointer pointer;
      const int64_t element = size_of(buffer.dtype);
      if (buffer.base->is_number()) {
        pointer.number = number_of(buffer.base);
      } else {
        pointer.slot = slot_of_.at(buffer.base);
        pointer.offset = buffer.offset.constant.evaluate(bindings) * element;
        for (const auto& term : buffer.offset.terms) {
          pointer.terms.push_back(
              {number_of(term.number), term.factor.evaluate(bindings) * element});
        }
      }
      instance.pointers.push_back(std::move(pointer));
      if (step.kernel != nullptr) {
        TensorView& view = instance.views.emplace_back();
        view.dtype = buffer.dtype;
        for (Dim size : buffer.sizes) view.sizes.push_back(size.evaluate(bindings));
        for (Dim stride : buffer.strides) view.strides.push_back(stride.evaluate(bindings));
      } else {
        tile::Launch::Buffer& argument = instance.launch.buffers.emplace_back();
        for (Dim stride : buffer.strides) argument.strides.push_back(stride.evaluate(bindings));
      }
    }
    if (step.kernel != nullptr) {
      const KernelRule& rule = opdef(*step.kernel).lowering().kernel;
      if (rule.scratch_bytes != nullptr) {
        const std::span<const TensorView> views = instance.views;
        instance.scratch_bytes = rule.scratch_bytes(
            {*step.kernel, views.first(step.operand_count), views.subspan(step.operand_count), {}});
      }
    } else {
      instance.scratch_bytes = step.code->scratch_bytes(instance.launch.extents);
    }
  }

  // Memory taken over in place: an elementwise step may write where it reads for the last time.
  const size_t slot_count = slots_.size();
  made->shares.assign(slot_count, -1);
  std::vector<bool> taken(slot_count, false);
  std::vector<int> last_step;
  for (const Slot& slot : slots_) last_step.push_back(slot.last_step);
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    if (step.kernel != nullptr || step.program.reduction != tile::Reduction::None) continue;
    for (size_t w = 0; w < step.buffers.size(); ++w) {
      if (step.buffers[w].access != tile::Access::Write) continue;
      const auto written = static_cast<size_t>(made->steps[i].pointers[w].slot);
      for (size_t r = 0; r < step.buffers.size() && made->shares[written] < 0; ++r) {
        const StepBuffer& read = step.buffers[r];
        if (read.access != tile::Access::Read || read.base->is_number()) continue;
        const auto slot = static_cast<size_t>(made->steps[i].pointers[r].slot);
        const Slot& source = slots_[slot];
        const bool dies = source.last_step == static_cast<int>(i) && !source.output && !taken[slot];
        const bool owned =
            source.input < 0 || (arguments[static_cast<size_t>(source.input)].donated &&
                                 static_cast<int>(i) > last_fallible_step_);
        const bool same =
            read.strides == step.buffers[w].strides && read.offset == step.buffers[w].offset &&
            size_of(read.dtype) == size_of(step.buffers[w].dtype) &&
            made->slot_bytes[slot] == made->slot_bytes[written] && made->slot_bytes[slot] > 0;
        // An output may only take over memory that leaves with it: a donated input's.
        const bool kind = slots_[written].output ? source.input >= 0 : source.input < 0;
        // Every read of the source in this step must be at the same places.
        const bool only =
            std::all_of(step.buffers.begin(), step.buffers.end(), [&](const StepBuffer& other) {
              return other.base != read.base || other.access == tile::Access::Write ||
                     (other.strides == read.strides && other.offset == read.offset);
            });
        if (!dies || !owned || !same || !kind || !only) continue;
        made->shares[written] = static_cast<int>(slot);
        taken[slot] = true;
      }
    }
  }

  // Temporaries and scratch in one arena. A slot taken over lives as long as its last user.
  const auto root = [&](size_t slot) {
    while (made->shares[slot] >= 0) slot = static_cast<size_t>(made->shares[slot]);
    return slot;
  };
  std::vector<PlannedSlot> planned;
  std::unordered_map<size_t, size_t> planned_index;
  std::vector<size_t> planned_of(slot_count, SIZE_MAX);
  for (size_t slot = 0; slot < slot_count; ++slot) {
    if (slots_[slot].input >= 0 || slots_[slot].output) continue;
    const size_t owner = root(slot);
    if (slots_[owner].input >= 0 || slots_[owner].output) continue;
    const auto [entry, fresh] = planned_index.try_emplace(owner, planned.size());
    if (fresh)
      planned.push_back(
          {made->slot_bytes[owner], slots_[owner].first_step, slots_[owner].last_step});
    PlannedSlot& plan = planned[entry->second];
    plan.first_step = std::min(plan.first_step, slots_[slot].first_step);
    plan.last_step = std::max({plan.last_step, slots_[slot].last_step, slots_[slot].first_step});
    planned_of[slot] = entry->second;
  }
  std::vector<std::pair<size_t, size_t>> scratch;
  for (size_t i = 0; i < made->steps.size(); ++i) {
    if (made->steps[i].scratch_bytes == 0) continue;
    scratch.emplace_back(i, planned.size());
    planned.push_back({made->steps[i].scratch_bytes, static_cast<int>(i), static_cast<int>(i)});
  }
  made->arena = plan_arena(planned);
  made->arena_offset.assign(slot_count, -1);
  for (size_t slot = 0; slot < slot_count; ++slot) {
    if (planned_of[slot] != SIZE_MAX)
      made->arena_offset[slot] = made->arena.offsets[planned_of[slot]];
  }
  made->scratch_offset.assign(made->steps.size(), -1);
  for (const auto& [step, index] : scratch) made->scratch_offset[step] = made->arena.offsets[index];
  made->slot_data.assign(slot_count, nullptr);

  // Launches of one kernel that do not read each other's results are one parallel loop.
  for (size_t i = 0; i < steps_.size(); ++i) {
    const bool joins = [&] {
      if (made->batches.empty() || steps_[i].kernel != nullptr || made->steps[i].scratch_bytes > 0)
        return false;
      const Instance::Batch& batch = made->batches.back();
      if (steps_[batch.first].code.get() != steps_[i].code.get() ||
          made->steps[batch.first].scratch_bytes > 0) {
        return false;
      }
      for (size_t j = batch.first; j < i; ++j) {
        for (size_t w = 0; w < steps_[j].buffers.size(); ++w) {
          if (steps_[j].buffers[w].access != tile::Access::Write) continue;
          const size_t written = root(static_cast<size_t>(made->steps[j].pointers[w].slot));
          for (const Instance::Pointer& pointer : made->steps[i].pointers) {
            if (pointer.slot >= 0 && root(static_cast<size_t>(pointer.slot)) == written)
              return false;
          }
        }
      }
      return true;
    }();
    if (joins) {
      ++made->batches.back().count;
    } else {
      made->batches.push_back({i, 1});
    }
  }
  report_.launches = static_cast<int64_t>(made->batches.size());
  report_.arena_bytes = made->arena.bytes;
  report_.arena_lower_bound = made->arena.lower_bound;
  return made;
}

Executable::Instance& Executable::instance(std::span<const int64_t> bindings,
                                           std::span<const InputArgument> arguments) {
  Hasher hasher;
  for (int64_t size : bindings) hasher.add(static_cast<uint64_t>(size));
  uint64_t donated = 0;
  int bit = 0;
  for (const InputArgument& argument : arguments) {
    donated |= static_cast<uint64_t>(argument.donated) << bit;
    if (++bit == 64) {
      hasher.add(donated);
      donated = 0;
      bit = 0;
    }
  }
  hasher.add(donated);
  hasher.add(static_cast<uint64_t>(thread_count()));  // scratch memory is planned for as many
  const Hash128 key = hasher.digest();
  if (const auto found = instances_.find(key); found != instances_.end()) return *found->second;
  if (instances_.size() >= kMostInstances) instances_.clear();
  return *(instances_[key] = make_instance(bindings, arguments));
}

std::vector<Buffer> Executable::run(std::span<const int64_t> bindings,
                                    std::span<InputArgument> arguments) {
  std::lock_guard lock(mutex_);
  Instance& sized = instance(bindings, arguments);
  Ref<Allocation> arena;
  if (sized.arena.bytes > 0) arena = cpu_pool().allocate(sized.arena.bytes, "arena");
  counters().arena_bytes = sized.arena.bytes;
  // Where tensors without elements lie if there is no arena.
  alignas(64) static char nothing[64];
  char* const arena_data = arena ? static_cast<char*>(arena->data()) : nothing;
  std::vector<Buffer> owned(slots_.size());
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    const Slot& described = slots_[slot];
    if (described.input >= 0) {
      sized.slot_data[slot] =
          static_cast<char*>(arguments[static_cast<size_t>(described.input)].buffer.data());
    } else if (sized.shares[slot] >= 0) {
      sized.slot_data[slot] = sized.slot_data[static_cast<size_t>(sized.shares[slot])];
    } else if (sized.arena_offset[slot] >= 0) {
      sized.slot_data[slot] = arena_data + sized.arena_offset[slot];
    } else {
      owned[slot] = cpu_pool().allocate(sized.slot_bytes[slot], "tensor");
      sized.slot_data[slot] = static_cast<char*>(owned[slot].data());
    }
  }
  for (const auto& [number, input] : sized.number_inputs) {
    sized.number_bits[static_cast<size_t>(number)] = arguments[static_cast<size_t>(input)].bits;
  }
  for (size_t i = 0; i < steps_.size(); ++i) {
    Instance::StepInstance& step = sized.steps[i];
    for (size_t b = 0; b < step.pointers.size(); ++b) {
      const Instance::Pointer& pointer = step.pointers[b];
      void* data;
      if (pointer.slot < 0) {
        data = &sized.number_bits[static_cast<size_t>(pointer.number)];
      } else {
        int64_t offset = pointer.offset;
        for (const auto& term : pointer.terms) {
          offset += static_cast<int64_t>(sized.number_bits[static_cast<size_t>(term.number)]) *
                    term.factor;
        }
        data = sized.slot_data[static_cast<size_t>(pointer.slot)] + offset;
      }
      if (steps_[i].kernel != nullptr) {
        step.views[b].data = data;
      } else {
        step.launch.buffers[b].data = data;
      }
    }
    for (size_t s = 0; s < step.scalars.size(); ++s) {
      step.launch.scalars[s] = sized.number_bits[static_cast<size_t>(step.scalars[s])];
    }
  }
  for (const Instance::Batch& batch : sized.batches) {
    poll_host();
    const Step& step = steps_[batch.first];
    Instance::StepInstance& instance = sized.steps[batch.first];
    char* scratch =
        instance.scratch_bytes > 0 ? arena_data + sized.scratch_offset[batch.first] : nullptr;
    if (step.kernel != nullptr) {
      const std::span<const TensorView> views = instance.views;
      try {
        opdef(*step.kernel)
            .lowering()
            .kernel.run({*step.kernel,
                         views.first(step.operand_count),
                         views.subspan(step.operand_count),
                         {scratch, instance.scratch_bytes}});
      } catch (const Error& error) {
        throw error.at(step.origin->location());
      }
    } else if (batch.count == 1) {
      step.code->run(instance.launch, scratch);
    } else {
      sized.batch_launches.clear();
      for (size_t i = 0; i < batch.count; ++i) {
        std::swap(sized.batch_launches.emplace_back(), sized.steps[batch.first + i].launch);
      }
      step.code->run_all(sized.batch_launches);
      for (size_t i = 0; i < batch.count; ++i) {
        std::swap(sized.batch_launches[i], sized.steps[batch.first + i].launch);
      }
    }
    ++counters().launches;
  }
  std::vector<Buffer> outputs;
  for (int output : output_slots_) {
    size_t slot = static_cast<size_t>(output);
    while (sized.shares[slot] >= 0) slot = static_cast<size_t>(sized.shares[slot]);
    outputs.push_back(slots_[slot].input >= 0
                          ? arguments[static_cast<size_t>(slots_[slot].input)].buffer
                          : owned[slot]);
  }
  return outputs;
}

}  // namespace lamella
