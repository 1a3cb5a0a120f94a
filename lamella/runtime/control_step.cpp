// Running loops and branches.
#include "lamella/runtime/control_step.h"

#include <cstring>

#include "lamella/device/pool.h"
#include "lamella/ir/region.h"
#include "lamella/transform/lowering.h"

namespace lamella {

namespace {

using kernels::Scratch;
using kernels::scratch_aligned;
using kernels::ScratchParts;

int64_t bytes_of(const TensorView& view) {
  return view.count() * size_of(view.dtype);
}

void copy(char* to, const char* from, int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

// What is carried from turn to turn: read in one half of its memory, written in the other.
class LoopState {
 public:
  LoopState(std::span<const TensorView> initial, ScratchParts& memory) {
    int64_t half = 0;
    for (const TensorView& view : initial) {
      offsets_.push_back(half);
      bytes_.push_back(bytes_of(view));
      half += scratch_aligned(bytes_.back());
    }
    for (char*& place : halves_) place = static_cast<char*>(memory.take(half));
    for (size_t i = 0; i < initial.size(); ++i) copy(now(i), initial[i].as<char>(), bytes_[i]);
  }
  static int64_t memory_bytes(std::span<const TensorView> initial) {
    int64_t half = 0;
    for (const TensorView& view : initial) half += scratch_aligned(bytes_of(view));
    return 2 * half;
  }

  size_t size() const { return offsets_.size(); }
  char* now(size_t i) const { return halves_[turned_] + offsets_[i]; }
  char* next(size_t i) const { return halves_[1 - turned_] + offsets_[i]; }
  int64_t bytes(size_t i) const { return bytes_[i]; }
  void turn() { turned_ = 1 - turned_; }
  void deliver(std::span<const TensorView> results) const {
    for (size_t i = 0; i < results.size(); ++i) copy(results[i].as<char>(), now(i), bytes_[i]);
  }

 private:
  std::vector<int64_t> offsets_, bytes_;
  char* halves_[2];
  int turned_ = 0;
};

// One region with the arguments of its next turn.
class RegionRun {
 public:
  RegionRun(Executable& region, std::span<const Node* const> operations,
            std::span<const int64_t> bindings, Interruption interruption, Scratch temporaries)
      : region_(region),
        recorded_{operations, {}},
        bindings_(bindings),
        interruption_(interruption),
        temporaries_(temporaries) {
    arguments_.emplace_back();
  }

  void set_turn(int64_t turn) { arguments_[0].bits = static_cast<uint64_t>(turn); }
  // Memory, and for a number its bits.
  void add(const TensorView& view) {
    InputArgument& argument = arguments_.emplace_back();
    argument.memory = view.as<char>();
    if (view.rank() == 0 && view.data != nullptr) {
      std::memcpy(&argument.bits, view.data, static_cast<size_t>(size_of(view.dtype)));
    }
  }
  void add(std::span<const TensorView> views) {
    for (const TensorView& view : views) add(view);
  }
  void add_place() { arguments_.emplace_back(); }
  void set(size_t place, char* memory) { arguments_[1 + place].memory = memory; }
  void run(std::span<char* const> outputs) {
    region_.run_into(bindings_, arguments_, outputs, interruption_, recorded_, temporaries_);
  }

 private:
  Executable& region_;
  const RecordedRun recorded_;
  std::span<const int64_t> bindings_;
  Interruption interruption_;
  Scratch temporaries_;
  std::vector<InputArgument> arguments_;
};

size_t count_attribute(const Node& node, size_t index) {
  return static_cast<size_t>(node.attribute<int64_t>(index));
}

}  // namespace

struct ControlStep::Run {
  const KernelCall& call;
  std::span<const int64_t> bindings;
  Interruption interruption;
  const std::vector<Body>& regions;
  ScratchParts memory;  // the states of loops, then what was lent for a region's temporaries

  // After the states have been taken.
  RegionRun region(size_t number) const {
    const Body& body = regions[number];
    return {*body.code, body.operations, bindings, interruption, memory.rest()};
  }

  void scan() {
    const size_t carried = count_attribute(call.node, 1), sequences = count_attribute(call.node, 2);
    const int64_t length = call.attribute<Shape>(3)[0].evaluate(bindings);
    const bool reverse = call.attribute<bool>(4);
    LoopState state(call.operands.first(carried), memory);
    RegionRun body = region(0);
    for (size_t i = 0; i < carried + sequences; ++i) body.add_place();
    body.add(call.operands.subspan(carried + sequences));
    std::vector<char*> outputs(call.results.size());
    const auto slice = [&](const TensorView& whole, int64_t turn) {
      return whole.as<char>() + bytes_of(whole) / length * turn;
    };
    for (int64_t i = 0; i < length; ++i) {
      const int64_t turn = reverse ? length - 1 - i : i;
      body.set_turn(turn);
      for (size_t c = 0; c < carried; ++c) {
        body.set(c, state.now(c));
        outputs[c] = state.next(c);
      }
      for (size_t s = 0; s < sequences; ++s) {
        body.set(carried + s, slice(call.operands[carried + s], turn));
      }
      for (size_t r = carried; r < outputs.size(); ++r) outputs[r] = slice(call.results[r], turn);
      body.run(outputs);
      state.turn();
    }
    state.deliver(call.results.first(carried));
  }

  void branch() {
    const bool holds = *call.operands[0].as<char>() != 0;
    RegionRun taken = region(holds ? 0 : 1);
    taken.add(call.operands.subspan(1));
    std::vector<char*> outputs;
    for (const TensorView& result : call.results) outputs.push_back(result.as<char>());
    taken.run(outputs);
  }

  void while_loop() {
    const size_t carried = count_attribute(call.node, 2);
    LoopState state(call.operands.first(carried), memory);
    RegionRun condition = region(0);
    RegionRun body = region(1);
    for (size_t i = 0; i < carried; ++i) {
      condition.add_place();
      body.add_place();
    }
    condition.add(call.operands.subspan(carried));
    body.add(call.operands.subspan(carried));
    std::vector<char*> outputs(carried);
    int64_t turn = 0;
    for (;; ++turn) {
      condition.set_turn(turn);
      body.set_turn(turn);
      for (size_t c = 0; c < carried; ++c) {
        condition.set(c, state.now(c));
        body.set(c, state.now(c));
        outputs[c] = state.next(c);
      }
      char goes_on = 0;
      char* const answer[] = {&goes_on};
      condition.run(answer);
      if (goes_on == 0) break;
      body.run(outputs);
      state.turn();
    }
    state.deliver(call.results.first(carried));
    *call.results[carried].as<int64_t>() = turn;
  }

  void while_loop_backward() {
    const size_t carried = count_attribute(call.node, 2), captured = count_attribute(call.node, 3);
    const auto outside = call.operands.subspan(carried, captured);
    const int64_t turns = *call.operands[carried + captured].as<int64_t>();
    LoopState state(call.operands.first(carried), memory);
    LoopState cotangents(call.operands.subspan(carried + captured + 1), memory);
    RegionRun body = region(0);
    for (size_t i = 0; i < carried; ++i) body.add_place();
    body.add(outside);
    // What every turn begins with; how many turns there are is known only now.
    std::vector<Buffer> kept;
    int64_t bytes = 0;
    for (size_t c = 0; c < carried; ++c) bytes += state.bytes(c);
    std::vector<char*> outputs(carried);
    for (int64_t turn = 0; turn < turns; ++turn) {
      kept.push_back(cpu_pool().allocate(bytes, "loop history"));
      char* place = static_cast<char*>(kept.back().data());
      for (size_t c = 0; c < carried; ++c) {
        copy(place, state.now(c), state.bytes(c));
        place += state.bytes(c);
        body.set(c, state.now(c));
        outputs[c] = state.next(c);
      }
      body.set_turn(turn);
      if (turn + 1 < turns) body.run(outputs);
      state.turn();
    }
    RegionRun backward = region(1);
    for (size_t i = 0; i < carried; ++i) backward.add_place();
    backward.add(outside);
    for (size_t i = 0; i < cotangents.size(); ++i) backward.add_place();
    outputs.resize(cotangents.size());
    for (int64_t turn = turns; turn-- > 0;) {
      char* place = static_cast<char*>(kept.back().data());
      for (size_t c = 0; c < carried; ++c) {
        backward.set(c, place);
        place += state.bytes(c);
      }
      for (size_t i = 0; i < cotangents.size(); ++i) {
        backward.set(carried + captured + i, cotangents.now(i));
        outputs[i] = cotangents.next(i);
      }
      backward.set_turn(turn);
      backward.run(outputs);
      cotangents.turn();
      kept.pop_back();
    }
    cotangents.deliver(call.results);
  }
};

ControlStep::ControlStep(const Node& node) : form_(opdef(node).lowering().control) {
  for (size_t i = 0; i < node.attributes()->size(); ++i) {
    const auto* object = std::get_if<Ref<AttributeObject>>(&(*node.attributes())[i]);
    const auto* region = object ? dynamic_cast<const Region*>(object->get()) : nullptr;
    if (region == nullptr) continue;
    Body& body = regions_.emplace_back();
    body.recorded = region->copy();
    for (const Ref<Node>& operation : body.recorded.nodes) {
      body.operations.push_back(operation.get());
    }
    body.code = std::make_unique<Executable>(lower(body.recorded));
  }
}

bool ControlStep::may_fail() const {
  return std::any_of(regions_.begin(), regions_.end(),
                     [](const Body& region) { return region.code->may_fail(); });
}

// What of the operands is carried from turn to turn, in memory of its own.
int64_t ControlStep::state_bytes(const KernelCall& call) const {
  switch (form_) {
    case Control::Scan:
      return LoopState::memory_bytes(call.operands.first(count_attribute(call.node, 1)));
    case Control::Branch:
      return 0;
    case Control::While:
      return LoopState::memory_bytes(call.operands.first(count_attribute(call.node, 2)));
    case Control::WhileBackward: {
      const size_t carried = count_attribute(call.node, 2);
      const size_t captured = count_attribute(call.node, 3);
      return LoopState::memory_bytes(call.operands.first(carried)) +
             LoopState::memory_bytes(call.operands.subspan(carried + captured + 1));
    }
  }
  return 0;
}

int64_t ControlStep::scratch_bytes(const KernelCall& call,
                                   std::span<const int64_t> bindings) const {
  int64_t temporaries = 0;
  for (const Body& region : regions_) {
    temporaries = std::max(temporaries, region.code->arena_bytes(bindings));
  }
  return state_bytes(call) + scratch_aligned(temporaries);
}

void ControlStep::run(const KernelCall& call, std::span<const int64_t> bindings,
                      Interruption interruption) {
  Run run{call, bindings, interruption, regions_, ScratchParts(call.scratch, state_bytes(call))};
  switch (form_) {
    case Control::Scan:
      return run.scan();
    case Control::Branch:
      return run.branch();
    case Control::While:
      return run.while_loop();
    case Control::WhileBackward:
      return run.while_loop_backward();
  }
}

}  // namespace lamella
