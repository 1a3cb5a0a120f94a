// What a kernel consists of: its program, the linked code and what is known about its cost.
#pragma once

#include <mutex>
#include <vector>

#include "lamella/tile/cpu/arguments.h"
#include "lamella/tile/cpu/column_emitter.h"
#include "lamella/tile/cpu/jit.h"
#include "lamella/tile/cpu/kernel.h"
#include "lamella/tile/cpu/row_emitter.h"

namespace lamella::tile {

struct Kernel::Code {
  // Links an object file compiled from `source`.
  Code(const Program& source, InstructionSet set, std::string_view object);

  Program program;
  InstructionSet instruction_set;
  ArgumentLayout layout;
  int64_t code_bytes = 0;
  int64_t row_scratch_bytes = 0;       // of one element of all rows kept between passes
  int64_t partial_bytes = 0;           // of one column's, or one chunk's, partial results
  double nanoseconds_per_element = 0;  // an estimate, for cutting work into threads
  LinkedCode linked;
  RowFunction* rows = nullptr;
  RowChunkFunction* row_chunks = nullptr;  // only for programs that reduce once
  RowFinishFunction* row_finish = nullptr;
  ColumnBlockFunction* column_block = nullptr;
  ColumnFinishFunction* column_finish = nullptr;

  // Kernels of the same program that stream some of its results.
  mutable std::mutex streaming_mutex;
  mutable std::vector<Ref<const Kernel>> streaming;
};

// Emits the program's functions.
void emit_program(Ir& ir, const Program& program);

}  // namespace lamella::tile
