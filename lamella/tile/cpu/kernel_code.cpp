// From a program to linked code.
#include "lamella/tile/cpu/kernel_code.h"

#include "lamella/tile/opcode.h"

namespace lamella::tile {

namespace {

// A rough time for one element on one thread: memory traffic at 10 GB/s, a quarter of a cycle for
// simple arithmetic.
double estimate_nanoseconds(const Program& program) {
  double total = 0;
  for (const Instruction& instruction : program.body) {
    if (instruction.opcode == Opcode::Load || instruction.opcode == Opcode::Store) {
      const auto& buffer = program.buffers[static_cast<size_t>(instruction.index)];
      if (buffer.vector_stride == VectorStride::Unit) {
        total += 0.1 * static_cast<double>(size_of(buffer.dtype));
      } else if (buffer.vector_stride == VectorStride::Any) {
        total += 1;
      }
    } else if (is_transcendental(instruction.opcode)) {
      total += 0.5;
    } else if (instruction.opcode == Opcode::Random) {
      total += 1;
    } else {
      total += 0.03;
    }
  }
  return total;
}

}  // namespace

void emit_program(Ir& ir, const Program& program) {
  if (program.reduction == Reduction::Columns) {
    emit_columns(ir, program);
  } else {
    emit_rows(ir, program, schedule_rows(program));
  }
}

Kernel::Code::Code(const Program& source, InstructionSet set, std::string_view object)
    : program(source),
      instruction_set(set),
      layout(program),
      code_bytes(static_cast<int64_t>(object.size())),
      nanoseconds_per_element(estimate_nanoseconds(program)),
      linked(object) {
  if (program.reduction == Reduction::Columns) {
    column_block = reinterpret_cast<ColumnBlockFunction*>(linked.find(kColumnBlockFunction));
    column_finish = reinterpret_cast<ColumnFinishFunction*>(linked.find(kColumnFinishFunction));
    partial_bytes = column_partial_bytes(program);
  } else {
    rows = reinterpret_cast<RowFunction*>(linked.find(kRowFunction));
    const RowSchedule schedule = schedule_rows(program);
    for (const DType dtype : schedule.slot_dtypes) row_scratch_bytes += size_of(dtype);
    if (reduces_once(program, schedule)) {
      row_chunks = reinterpret_cast<RowChunkFunction*>(linked.find(kRowChunkFunction));
      row_finish = reinterpret_cast<RowFinishFunction*>(linked.find(kRowFinishFunction));
      const auto reductions = static_cast<int64_t>(schedule.passes[0].reductions.size());
      partial_bytes = reductions * kPartialBytes;
    }
  }
}

}  // namespace lamella::tile
