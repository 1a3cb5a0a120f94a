// Compiles programs without reduction or with row reductions into a function that runs a range of
// rows, one after the other.
#pragma once

#include "lamella/tile/cpu/ir.h"
#include "lamella/tile/cpu/row_schedule.h"
#include "lamella/tile/program.h"

namespace lamella::tile {

// void(arguments, first row, last row, first element, last element, scratch). The element range is
// for programs without reduction, whose rows can be cut anywhere; others run whole rows and keep
// their scratch rows, each `row_scratch_elements` long, one after the other in `scratch`.
inline constexpr const char* kRowFunction = "lamella_rows";
using RowFunction = void(const int64_t* arguments, int64_t row_begin, int64_t row_end,
                         int64_t begin, int64_t end, void* scratch);

// Programs that only reduce, in one pass, can also be run by parts of a row, for few long rows:
// void(arguments, row, first chunk, last chunk, partials) and void(arguments, row, chunks,
// partials), with one word of memory for each chunk and reduction.
bool reduces_once(const Program& program, const RowSchedule& schedule);
inline constexpr const char* kRowChunkFunction = "lamella_row_chunks";
using RowChunkFunction = void(const int64_t* arguments, int64_t row, int64_t begin, int64_t end,
                              void* partials);
inline constexpr const char* kRowFinishFunction = "lamella_row_finish";
using RowFinishFunction = void(const int64_t* arguments, int64_t row, int64_t chunks,
                               void* partials);
inline constexpr int64_t kPartialBytes = 8;

// Programs without reduction that read or write elements that are not adjacent along a row go
// through blocks of so many rows side by side.
bool runs_in_row_blocks(const Program& program);
inline constexpr int64_t kRowsOfBlock = 16;

void emit_rows(Ir& ir, const Program& program, const RowSchedule& schedule);

// Elements of a scratch row: the row's length, rounded up so that pieces may be written whole.
constexpr int64_t row_scratch_elements(int64_t length) {
  return (length + 63) / 64 * 64;
}

}  // namespace lamella::tile
