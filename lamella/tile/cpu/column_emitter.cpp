// The loops of a column reduction. Within a block, eight rows at a time are added to the
// accumulators of one panel of columns in registers, so that memory is read row by row.
#include "lamella/tile/cpu/column_emitter.h"

#include "lamella/tile/cpu/reduction_tree.h"
#include "lamella/tile/cpu/row_walk.h"
#include "lamella/tile/opcode.h"

namespace lamella::tile {

namespace {

constexpr int64_t kRowGroup = 8;

int64_t partial_bytes(DType dtype) {
  return size_of(compute_dtype(dtype));
}

class ColumnEmitter {
 public:
  ColumnEmitter(Ir& ir, const Program& program) : ir_(ir), program_(program) {
    for (int32_t i = 0; i < static_cast<int32_t>(program.body.size()); ++i) {
      if (is_reduction(at(i).opcode)) reductions_.push_back(i);
    }
    places_ = places(program);
  }

  void emit_block_function() {
    const std::array parameters = {ir_.pointer, ir_.i64, ir_.i64, ir_.i64, ir_.i64, ir_.pointer};
    ir_.begin_function(kColumnBlockFunction, parameters, nullptr, false);
    BodyEmitter body(ir_, program_, ir_.parameter(0));
    start(body, ir_.parameter(5));
    RowWalk batch = walk_batches();
    const LLVMValueRef block = ir_.parameter(2);
    const LLVMValueRef first_row = ir_.mul(block, ir_.word(kRowBlock));
    const LLVMValueRef rows =
        ir_.intrinsic("llvm.smin", {ir_.sub(row_count_, first_row), ir_.word(kRowBlock)});
    tabulate_rows(batch, first_row, rows, ir_.parameter(3));
    const LLVMValueRef begin = ir_.parameter(3), end = ir_.parameter(4);
    const LLVMValueRef whole =
        ir_.add(begin, ir_.bit_and(ir_.sub(end, begin), ir_.word(-kColumnPanel)));
    fill_partials(block, begin, end);
    ir_.loop(ir_.word(0), rows, ir_.word(kRowGroup), [&](LLVMValueRef group) {
      const LLVMValueRef group_end =
          ir_.intrinsic("llvm.smin", {rows, ir_.add(group, ir_.word(kRowGroup))});
      ir_.loop(begin, whole, ir_.word(kColumnPanel), [&](LLVMValueRef column) {
        accumulate_rows(batch, block, group, group_end, column, kColumnPanel / kLanes, {});
      });
      ir_.loop(whole, end, ir_.word(kLanes), [&](LLVMValueRef column) {
        accumulate_rows(batch, block, group, group_end, column, 1, tail_at(column, end));
      });
    });
    ir_.return_void();
  }

  void emit_finish_function() {
    const std::array parameters = {ir_.pointer, ir_.i64, ir_.i64, ir_.i64, ir_.pointer};
    ir_.begin_function(kColumnFinishFunction, parameters, nullptr, false);
    BodyEmitter body(ir_, program_, ir_.parameter(0));
    start(body, ir_.parameter(4));
    RowWalk batch = walk_batches();
    const LLVMValueRef begin = ir_.parameter(2), end = ir_.parameter(3);
    combine_blocks(begin, end);
    const std::vector<LLVMValueRef> addresses = batch.addresses();
    ir_.loop(begin, end, ir_.word(kLanes), [&](LLVMValueRef column) {
      finish_piece({.addresses = addresses, .position = column, .tail = tail_at(column, end)});
    });
    ir_.return_void();
  }

 private:
  const Instruction& at(int32_t i) const { return program_.body[static_cast<size_t>(i)]; }
  int kept_rank() const { return program_.outer_rank - program_.reduced_rank; }

  void start(BodyEmitter& body, LLVMValueRef scratch) {
    body_ = &body;
    scratch_ = scratch;
    body.emit_uniform();
    row_count_ = ir_.word(1);
    for (int axis = kept_rank(); axis < program_.outer_rank; ++axis) {
      row_count_ = ir_.mul(row_count_, body.extent(axis));
    }
    block_count_ = ir_.lshr(ir_.add(row_count_, ir_.word(kRowBlock - 1)), 6);
    panel_length_ =
        ir_.bit_and(ir_.add(body.extent(program_.outer_rank), ir_.word(kColumnPanel - 1)),
                    ir_.word(-kColumnPanel));
  }

  RowWalk walk_batches() {
    std::vector<LLVMValueRef> bases;
    for (int i = 0; i < static_cast<int>(program_.buffers.size()); ++i) {
      bases.push_back(body_->base(i));
    }
    return RowWalk(ir_, *body_, 0, kept_rank(), bases, ir_.parameter(1));
  }

  Tail tail_at(LLVMValueRef position, LLVMValueRef end) {
    const LLVMValueRef rest = ir_.sub(end, position);
    return make_tail(ir_, ir_.intrinsic("llvm.smin", {rest, ir_.word(kLanes)}));
  }

  // Addresses and positions of the block's rows, so that the loops over columns need no odometer.
  void tabulate_rows(RowWalk& batch, LLVMValueRef first_row, LLVMValueRef rows,
                     LLVMValueRef first_column) {
    const auto buffers = static_cast<int64_t>(program_.buffers.size());
    entry_words_ = buffers + program_.reduced_rank;
    table_ = ir_.stack_slot(ir_.i64, kRowBlock * entry_words_, 64);
    // A block begins within the extents even if the walk is not taken (there are no rows then).
    RowWalk walk(ir_, *body_, kept_rank(), program_.outer_rank, batch.addresses(), first_row);
    ir_.loop(ir_.word(0), rows, ir_.word(1), [&](LLVMValueRef row) {
      const std::vector<LLVMValueRef> addresses = walk.addresses();
      for (int64_t i = 0; i < buffers; ++i) {
        ir_.store(addresses[static_cast<size_t>(i)], table_entry(row, i), 8);
      }
      for (int axis = kept_rank(); axis < program_.outer_rank; ++axis) {
        ir_.store(walk.position(axis), table_entry(row, buffers + axis - kept_rank()), 8);
      }
      if (has_row_stores()) {
        ir_.if_then(ir_.icmp(LLVMIntEQ, first_column, ir_.word(0)),
                    [&] { store_row_values(batch, row); });
      }
      walk.advance(ir_.word(1));
    });
  }
  LLVMValueRef table_entry(LLVMValueRef row, int64_t word) {
    const LLVMValueRef index = ir_.add(ir_.mul(row, ir_.word(entry_words_)), ir_.word(word));
    return ir_.address(table_, ir_.mul(index, ir_.word(8)));
  }

  bool is_row_store(int32_t i) const {
    return at(i).opcode == Opcode::Store &&
           program_.buffers[static_cast<size_t>(at(i).index)].vector_stride == VectorStride::Zero;
  }
  bool has_row_stores() const {
    for (int32_t i = 0; i < static_cast<int32_t>(program_.body.size()); ++i) {
      if (is_row_store(i)) return true;
    }
    return false;
  }
  void store_row_values(RowWalk& batch, LLVMValueRef row) {
    const std::vector<LLVMValueRef> addresses = emit_row_values(batch, row);
    for (int32_t i = 0; i < static_cast<int32_t>(program_.body.size()); ++i) {
      if (is_row_store(i)) body_->store_row_value(i, addresses);
    }
  }

  // The values of one tabulated row; gives the row's addresses.
  std::vector<LLVMValueRef> emit_row_values(RowWalk& batch, LLVMValueRef row) {
    const auto buffers = static_cast<int64_t>(program_.buffers.size());
    std::vector<LLVMValueRef> addresses;
    for (int64_t i = 0; i < buffers; ++i) {
      addresses.push_back(ir_.load(ir_.pointer, table_entry(row, i), 8));
    }
    std::vector<LLVMValueRef> positions;
    for (int axis = 0; axis < program_.outer_rank; ++axis) {
      positions.push_back(
          axis < kept_rank()
              ? batch.position(axis)
              : ir_.load(ir_.i64, table_entry(row, buffers + axis - kept_rank()), 8));
    }
    for (int32_t i = 0; i < static_cast<int32_t>(program_.body.size()); ++i) {
      if (places_[static_cast<size_t>(i)] != Place::Row || at(i).opcode == Opcode::Store) continue;
      body_->emit_row_value(i, addresses, positions);
    }
    return addresses;
  }

  LLVMValueRef partial_address(LLVMValueRef block, size_t reduction, LLVMValueRef column) {
    int64_t bytes_before = 0;
    for (size_t k = 0; k < reduction; ++k) bytes_before += partial_bytes(at(reductions_[k]).dtype);
    const int64_t all = column_partial_bytes(program_);
    const LLVMValueRef block_number = ir_.add(ir_.mul(ir_.parameter(1), block_count_), block);
    const LLVMValueRef rows_before =
        ir_.add(ir_.mul(block_number, ir_.word(all)), ir_.word(bytes_before));
    const LLVMValueRef offset =
        ir_.mul(column, ir_.word(partial_bytes(at(reductions_[reduction]).dtype)));
    return ir_.address(scratch_, ir_.add(ir_.mul(rows_before, panel_length_), offset));
  }
  LLVMValueRef load_partial(LLVMValueRef block, size_t reduction, LLVMValueRef column) {
    const DType dtype = compute_dtype(at(reductions_[reduction]).dtype);
    const LLVMTypeRef type = Ir::vector(storage_type(ir_, dtype));
    Value value = {.stored = ir_.load(type, partial_address(block, reduction, column), 1)};
    return computed(ir_, dtype, value);
  }
  void store_partial(LLVMValueRef partial, LLVMValueRef block, size_t reduction,
                     LLVMValueRef column) {
    Value value = {.computed = partial};
    const DType dtype = compute_dtype(at(reductions_[reduction]).dtype);
    ir_.store(stored(ir_, dtype, value), partial_address(block, reduction, column), 1);
  }

  void fill_partials(LLVMValueRef block, LLVMValueRef begin, LLVMValueRef end) {
    ir_.loop(begin, end, ir_.word(kLanes), [&](LLVMValueRef column) {
      for (size_t k = 0; k < reductions_.size(); ++k) {
        const Instruction& reduction = at(reductions_[k]);
        const LLVMTypeRef type = Ir::vector(compute_type(ir_, reduction.dtype));
        store_partial(reduction_identity(ir_, reduction.opcode, reduction.dtype, type), block, k,
                      column);
      }
    });
  }

  // Adds the rows [group, group_end) of the block to the partial results of some pieces' columns.
  void accumulate_rows(RowWalk& batch, LLVMValueRef block, LLVMValueRef group,
                       LLVMValueRef group_end, LLVMValueRef column, int64_t pieces,
                       const Tail& tail) {
    const auto piece_column = [&](int64_t piece) {
      return ir_.add(column, ir_.word(piece * kLanes));
    };
    Ir::Values initial;
    for (int64_t piece = 0; piece < pieces; ++piece) {
      for (size_t k = 0; k < reductions_.size(); ++k) {
        initial.push_back(load_partial(block, k, piece_column(piece)));
      }
    }
    const Ir::Values sums = ir_.loop(
        group, group_end, ir_.word(1), initial, [&](LLVMValueRef row, const Ir::Values& carried) {
          const std::vector<LLVMValueRef> addresses = emit_row_values(batch, row);
          Ir::Values updated = carried;
          for (int64_t piece = 0; piece < pieces; ++piece) {
            const PieceFrame frame = {
                .addresses = addresses, .position = piece_column(piece), .tail = tail};
            const Ir::Values operands = emit_piece(frame);
            for (size_t k = 0; k < reductions_.size(); ++k) {
              LLVMValueRef& sum = updated[static_cast<size_t>(piece) * reductions_.size() + k];
              const Instruction& reduction = at(reductions_[k]);
              sum = reduction_step(ir_, reduction.opcode, reduction.dtype, sum, operands[k]);
            }
          }
          return updated;
        });
    for (int64_t piece = 0; piece < pieces; ++piece) {
      for (size_t k = 0; k < reductions_.size(); ++k) {
        store_partial(sums[static_cast<size_t>(piece) * reductions_.size() + k], block, k,
                      piece_column(piece));
      }
    }
  }

  // Element values and stores of one piece of a row; gives each reduction's operand.
  Ir::Values emit_piece(const PieceFrame& frame) {
    std::vector<Value> values(program_.body.size());
    const auto count = static_cast<int32_t>(program_.body.size());
    for (const bool loads : {true, false}) {
      for (int32_t i = 0; i < count; ++i) {
        if (places_[static_cast<size_t>(i)] != Place::Element || at(i).opcode == Opcode::Store) {
          continue;
        }
        if ((at(i).opcode == Opcode::Load) == loads) body_->emit_element_value(i, frame, values);
      }
    }
    for (int32_t i = 0; i < count; ++i) {
      if (at(i).opcode == Opcode::Store && !is_row_store(i) &&
          places_[static_cast<size_t>(i)] != Place::Column) {
        body_->store_element(i, frame, values);
      }
    }
    Ir::Values operands;
    for (const int32_t i : reductions_) {
      operands.push_back(body_->element(at(i).operands[0], values));
    }
    return operands;
  }

  // Adds block i + distance to block i for distances 1, 2, 4, ...; block 0 ends with the result.
  void combine_blocks(LLVMValueRef begin, LLVMValueRef end) {
    const LLVMValueRef one = ir_.word(1);
    // The number of distances: the least n with 2^n >= block_count.
    const LLVMValueRef levels = ir_.sub(
        ir_.word(64), ir_.intrinsic("llvm.ctlz", {ir_.i64},
                                    {ir_.sub(ir_.intrinsic("llvm.smax", {block_count_, one}), one),
                                     ir_.integer(ir_.i1, 0)}));
    ir_.loop(ir_.word(0), levels, one, [&](LLVMValueRef level) {
      const LLVMValueRef distance = LLVMBuildShl(ir_.builder(), one, level, "");
      const LLVMValueRef step = LLVMBuildShl(ir_.builder(), distance, one, "");
      ir_.loop(ir_.word(0), ir_.sub(block_count_, distance), step, [&](LLVMValueRef block) {
        const LLVMValueRef partner = ir_.add(block, distance);
        ir_.loop(begin, end, ir_.word(kLanes), [&](LLVMValueRef column) {
          for (size_t k = 0; k < reductions_.size(); ++k) {
            const Instruction& reduction = at(reductions_[k]);
            store_partial(
                reduction_step(ir_, reduction.opcode, reduction.dtype,
                               load_partial(block, k, column), load_partial(partner, k, column)),
                block, k, column);
          }
        });
      });
    });
  }

  void finish_piece(const PieceFrame& frame) {
    std::vector<Value> values(program_.body.size());
    const LLVMValueRef any_row = ir_.icmp(LLVMIntSGT, row_count_, ir_.word(0));
    for (size_t k = 0; k < reductions_.size(); ++k) {
      const Instruction& reduction = at(reductions_[k]);
      const LLVMValueRef empty = ir_.splat(empty_reduction(ir_, reduction.opcode, reduction.dtype));
      const Ir::Values result = ir_.if_then(any_row, {empty}, [&] {
        return Ir::Values{load_partial(ir_.word(0), k, frame.position)};
      });
      values[static_cast<size_t>(reductions_[k])] = rounded(ir_, reduction.dtype, result[0]);
    }
    const auto count = static_cast<int32_t>(program_.body.size());
    for (int32_t i = 0; i < count; ++i) {
      if (places_[static_cast<size_t>(i)] != Place::Column || is_reduction(at(i).opcode)) continue;
      if (at(i).opcode != Opcode::Store) body_->emit_element_value(i, frame, values);
    }
    for (int32_t i = 0; i < count; ++i) {
      if (at(i).opcode == Opcode::Store && places_[static_cast<size_t>(i)] == Place::Column) {
        body_->store_element(i, frame, values);
      }
    }
  }

  Ir& ir_;
  const Program& program_;
  std::vector<Place> places_;
  std::vector<int32_t> reductions_;
  BodyEmitter* body_ = nullptr;
  LLVMValueRef scratch_ = nullptr;
  LLVMValueRef row_count_ = nullptr;
  LLVMValueRef block_count_ = nullptr;
  LLVMValueRef panel_length_ = nullptr;
  LLVMValueRef table_ = nullptr;
  int64_t entry_words_ = 0;
};

}  // namespace

int64_t column_partial_bytes(const Program& program) {
  int64_t bytes = 0;
  for (const Instruction& instruction : program.body) {
    if (is_reduction(instruction.opcode)) bytes += partial_bytes(instruction.dtype);
  }
  return bytes;
}

void emit_columns(Ir& ir, const Program& program) {
  ColumnEmitter emitter(ir, program);
  emitter.emit_block_function();
  emitter.emit_finish_function();
}

}  // namespace lamella::tile
