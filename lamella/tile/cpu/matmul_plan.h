// How a matrix product is cut: into tasks for threads, blocks for caches, panels for registers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lamella/tile/cpu/microkernel_emitter.h"

namespace lamella::tile {

// Item `i` of `count` nearly equal parts of [0, total).
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};
constexpr Range part(int64_t total, int64_t count, int64_t i) {
  return {total * i / count, total * (i + 1) / count};
}

struct MatmulSizes {
  int64_t batches = 1;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
};

struct MatmulTraits {
  DType input = DType::Float32;
  InstructionSet set = InstructionSet::Generic;
  bool b_is_row_major = true;    // adjacent along its columns
  bool a_needs_packing = false;  // converted, or not adjacent along its depth
  bool has_epilogue = false;
};

struct MatmulPlan {
  MatmulPlan(const MatmulSizes& sizes, const MatmulTraits& traits, int threads);

  int64_t lanes;          // of a vector
  int64_t element_bytes;  // of the product
  // A task is one batch by one part of the rows by one part of the columns.
  int64_t row_parts = 1;
  int64_t column_parts = 1;
  int64_t tasks;
  int64_t threads_used;
  // Within a task.
  int max_rows;           // of a microkernel
  int max_vectors;        // of a panel
  int64_t product_rows;   // rows whose product is finished before the next ones begin
  int64_t panel_columns;  // columns of a block of B, whose panels are packed at once
  int64_t block_depth;    // of a block of A and B
  int64_t block_rows;     // of a block of A
  bool packs_b;

  // Scratch memory of a thread: packed B, packed A, a block of the product before the epilogue.
  int64_t b_bytes, a_bytes, product_bytes;
  int64_t product_row_elements;
  int64_t thread_bytes() const { return b_bytes + a_bytes + product_bytes; }

  // The columns of a part: whole vectors.
  Range columns_of_part(int64_t columns, int64_t number) const {
    const Range vectors = part((columns + lanes - 1) / lanes, column_parts, number);
    return {vectors.begin * lanes, std::min(columns, vectors.end * lanes)};
  }
};

}  // namespace lamella::tile
