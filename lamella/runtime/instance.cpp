// Evaluating sizes, sharing memory, ordering launches.
#include "lamella/runtime/instance.h"

#include <algorithm>
#include <numeric>

#include "lamella/ops/opdef.h"
#include "lamella/runtime/control_step.h"

namespace lamella {

namespace {

class InstanceBuilder {
 public:
  InstanceBuilder(const InstanceSource& source, std::span<const int64_t> bindings,
                  const std::vector<bool>& donated)
      : source_(source), bindings_(bindings), donated_(donated) {}

  std::unique_ptr<Instance> build() {
    for (const Slot& slot : source_.slots) {
      made_->slot_bytes.push_back(evaluate(element_count(slot.value->type().shape)) *
                                  size_of(slot.value->type().dtype));
    }
    made_->slot_data.assign(source_.slots.size(), nullptr);
    for (const Step& step : source_.steps) made_->steps.push_back(arguments_of(step));
    share_memory();
    find_blocks();
    plan_memory();
    batch_launches();
    return std::move(made_);
  }

 private:
  int64_t evaluate(Dim size) const { return size.evaluate(bindings_); }

  // ---- Arguments ----

  int number_of(Value* value) {
    const auto [entry, fresh] =
        numbers_.try_emplace(value, static_cast<int>(made_->number_bits.size()));
    if (!fresh) return entry->second;
    uint64_t bits = value->scalar_bits();
    if (value->state() == Value::State::Size) {
      bits = scalar_bits_from(value->type().dtype, evaluate(value->size_expression()));
    } else if (value->state() == Value::State::NumberInput) {
      made_->number_inputs.emplace_back(entry->second, source_.input_of.at(value));
    }
    made_->number_bits.push_back(bits);
    return entry->second;
  }

  Instance::Pointer pointer_of(const StepBuffer& buffer) {
    Instance::Pointer pointer;
    if (buffer.base->is_number()) {
      pointer.number = number_of(buffer.base);
      return pointer;
    }
    const int64_t element = size_of(buffer.dtype);
    pointer.slot = source_.slot_of.at(buffer.base);
    pointer.offset = evaluate(buffer.offset.constant) * element;
    for (const auto& term : buffer.offset.terms) {
      pointer.terms.push_back({number_of(term.number), evaluate(term.factor) * element,
                               evaluate(term.low), evaluate(term.high), term.view});
    }
    return pointer;
  }

  Instance::StepArguments arguments_of(const Step& step) {
    Instance::StepArguments arguments;
    for (const StepBuffer& buffer : step.buffers) arguments.pointers.push_back(pointer_of(buffer));
    if (step.kernel != nullptr) {
      for (const StepBuffer& buffer : step.buffers) {
        TensorView& view = arguments.views.emplace_back();
        view.dtype = buffer.dtype;
        for (Dim size : buffer.sizes) view.sizes.push_back(evaluate(size));
        for (Dim stride : buffer.strides) view.strides.push_back(evaluate(stride));
      }
      const std::span<const TensorView> views = arguments.views;
      const KernelCall call{
          *step.kernel, views.first(step.operand_count), views.subspan(step.operand_count), {}};
      const KernelRule& rule = opdef(*step.kernel).lowering().kernel;
      if (step.control != nullptr) {
        arguments.scratch_bytes = step.control->scratch_bytes(call, bindings_);
      } else if (rule.scratch_bytes != nullptr) {
        arguments.scratch_bytes = rule.scratch_bytes(call);
      }
      return arguments;
    }
    for (Dim extent : step.extents) arguments.launch.extents.push_back(evaluate(extent));
    for (Value* scalar : step.scalars) arguments.scalars.push_back(number_of(scalar));
    arguments.launch.scalars.resize(step.scalars.size());
    for (const StepBuffer& buffer : step.buffers) {
      auto& strides = arguments.launch.buffers.emplace_back().strides;
      for (Dim stride : buffer.strides) strides.push_back(evaluate(stride));
    }
    step.code->order_outer_axes(arguments.launch);
    arguments.scratch_bytes = step.code->scratch_bytes(arguments.launch.extents);
    return arguments;
  }

  // ---- Memory ----

  // An elementwise step may write where it reads for the last time.
  void share_memory() {
    made_->shares.assign(source_.slots.size(), -1);
    std::vector<bool> taken(source_.slots.size(), false);
    for (size_t i = 0; i < source_.steps.size(); ++i) {
      const Step& step = source_.steps[i];
      if (step.kernel != nullptr || step.program.reduction != tile::Reduction::None) continue;
      for (size_t w = 0; w < step.buffers.size(); ++w) {
        if (step.buffers[w].access != tile::Access::Write) continue;
        for (size_t r = 0; r < step.buffers.size(); ++r) {
          if (!may_take_over(i, w, r, taken)) continue;
          const int slot = made_->steps[i].pointers[r].slot;
          made_->shares[static_cast<size_t>(made_->steps[i].pointers[w].slot)] = slot;
          taken[static_cast<size_t>(slot)] = true;
          break;
        }
      }
    }
  }

  bool may_take_over(size_t i, size_t w, size_t r, const std::vector<bool>& taken) const {
    const Step& step = source_.steps[i];
    const StepBuffer &read = step.buffers[r], &write = step.buffers[w];
    if (read.access != tile::Access::Read || read.base->is_number()) return false;
    const auto from = static_cast<size_t>(made_->steps[i].pointers[r].slot);
    const auto to = static_cast<size_t>(made_->steps[i].pointers[w].slot);
    const Slot &source = source_.slots[from], &target = source_.slots[to];
    const bool dies = source.last_step == static_cast<int>(i) && !source.output && !taken[from];
    const bool owned = source.input < 0 || (donated_[static_cast<size_t>(source.input)] &&
                                            static_cast<int>(i) > source_.last_fallible_step);
    // An output leaves with its memory: only a donated input's can.
    const bool fitting = target.output ? source.input >= 0 : source.input < 0;
    const bool same_size =
        made_->slot_bytes[from] == made_->slot_bytes[to] && made_->slot_bytes[from] > 0;
    const bool same_places = read.strides == write.strides && read.offset == write.offset &&
                             size_of(read.dtype) == size_of(write.dtype);
    // Every read of the memory in this step must be at the places that are written.
    const bool read_once =
        std::all_of(step.buffers.begin(), step.buffers.end(), [&](const StepBuffer& other) {
          return other.base != read.base || other.access == tile::Access::Write ||
                 (other.strides == read.strides && other.offset == read.offset);
        });
    return dies && owned && fitting && same_size && same_places && read_once;
  }

  // ---- Steps that run by blocks of rows ----

  // Joins programs of columns with the program of rows before them where they can run in turn on
  // each block.
  void find_blocks() {
    leader_.resize(source_.steps.size());
    std::iota(leader_.begin(), leader_.end(), size_t{0});
    for (size_t i = 1; i < source_.steps.size(); ++i) {
      const size_t leader = leader_[i - 1];
      if (meets_columns(leader, i) && reads_own_rows(leader, i)) leader_[i] = leader;
    }
  }

  bool meets_columns(size_t rows, size_t columns) const {
    const Step &leader = source_.steps[rows], &follower = source_.steps[columns];
    return leader.kernel == nullptr && follower.kernel == nullptr &&
           leader.code->meets_columns(made_->steps[rows].launch.extents, *follower.code,
                                      made_->steps[columns].launch.extents);
  }

  // Whether what a step has in common with the steps [first, step) lies, row by row, where they
  // write it.
  bool reads_own_rows(size_t first, size_t step) const {
    for (size_t earlier = first; earlier < step; ++earlier) {
      const auto &left = source_.steps[earlier].buffers, &right = source_.steps[step].buffers;
      for (size_t i = 0; i < left.size(); ++i) {
        for (size_t j = 0; j < right.size(); ++j) {
          if (conflict(earlier, i, step, j) &&
              !(left[i].access == tile::Access::Write && right[j].access == tile::Access::Read &&
                same_rows(earlier, i, step, j))) {
            return false;
          }
        }
      }
    }
    return true;
  }

  // Whether buffer i of step a and buffer j of step b are in one slot that one of them writes.
  bool conflict(size_t a, size_t i, size_t b, size_t j) const {
    const int left = made_->steps[a].pointers[i].slot, right = made_->steps[b].pointers[j].slot;
    const bool written = source_.steps[a].buffers[i].access == tile::Access::Write ||
                         source_.steps[b].buffers[j].access == tile::Access::Write;
    return written && left >= 0 && right >= 0 &&
           made_->memory_of(static_cast<size_t>(left)) ==
               made_->memory_of(static_cast<size_t>(right));
  }

  // Whether two buffers have the same elements in each row, and no two rows have one in common.
  bool same_rows(size_t a, size_t i, size_t b, size_t j) const {
    const StepBuffer &left = source_.steps[a].buffers[i], &right = source_.steps[b].buffers[j];
    const auto& strides = made_->steps[a].launch.buffers[i].strides;
    return left.base == right.base && left.offset == right.offset && left.dtype == right.dtype &&
           strides == made_->steps[b].launch.buffers[j].strides &&
           std::none_of(strides.begin(), strides.end() - 1, [](int64_t s) { return s == 0; });
  }

  // The step in whose place a step runs.
  int time_of(int step) const {
    return step < 0 ? step : static_cast<int>(leader_[static_cast<size_t>(step)]);
  }

  // Temporaries and scratch memory in one arena; memory taken over lives as long as its last user.
  void plan_memory() {
    const size_t slot_count = source_.slots.size();
    std::vector<PlannedSlot> planned;
    std::unordered_map<size_t, size_t> place_of;  // of the memory of an arena slot
    std::vector<size_t> place(slot_count, SIZE_MAX);
    for (size_t slot = 0; slot < slot_count; ++slot) {
      const size_t memory = made_->memory_of(slot);
      const Slot& owner = source_.slots[memory];
      if (owner.input >= 0 || owner.output) continue;
      const auto [entry, fresh] = place_of.try_emplace(memory, planned.size());
      if (fresh) {
        planned.push_back(
            {made_->slot_bytes[memory], time_of(owner.first_step), time_of(owner.last_step)});
      }
      PlannedSlot& plan = planned[entry->second];
      const Slot& user = source_.slots[slot];
      plan.first_step = std::min(plan.first_step, time_of(user.first_step));
      plan.last_step =
          std::max({plan.last_step, time_of(user.last_step), time_of(user.first_step)});
      place[slot] = entry->second;
    }
    const size_t first_scratch = planned.size();
    for (size_t i = 0; i < made_->steps.size(); ++i) {
      const int64_t bytes = made_->steps[i].scratch_bytes;
      const int time = time_of(static_cast<int>(i));
      if (bytes > 0) planned.push_back({bytes, time, time});
    }
    made_->arena = plan_arena(planned);
    made_->arena_offset.assign(slot_count, -1);
    for (size_t slot = 0; slot < slot_count; ++slot) {
      if (place[slot] != SIZE_MAX) made_->arena_offset[slot] = made_->arena.offsets[place[slot]];
    }
    size_t next = first_scratch;
    for (Instance::StepArguments& step : made_->steps) {
      if (step.scratch_bytes > 0) step.scratch_offset = made_->arena.offsets[next++];
    }
  }

  // ---- Order ----

  bool writes_donated(size_t step) const {
    const Step& described = source_.steps[step];
    for (size_t b = 0; b < described.buffers.size(); ++b) {
      if (described.buffers[b].access != tile::Access::Write) continue;
      const size_t memory =
          made_->memory_of(static_cast<size_t>(made_->steps[step].pointers[b].slot));
      if (source_.slots[memory].input >= 0) return true;
    }
    return false;
  }

  // Whether two slots lie in common memory: one took over the other's, or the plan gave both the
  // same part of the arena at different times.
  bool overlap(size_t a, size_t b) const {
    if (made_->memory_of(a) == made_->memory_of(b)) return true;
    const int64_t first = made_->arena_offset[a], second = made_->arena_offset[b];
    return first >= 0 && second >= 0 && first < second + made_->slot_bytes[b] &&
           second < first + made_->slot_bytes[a];
  }

  // Whether two steps touch one piece of memory that at least one of them writes.
  bool depend(size_t a, size_t b) const {
    const auto &left = source_.steps[a].buffers, &right = source_.steps[b].buffers;
    for (size_t i = 0; i < left.size(); ++i) {
      const int slot = made_->steps[a].pointers[i].slot;
      if (slot < 0) continue;
      for (size_t j = 0; j < right.size(); ++j) {
        const int other = made_->steps[b].pointers[j].slot;
        if (other < 0 ||
            (left[i].access == tile::Access::Read && right[j].access == tile::Access::Read)) {
          continue;
        }
        if (overlap(static_cast<size_t>(slot), static_cast<size_t>(other))) {
          return true;
        }
      }
    }
    return false;
  }

  // Writes into the arena must stay where their lifetimes were planned.
  bool writes_arena(size_t step) const {
    const Step& described = source_.steps[step];
    for (size_t b = 0; b < described.buffers.size(); ++b) {
      const int slot = made_->steps[step].pointers[b].slot;
      if (described.buffers[b].access == tile::Access::Write && slot >= 0 &&
          made_->arena_offset[static_cast<size_t>(slot)] >= 0) {
        return true;
      }
    }
    return false;
  }

  // The earlier batch a step can join: launches of the same kernel that nothing in between touches.
  Instance::Batch* batch_to_join(size_t step) {
    const Step& joining = source_.steps[step];
    if (joining.kernel != nullptr || joining.program.reduction != tile::Reduction::None ||
        made_->steps[step].scratch_bytes > 0) {
      return nullptr;
    }
    const bool movable = !writes_arena(step);
    for (size_t b = made_->batches.size(); b-- > 0;) {
      Instance::Batch& batch = made_->batches[b];
      for (size_t other : batch.steps) {
        if (depend(other, step)) return nullptr;
      }
      const size_t first = batch.steps.front();
      if (source_.steps[first].code.get() == source_.steps[step].code.get() &&
          made_->steps[first].scratch_bytes == 0) {
        return &batch;
      }
      // Past the last batch the step would move up, before others.
      if (!movable || made_->batches.size() - b > kFarthestMove) return nullptr;
    }
    return nullptr;
  }

  void batch_launches() {
    bool donated_written = false;
    for (size_t i = 0; i < source_.steps.size(); ++i) {
      if (leader_[i] != i) {
        made_->batches.back().steps.push_back(i);
        made_->batches.back().by_blocks = true;
      } else if (Instance::Batch* batch = batch_to_join(i)) {
        batch->steps.push_back(i);
      } else {
        made_->batches.push_back({.steps = {i}});
      }
    }
    for (size_t b = 0; b < made_->batches.size() && !donated_written; ++b) {
      made_->last_interruptible_batch = b;
      for (size_t step : made_->batches[b].steps)
        donated_written = donated_written || writes_donated(step);
    }
  }

  // How many batches back a step may join another; keeps the search linear.
  static constexpr size_t kFarthestMove = 16;

  const InstanceSource& source_;
  std::span<const int64_t> bindings_;
  const std::vector<bool>& donated_;
  std::unique_ptr<Instance> made_ = std::make_unique<Instance>();
  std::unordered_map<const Value*, int> numbers_;
  std::vector<size_t> leader_;  // by step: the first one of those it runs by blocks with
};

}  // namespace

std::unique_ptr<Instance> make_instance(const InstanceSource& source,
                                        std::span<const int64_t> bindings,
                                        const std::vector<bool>& donated) {
  return InstanceBuilder(source, bindings, donated).build();
}

}  // namespace lamella
