// Chooses, for every element value that a later pass needs again, between computing it anew and
// keeping it in scratch memory.
#include "lamella/tile/cpu/row_schedule.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "lamella/tile/opcode.h"

namespace lamella::tile {

namespace {

constexpr int kReload = 3;  // the cost of reading a kept row back

class Scheduler {
 public:
  explicit Scheduler(const Program& program) : program_(program) {}

  RowSchedule run() {
    schedule_.places = places(program_);
    find_levels();
    place_reductions_and_stores();
    // Chunks of a row that is reduced once are shared out, and none of them is the whole row.
    if (schedule_.passes.size() > 1) find_picks();
    choose_kept();
    for (size_t pass = 0; pass < schedule_.passes.size(); ++pass) {
      RowPass& now = schedule_.passes[pass];
      now.evaluated = evaluated(marked(pass), pass);
      for (Pick& pick : now.picks) {
        std::vector<char> wanted(program_.body.size(), 0);
        mark(pick.value, pass, wanted);
        pick.evaluated = evaluated(wanted, pass);
      }
    }
    return std::move(schedule_);
  }

 private:
  const Instruction& at(int32_t i) const { return program_.body[static_cast<size_t>(i)]; }
  int level(int32_t i) const { return schedule_.level[static_cast<size_t>(i)]; }
  bool is_element(int32_t i) const {
    return schedule_.places[static_cast<size_t>(i)] == Place::Element;
  }
  int32_t size() const { return static_cast<int32_t>(program_.body.size()); }
  template <typename Visit>
  void for_operands(int32_t i, Visit visit) const {
    for (const int32_t operand : at(i).operands) {
      if (operand >= 0) visit(operand);
    }
  }

  void find_levels() {
    schedule_.level.assign(program_.body.size(), 0);
    for (int32_t i = 0; i < size(); ++i) {
      int result = 0;
      for_operands(i, [&](int32_t operand) { result = std::max(result, level(operand)); });
      schedule_.level[static_cast<size_t>(i)] = result + (is_reduction(at(i).opcode) ? 1 : 0);
    }
  }

  bool is_element_store(int32_t i) const {
    return at(i).opcode == Opcode::Store &&
           program_.buffers[static_cast<size_t>(at(i).index)].vector_stride != VectorStride::Zero;
  }

  void place_reductions_and_stores() {
    int passes = 0;
    for (int32_t i = 0; i < size(); ++i) {
      if (is_reduction(at(i).opcode)) passes = std::max(passes, level(i));
      if (is_element_store(i)) passes = std::max(passes, level(i) + 1);
    }
    schedule_.passes.resize(static_cast<size_t>(passes));
    for (int32_t i = 0; i < size(); ++i) {
      if (is_reduction(at(i).opcode)) {
        schedule_.passes[static_cast<size_t>(level(i) - 1)].reductions.push_back(i);
      }
      // All element stores are in the last pass: a store must not precede a later pass's load of a
      // buffer that is the same memory.
      if (is_element_store(i)) schedule_.passes.back().stores.push_back(i);
    }
  }

  std::optional<Pick> as_pick(int32_t sum) const {
    if (at(sum).opcode != Opcode::ReduceSum) return std::nullopt;
    const Instruction& choice = at(at(sum).operands[0]);
    if (choice.opcode != Opcode::Select) return std::nullopt;
    const Instruction &test = at(choice.operands[0]), &other = at(choice.operands[2]);
    const bool is_zero = other.opcode == Opcode::Constant && other.immediate == 0 &&
                         !std::signbit(other.immediate) && other.immediate_integer == 0;
    if (!is_zero || test.opcode != Opcode::Equal) return std::nullopt;
    for (const bool swapped : {false, true}) {
      const int32_t number = test.operands[swapped ? 1 : 0],
                    at_row = test.operands[swapped ? 0 : 1];
      if (at(number).opcode == Opcode::Iota && is_element(number) && !is_element(at_row)) {
        return Pick{.sum = sum, .value = choice.operands[1], .position = at_row, .evaluated = {}};
      }
    }
    return std::nullopt;
  }
  void find_picks() {
    for (RowPass& pass : schedule_.passes) {
      std::erase_if(pass.reductions, [&](int32_t reduction) {
        const std::optional<Pick> pick = as_pick(reduction);
        if (pick) pass.picks.push_back(*pick);
        return pick.has_value();
      });
    }
  }

  // The cost of computing an element value in `pass` from loads and rows kept before.
  int recompute_cost(int32_t value, std::vector<char>& seen) const {
    if (!is_element(value) || seen[static_cast<size_t>(value)]) return 0;
    seen[static_cast<size_t>(value)] = 1;
    if (schedule_.slot[static_cast<size_t>(value)] >= 0) return kReload;
    int total = instruction_cost(at(value));
    for_operands(value, [&](int32_t operand) { total += recompute_cost(operand, seen); });
    return total;
  }

  // Marks what `pass` evaluates; values kept by an earlier pass stop the walk.
  void mark(int32_t value, size_t pass, std::vector<char>& marked) const {
    if (!is_element(value) || marked[static_cast<size_t>(value)]) return;
    marked[static_cast<size_t>(value)] = 1;
    if (schedule_.is_kept_before(value, pass)) return;
    for_operands(value, [&](int32_t operand) { mark(operand, pass, marked); });
  }
  std::vector<char> marked(size_t pass) const {
    std::vector<char> result(program_.body.size(), 0);
    for (const int32_t i : schedule_.passes[pass].reductions) mark(at(i).operands[0], pass, result);
    for (const int32_t i : schedule_.passes[pass].stores) mark(at(i).operands[0], pass, result);
    return result;
  }

  void choose_kept() {
    schedule_.slot.assign(program_.body.size(), -1);
    schedule_.home.assign(program_.body.size(), -1);
    std::vector<char> evaluated_before(program_.body.size(), 0);
    for (size_t pass = 0; pass < schedule_.passes.size(); ++pass) {
      std::vector<char> now = marked(pass);
      // From the last value to the first, so that keeping a value spares all that only it needs.
      for (int32_t i = size() - 1; i >= 0; --i) {
        const auto index = static_cast<size_t>(i);
        if (!now[index] || !evaluated_before[index] || schedule_.slot[index] >= 0) continue;
        std::vector<char> seen(program_.body.size(), 0);
        if (recompute_cost(i, seen) <= 2 * kReload) continue;
        keep(i);
        now = marked(pass);
      }
      for (size_t i = 0; i < now.size(); ++i) {
        if (!now[i]) continue;
        evaluated_before[i] = 1;
        if (schedule_.home[i] < 0) schedule_.home[i] = static_cast<int>(pass);
      }
    }
  }
  void keep(int32_t value) {
    const auto index = static_cast<size_t>(value);
    schedule_.slot[index] = static_cast<int32_t>(schedule_.slot_dtypes.size());
    schedule_.slot_dtypes.push_back(at(value).dtype);
    schedule_.passes[static_cast<size_t>(schedule_.home[index])].kept.push_back(value);
  }

  // What is wanted, loads first.
  std::vector<int32_t> evaluated(const std::vector<char>& wanted, size_t pass) const {
    std::vector<int32_t> result;
    const auto is_load = [&](int32_t i) {
      return at(i).opcode == Opcode::Load || schedule_.is_kept_before(i, pass);
    };
    for (const bool loads : {true, false}) {
      for (int32_t i = 0; i < size(); ++i) {
        if (wanted[static_cast<size_t>(i)] && is_load(i) == loads) result.push_back(i);
      }
    }
    return result;
  }

  const Program& program_;
  RowSchedule schedule_;
};

}  // namespace

int instruction_cost(const Instruction& instruction) {
  if (instruction.opcode == Opcode::Erfc) return 60;
  if (is_transcendental(instruction.opcode)) return 20;
  switch (instruction.opcode) {
    case Opcode::Random:
      return 60;
    case Opcode::Sqrt:
    case Opcode::Rsqrt:
    case Opcode::Reciprocal:
    case Opcode::Div:
    case Opcode::Mod:
    case Opcode::FloorDiv:
      return 8;
    default:
      return is_low_precision(instruction.dtype) ? 4 : 1;
  }
}

RowSchedule schedule_rows(const Program& program) {
  return Scheduler(program).run();
}

}  // namespace lamella::tile
