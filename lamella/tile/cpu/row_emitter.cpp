// The loops of a row program: rows, passes over a row, chunks, steps of 64 elements, the rest; or
// blocks of rows side by side.
#include "lamella/tile/cpu/row_emitter.h"

#include <algorithm>

#include "lamella/tile/cpu/reduction_tree.h"
#include "lamella/tile/cpu/row_walk.h"
#include "lamella/tile/opcode.h"

namespace lamella::tile {

namespace {

class RowEmitter {
 public:
  RowEmitter(Ir& ir, const Program& program, const RowSchedule& schedule)
      : ir_(ir), program_(program), schedule_(schedule) {}

  void emit_row_function() {
    const std::array parameters = {ir_.pointer, ir_.i64, ir_.i64, ir_.i64, ir_.i64, ir_.pointer};
    ir_.begin_function(kRowFunction, parameters, nullptr, false);
    BodyEmitter body(ir_, program_, ir_.parameter(0));
    start(body);
    RowWalk walk = walk_rows();
    if (runs_in_row_blocks(program_)) {
      emit_row_blocks(walk);
    } else {
      ir_.loop(ir_.parameter(1), ir_.parameter(2), ir_.word(1), [&](LLVMValueRef) {
        emit_row(walk);
        walk.advance(ir_.word(1));
      });
    }
    if (std::any_of(program_.buffers.begin(), program_.buffers.end(),
                    [](const BufferParameter& buffer) { return buffer.streamed; })) {
      ir_.fence();
    }
    ir_.return_void();
  }

  // The partial results of some chunks of one row, into memory.
  void emit_chunk_function() {
    const std::array parameters = {ir_.pointer, ir_.i64, ir_.i64, ir_.i64, ir_.pointer};
    ir_.begin_function(kRowChunkFunction, parameters, nullptr, false);
    BodyEmitter body(ir_, program_, ir_.parameter(0));
    start(body);
    RowWalk walk = walk_rows();
    stand_at(walk);
    emit_row_values(0);
    ir_.loop(ir_.parameter(2), ir_.parameter(3), ir_.word(1), [&](LLVMValueRef chunk) {
      const LLVMValueRef begin = ir_.mul(chunk, ir_.word(kChunk));
      const Ir::Values partials = emit_chunk(schedule_.passes[0], 0, begin);
      for (size_t k = 0; k < partials.size(); ++k) {
        ir_.store(partials[k], partial_address(chunk, k, partials.size()), 1);
      }
    });
    ir_.return_void();
  }

  // The rest of the row, from all chunks' partial results.
  void emit_finish_function() {
    const std::array parameters = {ir_.pointer, ir_.i64, ir_.i64, ir_.pointer};
    ir_.begin_function(kRowFinishFunction, parameters, nullptr, false);
    BodyEmitter body(ir_, program_, ir_.parameter(0));
    start(body);
    RowWalk walk = walk_rows();
    stand_at(walk);
    emit_row_values(0);
    const RowPass& pass = schedule_.passes[0];
    for (PairwiseStack& stack : stacks_) stack.clear();
    ir_.loop(ir_.word(0), ir_.parameter(2), ir_.word(1), [&](LLVMValueRef chunk) {
      for (size_t k = 0; k < pass.reductions.size(); ++k) {
        const LLVMTypeRef type = compute_type(ir_, at(pass.reductions[k]).dtype);
        stacks_[k].push(chunk, ir_.load(type, partial_address(chunk, k, stacks_.size()), 1));
      }
    });
    finish_reductions(pass);
    emit_row_values(1);
    store_row_values();
    ir_.return_void();
  }

 private:
  const Instruction& at(int32_t i) const { return program_.body[static_cast<size_t>(i)]; }

  // The parts all functions begin with.
  void start(BodyEmitter& body) {
    body_ = &body;
    length_ = body.extent(program_.outer_rank);
    scratch_length_ = ir_.bit_and(ir_.add(length_, ir_.word(63)), ir_.word(-64));
    body.emit_uniform();
    stacks_.clear();
    for (const Instruction& instruction : program_.body) {
      if (!is_reduction(instruction.opcode)) continue;
      stacks_.emplace_back(ir_, instruction.opcode, instruction.dtype);
    }
  }
  RowWalk walk_rows() {
    std::vector<LLVMValueRef> bases;
    for (int i = 0; i < static_cast<int>(program_.buffers.size()); ++i) {
      bases.push_back(body_->base(i));
    }
    return RowWalk(ir_, *body_, 0, program_.outer_rank, bases, ir_.parameter(1));
  }
  void stand_at(RowWalk& walk) {
    addresses_ = walk.addresses();
    outer_position_.clear();
    for (int axis = 0; axis < program_.outer_rank; ++axis) {
      outer_position_.push_back(walk.position(axis));
    }
  }
  LLVMValueRef partial_address(LLVMValueRef chunk, size_t reduction, size_t reductions) {
    const LLVMValueRef index = ir_.add(ir_.mul(chunk, ir_.word(static_cast<int64_t>(reductions))),
                                       ir_.word(static_cast<int64_t>(reduction)));
    const LLVMValueRef memory = LLVMGetLastParam(ir_.function());
    return ir_.address(memory, ir_.mul(index, ir_.word(kPartialBytes)));
  }

  void emit_row(RowWalk& walk) {
    stand_at(walk);
    emit_row_values(0);
    for (size_t number = 0; number < schedule_.passes.size(); ++number) {
      const RowPass& pass = schedule_.passes[number];
      for (const Pick& pick : pass.picks) emit_pick(pick, number);
      if (!pass.reductions.empty()) {
        emit_reducing_pass(pass, number);
      } else if (!pass.stores.empty()) {
        emit_elementwise_pass(pass, number);
      }
      emit_row_values(static_cast<int>(number) + 1);
    }
    store_row_values();
  }

  void emit_pick(const Pick& pick, size_t number) {
    const Instruction& sum = at(pick.sum);
    const LLVMValueRef position = body_->scalar(pick.position);
    const LLVMValueRef none = empty_reduction(ir_, sum.opcode, sum.dtype);
    const Ir::Values picked = ir_.if_then(ir_.icmp(LLVMIntULT, position, length_), {none}, [&] {
      const PieceFrame frame = {
          .addresses = addresses_, .position = position, .tail = make_tail(ir_, ir_.word(1))};
      const std::vector<Value> values = evaluate(pick.evaluated, number, frame, frame.tail);
      return Ir::Values{ir_.extract(body_->element(pick.value, values), 0)};
    });
    LLVMValueRef result = picked[0];
    if (is_float(sum.dtype)) {
      // The others are zeros, which turn -0 into 0.
      const LLVMTypeRef type = LLVMTypeOf(result);
      const LLVMValueRef alone = ir_.icmp(LLVMIntEQ, length_, ir_.word(1));
      result = ir_.fadd(result, ir_.select(alone, ir_.real(type, -0.0), ir_.real(type, 0)));
    }
    body_->set_row_value(pick.sum, rounded(ir_, sum.dtype, result));
  }

  // Blocks of rows, piece by piece of the block: what is not adjacent along the rows is likely to
  // be adjacent from row to row, and then each line of it is read once. A loop has steps of one
  // length, blocks have not, so it passes over the rows that the last block has done.
  void emit_row_blocks(RowWalk& walk) {
    const int axis = program_.outer_rank - 1;
    const LLVMValueRef slot = ir_.stack_slot(ir_.i64, 1, 8);
    ir_.store(ir_.parameter(1), slot, 8);
    ir_.loop(ir_.parameter(1), ir_.parameter(2), ir_.word(1), [&](LLVMValueRef row) {
      const LLVMValueRef next = ir_.load(ir_.i64, slot, 8);
      ir_.if_then(ir_.icmp(LLVMIntEQ, row, next), [&] {
        stand_at(walk);
        const LLVMValueRef left = ir_.intrinsic(
            "llvm.smin",
            {ir_.sub(ir_.parameter(2), row), ir_.sub(body_->extent(axis), outer_position_.back())});
        const LLVMValueRef count = ir_.intrinsic("llvm.smin", {left, ir_.word(kRowsOfBlock)});
        emit_row_block(count);
        walk.advance(count);
        ir_.store(ir_.add(row, count), slot, 8);
      });
    });
  }
  void emit_row_block(LLVMValueRef count) {
    const int axis = program_.outer_rank - 1;
    const auto first_addresses = addresses_;
    const LLVMValueRef first_position = outer_position_.back();
    const LLVMValueRef end = ir_.parameter(4);
    // A row's own values are made again for every piece: few programs have any, and cheap ones.
    const auto for_rows = [&](FunctionRef<void()> body) {
      ir_.loop(ir_.word(0), count, ir_.word(1), [&](LLVMValueRef row) {
        for (size_t i = 0; i < addresses_.size(); ++i) {
          const LLVMValueRef stride = body_->stride(static_cast<int>(i), axis);
          addresses_[i] = ir_.address(first_addresses[i], ir_.mul(row, stride));
        }
        outer_position_.back() = ir_.add(first_position, row);
        emit_row_values(0);
        body();
      });
    };
    for (const RowPass& pass : schedule_.passes) {  // at most one, without reductions
      const LLVMValueRef whole = rounded_down(ir_.parameter(3), end, kLanes);
      ir_.loop(ir_.parameter(3), whole, ir_.word(kLanes), [&](LLVMValueRef position) {
        for_rows([&] { emit_piece(pass, 0, position, {}); });
      });
      ir_.loop(whole, end, ir_.word(kLanes), [&](LLVMValueRef position) {
        for_rows([&] { emit_piece(pass, 0, position, tail_at(position, end)); });
      });
    }
    for_rows([&] { store_row_values(); });
  }

  void store_row_values() {
    for (int32_t i = 0; i < static_cast<int32_t>(program_.body.size()); ++i) {
      if (at(i).opcode != Opcode::Store) continue;
      const auto& buffer = program_.buffers[static_cast<size_t>(at(i).index)];
      if (buffer.vector_stride == VectorStride::Zero) body_->store_row_value(i, addresses_);
    }
  }

  void emit_row_values(int level) {
    for (int32_t i = 0; i < static_cast<int32_t>(program_.body.size()); ++i) {
      const auto index = static_cast<size_t>(i);
      if (schedule_.places[index] != Place::Row || schedule_.level[index] != level) continue;
      if (at(i).opcode == Opcode::Store || is_reduction(at(i).opcode)) continue;
      body_->emit_row_value(i, addresses_, outer_position_);
    }
  }

  LLVMValueRef kept_address(int32_t value, LLVMValueRef position) {
    const auto slot = schedule_.slot[static_cast<size_t>(value)];
    int64_t bytes_before = 0;
    for (int32_t i = 0; i < slot; ++i) {
      bytes_before += size_of(schedule_.slot_dtypes[static_cast<size_t>(i)]);
    }
    const LLVMValueRef start = ir_.mul(scratch_length_, ir_.word(bytes_before));
    const LLVMValueRef offset = ir_.mul(position, ir_.word(size_of(at(value).dtype)));
    return ir_.address(ir_.parameter(5), ir_.add(start, offset));
  }

  // Element values of one piece in a pass. Scratch rows are as long as whole pieces; `kept_tail` is
  // for a piece that may begin anywhere.
  std::vector<Value> evaluate(const std::vector<int32_t>& wanted, size_t number,
                              const PieceFrame& frame, const Tail& kept_tail) {
    std::vector<Value> values(program_.body.size());
    for (const int32_t i : wanted) {
      if (schedule_.is_kept_before(i, number)) {
        const LLVMValueRef address = kept_address(i, frame.position);
        values[static_cast<size_t>(i)] = {
            .stored = load_piece(ir_, storage_type(ir_, at(i).dtype), address, kept_tail)};
      } else {
        body_->emit_element_value(i, frame, values);
      }
    }
    return values;
  }

  // Evaluates one piece of a pass; gives each reduction's operand.
  Ir::Values emit_piece(const RowPass& pass, size_t number, LLVMValueRef position,
                        const Tail& tail) {
    const PieceFrame frame = {.addresses = addresses_, .position = position, .tail = tail};
    std::vector<Value> values = evaluate(pass.evaluated, number, frame, {});
    if (number == 1) prefetch_next_row(position);
    if (program_.reduction == Reduction::None && pieces_per_turn(pass) < kPieces) {
      prefetch_ahead(pass, position);
    }
    for (const int32_t i : pass.kept) {
      ir_.store(stored(ir_, at(i).dtype, values[static_cast<size_t>(i)]), kept_address(i, position),
                static_cast<unsigned>(size_of(at(i).dtype)));
    }
    for (const int32_t i : pass.stores) body_->store_element(i, frame, values);
    Ir::Values operands;
    for (const int32_t i : pass.reductions) {
      operands.push_back(body_->element(at(i).operands[0], values));
    }
    return operands;
  }
  // Programs of several passes wait for memory only in the first one; the second fetches ahead what
  // the first will read in the next row. (A second pass that is also the last one writes; there the
  // fetches were measured to be in its way.)
  void prefetch_next_row(LLVMValueRef position) {
    if (program_.outer_rank == 0 || schedule_.passes.size() < 3) return;
    prefetch_loads(schedule_.passes[0], position,
                   [&](int32_t buffer) { return body_->stride(buffer, program_.outer_rank - 1); });
  }
  // While the processor is busy with a long body it does not get to the next loads in time.
  void prefetch_ahead(const RowPass& pass, LLVMValueRef position) {
    constexpr int64_t kBytesAhead = 2048;
    prefetch_loads(pass, position, [&](int32_t) { return ir_.word(kBytesAhead); });
  }
  // What the pass loads, but `distance(buffer)` bytes further on.
  template <typename Distance>
  void prefetch_loads(const RowPass& pass, LLVMValueRef position, Distance distance) {
    for (const int32_t i : pass.evaluated) {
      const auto buffer = static_cast<size_t>(at(i).index);
      if (at(i).opcode != Opcode::Load ||
          program_.buffers[buffer].vector_stride != VectorStride::Unit) {
        continue;
      }
      const int64_t size = size_of(program_.buffers[buffer].dtype);
      const LLVMValueRef there = ir_.address(addresses_[buffer], distance(at(i).index));
      const LLVMValueRef first = ir_.address(there, ir_.mul(position, ir_.word(size)));
      for (int64_t byte = 0; byte < kLanes * size; byte += 64) {
        ir_.prefetch_for_reading(ir_.address(first, ir_.word(byte)));
      }
    }
  }

  // Short bodies are repeated to keep the loop's own cost small; long ones are not, for the sake of
  // compile time.
  int pieces_per_turn(const RowPass& pass) const {
    int total = 0;
    for (const int32_t i : pass.evaluated) total += instruction_cost(at(i));
    return total <= 12 ? 4 : total <= 40 ? 2 : 1;
  }
  // Whether one body, always masked, serves for complete and incomplete pieces: where masks cost
  // little and the body is long. (What is streamed cannot be masked.)
  bool always_masked(const RowPass& pass) const {
    const auto is_streamed = [&](int32_t store) {
      return program_.buffers[static_cast<size_t>(at(store).index)].streamed;
    };
    return ir_.set() == InstructionSet::Avx512 && pieces_per_turn(pass) == 1 &&
           std::none_of(pass.stores.begin(), pass.stores.end(), is_streamed);
  }
  LLVMValueRef rounded_down(LLVMValueRef begin, LLVMValueRef end, int64_t step) {
    return ir_.add(begin, ir_.bit_and(ir_.sub(end, begin), ir_.word(-step)));
  }

  void emit_elementwise_pass(const RowPass& pass, size_t number) {
    const bool cut = program_.reduction == Reduction::None;
    LLVMValueRef begin = cut ? ir_.parameter(3) : ir_.word(0);
    const LLVMValueRef end = cut ? ir_.parameter(4) : length_;
    if (!always_masked(pass)) {
      const int pieces = pieces_per_turn(pass);
      const LLVMValueRef whole = rounded_down(begin, end, pieces * kLanes);
      ir_.loop(begin, whole, ir_.word(pieces * kLanes), [&](LLVMValueRef i) {
        for (int64_t piece = 0; piece < pieces; ++piece) {
          emit_piece(pass, number, ir_.add(i, ir_.word(piece * kLanes)), {});
        }
      });
      begin = whole;
    }
    ir_.loop(begin, end, ir_.word(kLanes),
             [&](LLVMValueRef i) { emit_piece(pass, number, i, tail_at(i, end)); });
  }

  Tail tail_at(LLVMValueRef position, LLVMValueRef end) {
    const LLVMValueRef rest = ir_.sub(end, position);
    return make_tail(ir_, ir_.intrinsic("llvm.smin", {rest, ir_.word(kLanes)}));
  }

  void emit_reducing_pass(const RowPass& pass, size_t number) {
    for (const int32_t i : pass.reductions) stacks_[reduction_number(i)].clear();
    ir_.loop(ir_.word(0), length_, ir_.word(kChunk), [&](LLVMValueRef begin) {
      const Ir::Values partials = emit_chunk(pass, number, begin);
      const LLVMValueRef chunk = ir_.lshr(begin, 12);
      for (size_t k = 0; k < partials.size(); ++k) {
        stacks_[reduction_number(pass.reductions[k])].push(chunk, partials[k]);
      }
    });
    finish_reductions(pass);
  }

  void finish_reductions(const RowPass& pass) {
    for (const int32_t i : pass.reductions) {
      const Instruction& reduction = at(i);
      const LLVMValueRef empty = empty_reduction(ir_, reduction.opcode, reduction.dtype);
      const Ir::Values result =
          ir_.if_then(ir_.icmp(LLVMIntSGT, length_, ir_.word(0)), {empty},
                      [&] { return Ir::Values{stacks_[reduction_number(i)].finish()}; });
      body_->set_row_value(i, rounded(ir_, reduction.dtype, result[0]));
    }
  }

  size_t reduction_number(int32_t value) const {
    size_t number = 0;
    for (int32_t i = 0; i < value; ++i) number += is_reduction(at(i).opcode) ? 1 : 0;
    return number;
  }

  // One partial result a reduction, of the elements [begin, begin + 4096) of the row.
  Ir::Values emit_chunk(const RowPass& pass, size_t number, LLVMValueRef begin) {
    const LLVMValueRef end =
        ir_.intrinsic("llvm.smin", {length_, ir_.add(begin, ir_.word(kChunk))});
    Ir::Values lanes;
    for (const int32_t i : pass.reductions) {
      const LLVMTypeRef type = Ir::vector(compute_type(ir_, at(i).dtype));
      const LLVMValueRef identity = reduction_identity(ir_, at(i).opcode, at(i).dtype, type);
      lanes.insert(lanes.end(), static_cast<size_t>(kPieces), identity);
    }
    LLVMValueRef position = begin;
    if (pieces_per_turn(pass) == kPieces) {
      position = rounded_down(begin, end, kRowLanes);
      lanes = emit_whole_steps(pass, number, begin, position, lanes);
    }
    lanes = emit_pieces_in_turn(pass, number, position, end, lanes);
    Ir::Values partials;
    for (size_t k = 0; k < pass.reductions.size(); ++k) {
      const Instruction& reduction = at(pass.reductions[k]);
      partials.push_back(combine_lanes(ir_, reduction.opcode, reduction.dtype,
                                       std::span(lanes).subspan(k * kPieces, kPieces)));
    }
    return partials;
  }

  void accumulate(const RowPass& pass, const Ir::Values& operands, size_t piece,
                  Ir::Values& lanes) {
    for (size_t k = 0; k < operands.size(); ++k) {
      const Instruction& reduction = at(pass.reductions[k]);
      LLVMValueRef& lane = lanes[k * kPieces + piece];
      lane = reduction_step(ir_, reduction.opcode, reduction.dtype, lane, operands[k]);
    }
  }

  Ir::Values emit_whole_steps(const RowPass& pass, size_t number, LLVMValueRef begin,
                              LLVMValueRef end, const Ir::Values& lanes) {
    return ir_.loop(begin, end, ir_.word(kRowLanes), lanes,
                    [&](LLVMValueRef i, const Ir::Values& carried) {
                      Ir::Values updated = carried;
                      for (int64_t piece = 0; piece < kPieces; ++piece) {
                        const LLVMValueRef position = ir_.add(i, ir_.word(piece * kLanes));
                        const Ir::Values operands = emit_piece(pass, number, position, {});
                        accumulate(pass, operands, static_cast<size_t>(piece), updated);
                      }
                      return updated;
                    });
  }

  // One body for all accumulators: after each piece they move one place down, so that the next
  // piece's is in front. `begin` is where the first accumulator's piece begins.
  Ir::Values emit_pieces_in_turn(const RowPass& pass, size_t number, LLVMValueRef begin,
                                 LLVMValueRef end, Ir::Values lanes) {
    const LLVMValueRef pieces = ir_.lshr(ir_.add(ir_.sub(end, begin), ir_.word(kLanes - 1)), 4);
    LLVMValueRef position = begin;
    const bool whole_first = pieces_per_turn(pass) != kPieces && !always_masked(pass);
    if (whole_first) {
      position = rounded_down(begin, end, kLanes);
      lanes = ir_.loop(begin, position, ir_.word(kLanes), lanes,
                       [&](LLVMValueRef i, const Ir::Values& carried) {
                         Ir::Values updated = carried;
                         accumulate(pass, emit_piece(pass, number, i, {}), 0, updated);
                         return moved_down(updated);
                       });
    }
    lanes = ir_.loop(position, end, ir_.word(kLanes), lanes,
                     [&](LLVMValueRef i, const Ir::Values& carried) {
                       const Tail tail = tail_at(i, end);
                       Ir::Values updated = carried;
                       accumulate(pass, emit_piece(pass, number, i, tail), 0, updated);
                       for (size_t k = 0; k < updated.size(); k += kPieces) {
                         updated[k] = ir_.select(tail.mask, updated[k], carried[k]);
                       }
                       return moved_down(updated);
                     });
    // Back to their places: up by `pieces` modulo 4.
    for (const size_t distance : {size_t{1}, size_t{2}}) {
      const LLVMValueRef bit = ir_.bit_and(pieces, ir_.word(static_cast<int64_t>(distance)));
      const LLVMValueRef moves = ir_.icmp(LLVMIntNE, bit, ir_.word(0));
      Ir::Values moved = lanes;
      for (size_t k = 0; k < lanes.size(); ++k) {
        const size_t first = k / kPieces * kPieces;
        const size_t from = first + (k - first + kPieces - distance) % kPieces;
        moved[k] = ir_.select(moves, lanes[from], lanes[k]);
      }
      lanes = moved;
    }
    return lanes;
  }

  static Ir::Values moved_down(const Ir::Values& lanes) {
    Ir::Values moved = lanes;
    for (size_t first = 0; first < lanes.size(); first += kPieces) {
      std::rotate(moved.begin() + static_cast<ptrdiff_t>(first),
                  moved.begin() + static_cast<ptrdiff_t>(first) + 1,
                  moved.begin() + static_cast<ptrdiff_t>(first + kPieces));
    }
    return moved;
  }

  Ir& ir_;
  const Program& program_;
  const RowSchedule& schedule_;
  BodyEmitter* body_ = nullptr;
  LLVMValueRef length_ = nullptr;
  LLVMValueRef scratch_length_ = nullptr;
  std::vector<PairwiseStack> stacks_;
  std::vector<LLVMValueRef> addresses_;
  std::vector<LLVMValueRef> outer_position_;
};

}  // namespace

bool runs_in_row_blocks(const Program& program) {
  return program.reduction == Reduction::None && program.outer_rank > 0 &&
         std::any_of(program.buffers.begin(), program.buffers.end(),
                     [](const BufferParameter& buffer) {
                       return buffer.vector_stride == VectorStride::Any;
                     });
}

bool reduces_once(const Program& program, const RowSchedule& schedule) {
  return program.reduction == Reduction::Rows && schedule.passes.size() == 1 &&
         schedule.passes[0].stores.empty() && !schedule.passes[0].reductions.empty();
}

void emit_rows(Ir& ir, const Program& program, const RowSchedule& schedule) {
  RowEmitter emitter(ir, program, schedule);
  emitter.emit_row_function();
  if (!reduces_once(program, schedule)) return;
  emitter.emit_chunk_function();
  emitter.emit_finish_function();
}

}  // namespace lamella::tile
