// Whose memory a run's results are, and what to say when there is not enough of it.
#include "lamella/base/activity.h"
#include "lamella/device/pool.h"
#include "lamella/runtime/executable.h"

namespace lamella {

namespace {

// Names of operators are literals: the text ends where the name does.
const char* name_of(const Node& node) {
  return node.op().name().data();
}

}  // namespace

Holder Executable::holder_of(size_t slot, const RunContext& context) const {
  const Value& value = *slots_[slot].value;
  const Node& operation = context.recorded.operation_of(*value.producer());
  Holder holder{name_of(operation), operation.location(), value.type()};
  const auto output = static_cast<size_t>(output_of_slot_[slot]);
  if (output < context.recorded.outputs.size()) {
    const Value& recorded = *context.recorded.outputs[output];
    holder.type = recorded.type();
    if (recorded.label() != nullptr) holder.name = recorded.label();
  } else {
    for (Dim& size : holder.type.shape) size = size.evaluate(context.bindings);
  }
  return holder;
}

void Executable::change_holder(Allocation& allocation, size_t output,
                               const RunContext& context) const {
  const auto slot = static_cast<size_t>(output_slots_[output]);
  // A parameter stays itself, and an input that is handed on as it is.
  if (slots_[slot].input >= 0 || output >= context.recorded.outputs.size()) return;
  if (context.recorded.outputs[output]->label() != nullptr) return;
  allocation.set_holder(holder_of(slot, context));
}

std::vector<ArenaShare> Executable::arena_contents(const Instance& sized,
                                                   const RunContext& context) const {
  struct Life {
    int first, last;
  };
  std::unordered_map<size_t, Life> lives;  // of memory in the arena
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    if (sized.arena_offset[slot] < 0) continue;
    const Slot& user = slots_[slot];
    const auto [life, fresh] =
        lives.try_emplace(sized.memory_of(slot), Life{user.first_step, user.last_step});
    life->second.first = std::min(life->second.first, user.first_step);
    life->second.last = std::max(life->second.last, user.last_step);
  }
  const int peak = sized.arena.peak_step;
  std::vector<ArenaShare> contents;
  for (const auto& [slot, life] : lives) {
    if (life.first > peak || life.last < peak) continue;
    contents.push_back({holder_of(slot, context), sized.slot_bytes[slot]});
  }
  const Instance::StepArguments& step = sized.steps[static_cast<size_t>(peak)];
  if (step.scratch_bytes > 0) {
    const Node& operation =
        context.recorded.operation_of(*steps_[static_cast<size_t>(peak)].nodes.back());
    const bool loops = steps_[static_cast<size_t>(peak)].control != nullptr;
    contents.push_back(
        {Holder(loops ? "temporaries of a loop or branch" : "working memory of a kernel"),
         step.scratch_bytes});
    contents.back().holder.location = operation.location();
  }
  std::sort(contents.begin(), contents.end(), [](const ArenaShare& a, const ArenaShare& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : text(a.holder) < text(b.holder);
  });
  return contents;
}

Ref<Allocation> Executable::make_arena(const Instance& sized, const RunContext& context) const {
  Ref<Allocation> arena;
  try {
    arena = cpu_pool().allocate(sized.arena.bytes, "temporaries of a window");
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Memory) throw;
    constexpr size_t kNamed = 4;
    std::string largest;
    const std::vector<ArenaShare> contents = arena_contents(sized, context);
    for (size_t i = 0; i < std::min(kNamed, contents.size()); ++i) {
      largest +=
          fmt::format("{}{} {} bytes", i == 0 ? "; the largest of these temporaries: " : ", ",
                      text(contents[i].holder), contents[i].bytes);
    }
    throw Error(error.kind(), error.message() + largest,
                contents.empty() ? SourceLocation() : contents.front().holder.location);
  }
  if (LaunchListener* listener = launch_listener()) [[unlikely]] {
    listener->arena(*arena, [&] { return arena_contents(sized, context); });
  }
  return arena;
}

}  // namespace lamella
