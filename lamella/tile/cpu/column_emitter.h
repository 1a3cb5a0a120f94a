// Compiles column reductions into two functions: one reduces a block of 64 rows to partial results
// in scratch memory, the other combines the blocks and runs what follows on the columns.
#pragma once

#include "lamella/tile/cpu/ir.h"
#include "lamella/tile/program.h"

namespace lamella::tile {

// void(arguments, batch, block, first column, last column, scratch).
inline constexpr const char* kColumnBlockFunction = "lamella_column_block";
using ColumnBlockFunction = void(const int64_t* arguments, int64_t batch, int64_t block,
                                 int64_t begin, int64_t end, void* scratch);
// void(arguments, batch, first column, last column, scratch).
inline constexpr const char* kColumnFinishFunction = "lamella_column_finish";
using ColumnFinishFunction = void(const int64_t* arguments, int64_t batch, int64_t begin,
                                  int64_t end, void* scratch);

// Both take column ranges that begin at a multiple of this.
inline constexpr int64_t kColumnPanel = 64;

void emit_columns(Ir& ir, const Program& program);

// Scratch memory: for each batch, block and reduction one row of partial results, as long as the
// vector axis rounded up to whole panels. Gives the bytes of one column's partial results.
int64_t column_partial_bytes(const Program& program);

}  // namespace lamella::tile
