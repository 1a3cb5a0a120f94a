// The walk over a program's domain that both interpreters share: rows, blocks and trees, without
// knowing how values are represented.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "lamella/tile/opcode.h"
#include "lamella/tile/program.h"

namespace lamella::tile {

// Machine gives `Value` and, without state:
//   load(dtype, address), store(dtype, value, address), scalar(dtype, word), constant(instruction),
//   position(int64), apply(instruction, operand values, operand dtypes),
//   widen(dtype, value): the form in which a reduction accumulates; step(instruction, a, b);
//   round(instruction, accumulated), empty(instruction).
template <typename Machine>
class DomainWalk {
 public:
  using Value = typename Machine::Value;

  DomainWalk(const Program& program, const Launch& launch)
      : program_(program),
        launch_(launch),
        places_(places(program)),
        length_(launch.extents.back()),
        scalars_(program.body.size()),
        rows_(program.body.size()) {}

  void run() {
    if (program_.reduction == Reduction::Columns) return run_columns();
    std::vector<int64_t> position(static_cast<size_t>(program_.outer_rank), 0);
    const int64_t rows = count(0, program_.outer_rank);
    for (int64_t row = 0; row < rows; ++row) {
      run_row(position, false);
      advance(position, 0, program_.outer_rank);
    }
  }

 private:
  const Instruction& at(size_t i) const { return program_.body[i]; }
  Place place(size_t i) const { return places_[i]; }

  int64_t count(int first_axis, int last_axis) const {
    int64_t result = 1;
    for (int axis = first_axis; axis < last_axis; ++axis) {
      result *= launch_.extents[static_cast<size_t>(axis)];
    }
    return result;
  }
  void advance(std::vector<int64_t>& position, int first_axis, int last_axis) const {
    for (int axis = last_axis - 1; axis >= first_axis; --axis) {
      const auto index = static_cast<size_t>(axis);
      if (++position[index] < launch_.extents[index]) return;
      position[index] = 0;
    }
  }
  char* address(int32_t buffer, const std::vector<int64_t>& position, int64_t element) const {
    const Launch::Buffer& argument = launch_.buffers[static_cast<size_t>(buffer)];
    int64_t offset = element * argument.strides.back();
    for (size_t axis = 0; axis < position.size(); ++axis) {
      offset += position[axis] * argument.strides[axis];
    }
    const DType dtype = program_.buffers[static_cast<size_t>(buffer)].dtype;
    return static_cast<char*>(argument.data) + offset * size_of(dtype);
  }

  // Values of a whole row, or one for all.
  Value value(size_t i, int64_t element) const {
    return place(i) >= Place::Column ? rows_[i][static_cast<size_t>(element)] : scalars_[i];
  }

  Value evaluate(size_t i, const std::vector<int64_t>& position, int64_t element) const {
    const Instruction& instruction = at(i);
    switch (instruction.opcode) {
      case Opcode::Load:
        return Machine::load(instruction.dtype, address(instruction.index, position, element));
      case Opcode::Scalar:
        return Machine::scalar(instruction.dtype,
                               launch_.scalars[static_cast<size_t>(instruction.index)]);
      case Opcode::Constant:
        return Machine::constant(instruction);
      case Opcode::Iota:
        return Machine::position(instruction.index == program_.outer_rank
                                     ? element
                                     : position[static_cast<size_t>(instruction.index)]);
      default:
        break;
    }
    std::array<Value, 3> operands{};
    std::array<DType, 3> dtypes{};
    const auto operand_total = static_cast<size_t>(operand_count(instruction.opcode));
    for (size_t k = 0; k < operand_total; ++k) {
      const auto operand = static_cast<size_t>(instruction.operands[k]);
      operands[k] = value(operand, element);
      dtypes[k] = at(operand).dtype;
    }
    return Machine::apply(instruction, std::span(operands).first(operand_total),
                          std::span(dtypes).first(operand_total));
  }

  void evaluate_everywhere(size_t i, const std::vector<int64_t>& position) {
    if (place(i) < Place::Column) {
      scalars_[i] = evaluate(i, position, 0);
      return;
    }
    rows_[i].resize(static_cast<size_t>(length_));
    for (int64_t element = 0; element < length_; ++element) {
      rows_[i][static_cast<size_t>(element)] = evaluate(i, position, element);
    }
  }

  void store_everywhere(size_t i, const std::vector<int64_t>& position) {
    const Instruction& instruction = at(i);
    const auto& buffer = program_.buffers[static_cast<size_t>(instruction.index)];
    const int64_t elements = buffer.vector_stride == VectorStride::Zero ? 1 : length_;
    for (int64_t element = 0; element < elements; ++element) {
      Machine::store(instruction.dtype,
                     value(static_cast<size_t>(instruction.operands[0]), element),
                     address(instruction.index, position, element));
    }
  }

  // All instructions of one row; in column programs those before the reductions' results.
  void run_row(const std::vector<int64_t>& position, bool skip_columns) {
    for (size_t i = 0; i < program_.body.size(); ++i) {
      if (at(i).opcode == Opcode::Store || (skip_columns && place(i) == Place::Column)) continue;
      if (is_reduction(at(i).opcode)) {
        scalars_[i] = reduce_row(i);
      } else {
        evaluate_everywhere(i, position);
      }
    }
    for (size_t i = 0; i < program_.body.size(); ++i) {
      if (at(i).opcode != Opcode::Store || (skip_columns && place(i) == Place::Column)) continue;
      store_everywhere(i, position);
    }
  }

  // Results of the parts [first, first + parts) of a reduction, combined pairwise: the left half is
  // the larger power of two.
  static Value combine_parts(const Instruction& reduction, std::span<const Value> parts) {
    if (parts.size() == 1) return parts[0];
    size_t half = 1;
    while (half * 2 < parts.size()) half *= 2;
    return Machine::step(reduction, combine_parts(reduction, parts.first(half)),
                         combine_parts(reduction, parts.subspan(half)));
  }

  Value operand_of(size_t reduction, int64_t element) const {
    const auto operand = static_cast<size_t>(at(reduction).operands[0]);
    return Machine::widen(at(operand).dtype, value(operand, element));
  }

  Value reduce_row(size_t i) const {
    constexpr int64_t kChunk = 4096;
    const Instruction& reduction = at(i);
    if (length_ == 0) return Machine::empty(reduction);
    std::vector<Value> chunks;
    for (int64_t begin = 0; begin < length_; begin += kChunk) {
      chunks.push_back(reduce_chunk(i, begin, std::min(length_, begin + kChunk)));
    }
    return Machine::round(reduction, combine_parts(reduction, chunks));
  }

  Value reduce_chunk(size_t i, int64_t begin, int64_t end) const {
    const auto present = static_cast<size_t>(std::min<int64_t>(end - begin, 64));
    std::vector<Value> lanes(present);
    for (int64_t element = begin; element < end; ++element) {
      const auto lane = static_cast<size_t>((element - begin) % 64);
      const Value operand = operand_of(i, element);
      lanes[lane] = element - begin < 64 ? operand : Machine::step(at(i), lanes[lane], operand);
    }
    for (size_t half = 32; half >= 1; half /= 2) {
      for (size_t lane = 0; lane < half && lane + half < lanes.size(); ++lane) {
        lanes[lane] = Machine::step(at(i), lanes[lane], lanes[lane + half]);
      }
      if (lanes.size() > half) lanes.resize(half);
    }
    return lanes[0];
  }

  void run_columns() {
    const int kept = program_.outer_rank - program_.reduced_rank;
    std::vector<int64_t> batch(static_cast<size_t>(program_.outer_rank), 0);
    const int64_t batches = count(0, kept);
    for (int64_t i = 0; i < batches; ++i) {
      reduce_columns(batch, kept);
      advance(batch, 0, kept);
    }
  }

  void reduce_columns(const std::vector<int64_t>& batch, int kept) {
    constexpr int64_t kBlock = 64;
    std::vector<size_t> reductions;
    for (size_t i = 0; i < program_.body.size(); ++i) {
      if (is_reduction(at(i).opcode)) reductions.push_back(i);
    }
    // partials[reduction][column][block]
    std::vector<std::vector<std::vector<Value>>> partials(
        reductions.size(), std::vector<std::vector<Value>>(static_cast<size_t>(length_)));
    std::vector<int64_t> position = batch;
    const int64_t rows = count(kept, program_.outer_rank);
    for (int64_t row = 0; row < rows; ++row) {
      run_row(position, true);
      for (size_t k = 0; k < reductions.size(); ++k) {
        for (int64_t column = 0; column < length_; ++column) {
          auto& blocks = partials[k][static_cast<size_t>(column)];
          const Value operand = operand_of(reductions[k], column);
          if (row % kBlock == 0) {
            blocks.push_back(operand);
          } else {
            blocks.back() = Machine::step(at(reductions[k]), blocks.back(), operand);
          }
        }
      }
      advance(position, kept, program_.outer_rank);
    }
    for (size_t k = 0; k < reductions.size(); ++k) {
      const Instruction& reduction = at(reductions[k]);
      rows_[reductions[k]].resize(static_cast<size_t>(length_));
      for (size_t column = 0; column < static_cast<size_t>(length_); ++column) {
        const auto& blocks = partials[k][column];
        rows_[reductions[k]][column] =
            blocks.empty() ? Machine::empty(reduction)
                           : Machine::round(reduction, combine_parts(reduction, blocks));
      }
    }
    finish_columns(batch);
  }

  void finish_columns(const std::vector<int64_t>& batch) {
    for (size_t i = 0; i < program_.body.size(); ++i) {
      // Uniform values are not known yet if there was no row.
      if (at(i).opcode == Opcode::Store || is_reduction(at(i).opcode)) continue;
      if (place(i) == Place::Uniform || place(i) == Place::Column) evaluate_everywhere(i, batch);
    }
    for (size_t i = 0; i < program_.body.size(); ++i) {
      if (at(i).opcode == Opcode::Store && place(i) == Place::Column) store_everywhere(i, batch);
    }
  }

  const Program& program_;
  const Launch& launch_;
  std::vector<Place> places_;
  int64_t length_;
  std::vector<Value> scalars_;
  std::vector<std::vector<Value>> rows_;
};

}  // namespace lamella::tile
