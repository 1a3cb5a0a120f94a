// How a program that runs row by row is cut into passes over the row: each reduction needs the
// results of those it depends on, so every level of dependent reductions is one pass.
#pragma once

#include <cstdint>
#include <vector>

#include "lamella/tile/program.h"

namespace lamella::tile {

// The sum of what is 0 but for the element at one position: that element.
struct Pick {
  int32_t sum;
  int32_t value;                   // whose element it is
  int32_t position;                // a value of the row
  std::vector<int32_t> evaluated;  // as in RowPass
};

struct RowPass {
  std::vector<Pick> picks;          // before all else: a store may write what they read
  std::vector<int32_t> reductions;  // finished by this pass
  std::vector<int32_t> stores;      // of elements, done in this pass
  std::vector<int32_t> kept;        // values written to a row of scratch memory for later passes
  std::vector<int32_t> evaluated;   // element values to compute, in order; loads come first
};

struct RowSchedule {
  std::vector<Place> places;
  // The number of passes that must end before the value is known.
  std::vector<int> level;
  std::vector<RowPass> passes;
  // Per instruction, the number of its scratch row, or -1; and the first pass that evaluates it,
  // for more than a pick.
  std::vector<int32_t> slot;
  std::vector<int> home;
  std::vector<DType> slot_dtypes;

  // Whether a pass finds the value in its scratch row.
  bool is_kept_before(int32_t value, size_t pass) const {
    const auto index = static_cast<size_t>(value);
    return slot[index] >= 0 && home[index] < static_cast<int>(pass);
  }
};

RowSchedule schedule_rows(const Program& program);

// A rough cost in vector instructions a piece.
int instruction_cost(const Instruction& instruction);

}  // namespace lamella::tile
