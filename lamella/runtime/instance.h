// An executable for given sizes: memory plan, ready arguments, and the order of launches.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "lamella/device/tensor_view.h"
#include "lamella/runtime/kernel_step.h"
#include "lamella/runtime/launch_listener.h"
#include "lamella/runtime/memory_plan.h"

namespace lamella {

// Memory that steps share: an input, an output, or a temporary.
struct Slot {
  Value* value = nullptr;
  int input = -1;  // number of the graph input; -1 for results
  bool output = false;
  int first_step = 0;  // the step that writes it; -1 for inputs
  int last_step = -1;  // the last step that touches it
};

// What an instance is made from; it outlives the instance.
struct InstanceSource {
  std::span<const Step> steps;
  std::span<const Slot> slots;
  // By value: its slot, and for graph inputs their number.
  const std::unordered_map<const Value*, int>& slot_of;
  const std::unordered_map<const Value*, int>& input_of;
  int last_fallible_step;
};

struct Instance {
  // Where a step's buffer begins: in a slot, or among the numbers.
  struct Pointer {
    int slot = -1;       // -1: a number
    int number = -1;     // index into number_bits
    int64_t offset = 0;  // bytes
    struct Term {
      int number;
      int64_t factor;     // bytes
      int64_t low, high;  // the values accepted
      const Node* view;   // where it comes from, for the error
    };
    std::vector<Term> terms;
  };
  struct StepArguments {
    std::vector<Pointer> pointers;  // one a buffer of the step
    tile::Launch launch;            // of a tile program
    std::vector<int> scalars;       // of a tile program: indices into number_bits
    std::vector<TensorView> views;  // of a kernel
    int64_t scratch_bytes = 0;
    int64_t scratch_offset = -1;  // in the arena
  };
  // Steps that run as one parallel loop: launches of one kernel, or a program of rows and programs
  // of columns in turn, block by block.
  struct Batch {
    std::vector<size_t> steps;
    bool by_blocks = false;
  };

  std::vector<StepArguments> steps;
  std::vector<Batch> batches;
  // The run may still be stopped, with nothing to undo, before batches up to this number.
  size_t last_interruptible_batch = 0;

  std::vector<int64_t> slot_bytes;
  std::vector<int64_t> arena_offset;  // by slot; -1 if it is not in the arena
  std::vector<int> shares;            // by slot: the slot whose memory it takes over, or -1
  ArenaPlan arena;

  std::vector<uint64_t> number_bits;               // sizes are filled in, inputs come with each run
  std::vector<std::pair<int, int>> number_inputs;  // (number, graph input)

  std::vector<LaunchWork> work;  // by batch; filled once somebody listens to launches

  // Filled at each run.
  std::vector<char*> slot_data;
  std::vector<tile::Launch> batch_launches;

  // The slot whose memory a slot uses in the end.
  size_t memory_of(size_t slot) const {
    while (shares[slot] >= 0) slot = static_cast<size_t>(shares[slot]);
    return slot;
  }
};

// `donated`: by graph input, whether results may be written into its memory.
LAMELLA_API std::unique_ptr<Instance> make_instance(const InstanceSource& source,
                                                    std::span<const int64_t> bindings,
                                                    const std::vector<bool>& donated);

}  // namespace lamella
