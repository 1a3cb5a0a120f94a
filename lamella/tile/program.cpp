// The place of every value of a program, and the program's key.
#include "lamella/tile/program.h"

#include <algorithm>
#include <bit>

#include "lamella/tile/opcode.h"

namespace lamella::tile {

namespace {

Place place_of(const Program& program, const Instruction& instruction,
               const std::vector<Place>& places) {
  switch (instruction.opcode) {
    case Opcode::Scalar:
    case Opcode::Constant:
      return Place::Uniform;
    case Opcode::Load: {
      const auto& buffer = program.buffers[static_cast<size_t>(instruction.index)];
      return buffer.vector_stride == VectorStride::Zero ? Place::Row : Place::Element;
    }
    case Opcode::Iota:
      return instruction.index == program.outer_rank ? Place::Element : Place::Row;
    default:
      break;
  }
  if (is_reduction(instruction.opcode)) {
    return program.reduction == Reduction::Columns ? Place::Column : Place::Row;
  }
  Place place = Place::Uniform;
  for (int i = 0; i < operand_count(instruction.opcode); ++i) {
    place = std::max(place, places[static_cast<size_t>(instruction.operands[i])]);
  }
  return place;
}

}  // namespace

std::vector<Place> places(const Program& program) {
  std::vector<Place> result;
  result.reserve(program.body.size());
  for (const Instruction& instruction : program.body) {
    result.push_back(place_of(program, instruction, result));
  }
  return result;
}

Hash128 key(const Program& program) {
  Hasher hasher;
  const auto add = [&](auto value) { hasher.add(static_cast<uint64_t>(value)); };
  add(program.reduction);
  add(program.outer_rank);
  add(program.reduced_rank);
  add(program.buffers.size());
  for (const BufferParameter& buffer : program.buffers) {
    add(static_cast<uint64_t>(buffer.dtype) | static_cast<uint64_t>(buffer.access) << 8 |
        static_cast<uint64_t>(buffer.vector_stride) << 16 |
        static_cast<uint64_t>(buffer.streamed) << 24);
  }
  add(program.scalars.size());
  for (const DType scalar : program.scalars) add(scalar);
  add(program.body.size());
  for (const Instruction& instruction : program.body) {
    add(static_cast<uint64_t>(instruction.opcode) | static_cast<uint64_t>(instruction.dtype) << 8 |
        static_cast<uint64_t>(static_cast<uint32_t>(instruction.index)) << 16);
    for (const int32_t operand : instruction.operands) add(operand);
    add(std::bit_cast<uint64_t>(instruction.immediate));
    add(instruction.immediate_integer);
  }
  return hasher.digest();
}

int64_t elements_touched(const Launch& launch, size_t buffer) {
  int64_t elements = 1;
  const std::vector<int64_t>& strides = launch.buffers[buffer].strides;
  for (size_t axis = 0; axis < strides.size(); ++axis) {
    if (strides[axis] != 0) elements *= launch.extents[axis];
  }
  return elements;
}

}  // namespace lamella::tile
