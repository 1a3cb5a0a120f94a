// The rules a program must keep before any executor may trust it.
#include <bit>
#include <string>

#include "lamella/base/error.h"
#include "lamella/tile/opcode.h"
#include "lamella/tile/program.h"
#include "lamella/types/shape.h"

namespace lamella::tile {

namespace {

class Verifier {
 public:
  explicit Verifier(const Program& program) : program_(program) {}

  void run() {
    check_frame();
    for (number_ = 0; number_ < static_cast<int>(program_.body.size()); ++number_) {
      check_instruction(program_.body[static_cast<size_t>(number_)]);
    }
  }

 private:
  template <typename... Args>
  void require(bool condition, fmt::format_string<Args...> format, Args&&... args) const {
    if (condition) return;
    fail(ErrorKind::Internal, "[tile] program {}: {}", program_.name,
         fmt::format(format, std::forward<Args>(args)...));
  }
  template <typename... Args>
  void rule(bool condition, fmt::format_string<Args...> format, Args&&... args) const {
    if (condition) return;
    const Opcode opcode = program_.body[static_cast<size_t>(number_)].opcode;
    fail(ErrorKind::Internal, "[tile] program {}, instruction %{} ({}): {}", program_.name, number_,
         name(opcode), fmt::format(format, std::forward<Args>(args)...));
  }

  void check_frame() const {
    require(program_.reduction <= Reduction::Columns, "the kind of reduction is unknown");
    require(program_.outer_rank >= 0 && program_.outer_rank < kMaxRank,
            "outer_rank must be between 0 and {}, got {}", kMaxRank - 1, program_.outer_rank);
    if (program_.reduction == Reduction::Columns) {
      require(program_.reduced_rank >= 1 && program_.reduced_rank <= program_.outer_rank,
              "a column reduction needs reduced_rank between 1 and outer_rank ({}), got {}",
              program_.outer_rank, program_.reduced_rank);
    } else {
      require(program_.reduced_rank == 0,
              "reduced_rank must be 0 unless columns are reduced, got {}", program_.reduced_rank);
    }
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      const BufferParameter& buffer = program_.buffers[i];
      require(is_computable(buffer.dtype), "buffer {} has a dtype kernels do not compute with", i);
      require(buffer.access <= Access::Write && buffer.vector_stride <= VectorStride::Any,
              "buffer {} has an unknown access or vector stride", i);
      require(!buffer.streamed ||
                  (buffer.access == Access::Write && buffer.vector_stride == VectorStride::Unit &&
                   program_.reduction != Reduction::Columns),
              "buffer {} cannot be streamed: it is no written row of adjacent elements", i);
    }
    for (size_t i = 0; i < program_.scalars.size(); ++i) {
      require(is_computable(program_.scalars[i]),
              "scalar {} has a dtype kernels do not compute with", i);
    }
  }

  void check_instruction(const Instruction& instruction) {
    require(instruction.opcode <= Opcode::Store, "instruction %{} has an unknown opcode", number_);
    rule(is_computable(instruction.dtype), "kernels do not compute with this dtype");
    check_operands(instruction);
    check_dtypes(instruction);
    check_immediates(instruction);
    check_index(instruction);
    places_.push_back(check_place(instruction));
  }

  const Instruction& operand(const Instruction& instruction, int i) const {
    return program_.body[static_cast<size_t>(instruction.operands[static_cast<size_t>(i)])];
  }
  Place operand_place(const Instruction& instruction, int i) const {
    return places_[static_cast<size_t>(instruction.operands[static_cast<size_t>(i)])];
  }

  void check_operands(const Instruction& instruction) const {
    const int count = operand_count(instruction.opcode);
    for (int i = 0; i < 3; ++i) {
      const int32_t index = instruction.operands[static_cast<size_t>(i)];
      if (i >= count) {
        rule(index == -1, "takes {} operands, but operand {} is %{}", count, i, index);
        continue;
      }
      rule(index >= 0 && index < number_, "operand {} must be an earlier instruction, got %{}", i,
           index);
      rule(operand(instruction, i).opcode != Opcode::Store, "operand {} is a store", i);
    }
  }

  void check_dtypes(const Instruction& instruction) const {
    const auto expect = [&](int i, DType dtype) {
      const DType given = operand(instruction, i).dtype;
      rule(given == dtype, "operand {} must be {}, got {}", i, name(dtype), name(given));
    };
    const auto expect_accepted = [&](DType dtype) {
      rule(accepts(instruction.opcode, dtype), "does not take {}", name(dtype));
    };
    switch (info(instruction.opcode).form) {
      case OpcodeForm::Source:
        expect_accepted(instruction.dtype);
        if (instruction.opcode == Opcode::Iota) {
          rule(instruction.dtype == DType::Int64, "gives int64, not {}", name(instruction.dtype));
        }
        break;
      case OpcodeForm::Random:
        for (int i = 0; i < 3; ++i) expect(i, DType::Int64);
        rule(instruction.dtype == DType::Int32, "gives int32, not {}", name(instruction.dtype));
        break;
      case OpcodeForm::Same:
      case OpcodeForm::Reduction:
        expect_accepted(instruction.dtype);
        for (int i = 0; i < operand_count(instruction.opcode); ++i) expect(i, instruction.dtype);
        break;
      case OpcodeForm::Predicate: {
        const DType dtype = operand(instruction, 0).dtype;
        expect_accepted(dtype);
        for (int i = 1; i < operand_count(instruction.opcode); ++i) expect(i, dtype);
        rule(instruction.dtype == DType::Bool, "gives bool, not {}", name(instruction.dtype));
        break;
      }
      case OpcodeForm::Select:
        expect(0, DType::Bool);
        expect(1, instruction.dtype);
        expect(2, instruction.dtype);
        break;
      case OpcodeForm::Conversion:
        if (instruction.opcode == Opcode::Bitcast) {
          const DType from = operand(instruction, 0).dtype;
          rule(size_of(from) == size_of(instruction.dtype),
               "changes the size of an element: {} to {}", name(from), name(instruction.dtype));
          rule((from == DType::Bool) == (instruction.dtype == DType::Bool),
               "bool has no bits to reinterpret");
        }
        break;
      case OpcodeForm::Store:
        expect(0, instruction.dtype);
        break;
    }
  }

  void check_immediates(const Instruction& instruction) const {
    const bool constant = instruction.opcode == Opcode::Constant;
    const bool floats = is_float(instruction.dtype);
    rule(constant && floats ? instruction.immediate_integer == 0
                            : std::bit_cast<uint64_t>(instruction.immediate) == 0,
         "has an immediate of the wrong kind");
    rule(constant || instruction.immediate_integer == 0, "has an immediate but is no constant");
    if (instruction.dtype == DType::Bool) {
      rule(instruction.immediate_integer == 0 || instruction.immediate_integer == 1,
           "the immediate of a bool must be 0 or 1, got {}", instruction.immediate_integer);
    }
  }

  void check_index(const Instruction& instruction) const {
    const auto check_range = [&](size_t count, const char* what) {
      rule(instruction.index >= 0 && static_cast<size_t>(instruction.index) < count,
           "{} {} is not one of the program's {}", what, instruction.index, count);
    };
    switch (instruction.opcode) {
      case Opcode::Load:
      case Opcode::Store: {
        check_range(program_.buffers.size(), "buffer");
        const auto& buffer = program_.buffers[static_cast<size_t>(instruction.index)];
        rule(buffer.dtype == instruction.dtype, "buffer {} holds {}, not {}", instruction.index,
             name(buffer.dtype), name(instruction.dtype));
        const bool writes = instruction.opcode == Opcode::Store;
        rule((buffer.access == Access::Write) == writes, "buffer {} is for {}", instruction.index,
             writes ? "reading" : "writing");
        break;
      }
      case Opcode::Scalar:
        check_range(program_.scalars.size(), "scalar");
        rule(program_.scalars[static_cast<size_t>(instruction.index)] == instruction.dtype,
             "scalar {} is {}, not {}", instruction.index,
             name(program_.scalars[static_cast<size_t>(instruction.index)]),
             name(instruction.dtype));
        break;
      case Opcode::Iota:
        check_range(static_cast<size_t>(program_.outer_rank) + 1, "axis");
        break;
      case Opcode::Random:
        rule(instruction.index >= 0 && instruction.index < 4,
             "the word must be between 0 and 3, got {}", instruction.index);
        break;
      default:
        rule(instruction.index == 0, "has no index, but {} is given", instruction.index);
        break;
    }
  }

  Place check_place(const Instruction& instruction) const {
    if (is_reduction(instruction.opcode)) {
      rule(program_.reduction != Reduction::None, "reduces in a program without reduction");
      rule(operand_place(instruction, 0) != Place::Column, "reduces what is already a column");
      return program_.reduction == Reduction::Columns ? Place::Column : Place::Row;
    }
    if (instruction.opcode == Opcode::Load) {
      const auto& buffer = program_.buffers[static_cast<size_t>(instruction.index)];
      return buffer.vector_stride == VectorStride::Zero ? Place::Row : Place::Element;
    }
    if (instruction.opcode == Opcode::Iota) {
      return instruction.index == program_.outer_rank ? Place::Element : Place::Row;
    }
    Place place = Place::Uniform;
    bool has_column = false, has_point = false;
    for (int i = 0; i < operand_count(instruction.opcode); ++i) {
      const Place operand = operand_place(instruction, i);
      place = std::max(place, operand);
      has_column |= operand == Place::Column;
      has_point |= operand == Place::Row || operand == Place::Element;
    }
    rule(!(has_column && has_point), "mixes a column with values of a row or an element");
    if (instruction.opcode == Opcode::Store) {
      const auto& buffer = program_.buffers[static_cast<size_t>(instruction.index)];
      const bool one_a_row = buffer.vector_stride == VectorStride::Zero;
      rule(!one_a_row || place <= Place::Row,
           "writes more than one value a row to buffer {}, which holds one", instruction.index);
    }
    return place;
  }

  const Program& program_;
  int number_ = 0;
  std::vector<Place> places_;
};

}  // namespace

void verify(const Program& program) {
  Verifier(program).run();
}

}  // namespace lamella::tile
