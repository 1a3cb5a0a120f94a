// Sources, arithmetic and stores, by scope.
#include "lamella/tile/cpu/body_emitter.h"

#include "lamella/tile/opcode.h"

namespace lamella::tile {

BodyEmitter::BodyEmitter(Ir& ir, const Program& program, LLVMValueRef arguments)
    : ir_(ir),
      program_(program),
      layout_(program),
      arguments_(arguments),
      places_(places(program)),
      argument_values_(static_cast<size_t>(layout_.words())),
      scalars_(program.body.size()),
      splats_(program.body.size()) {
  for (int i = 0; i < layout_.words(); ++i) argument(i);
}

LLVMValueRef BodyEmitter::argument(int index) {
  LLVMValueRef& value = argument_values_[static_cast<size_t>(index)];
  if (!value) value = ir_.load(ir_.i64, ir_.address(arguments_, ir_.word(index * 8)), 8);
  return value;
}

LLVMValueRef BodyEmitter::base(int buffer) {
  return LLVMBuildIntToPtr(ir_.builder(), argument(layout_.address(buffer)), ir_.pointer, "");
}

void BodyEmitter::emit_uniform() {
  for (int32_t i = 0; i < static_cast<int32_t>(program_.body.size()); ++i) {
    const Instruction& instruction = at(i);
    if (place(i) != Place::Uniform || instruction.opcode == Opcode::Store) continue;
    Value value;
    if (instruction.opcode == Opcode::Scalar) {
      const LLVMValueRef word = argument(layout_.scalar(instruction.index));
      const LLVMTypeRef type = storage_type(ir_, instruction.dtype);
      const LLVMTypeRef bits = ir_.integer(bytes_of(ir_, type) * 8);
      value.stored = ir_.bitcast(LLVMBuildTruncOrBitCast(ir_.builder(), word, bits, ""), type);
    } else if (instruction.opcode == Opcode::Constant) {
      value = emit_constant(ir_, instruction);
    } else {
      value = emit(i, scalars_, false);
    }
    set_row_value(i, value);
  }
}

void BodyEmitter::set_row_value(int32_t i, const Value& value) {
  Value& kept = scalars_[static_cast<size_t>(i)];
  kept = value;
  computed(ir_, at(i).dtype, kept);
  splats_[static_cast<size_t>(i)] = splat(ir_, kept);
}

void BodyEmitter::emit_row_value(int32_t i, const std::vector<LLVMValueRef>& addresses,
                                 const std::vector<LLVMValueRef>& outer_position) {
  const Instruction& instruction = at(i);
  if (instruction.opcode == Opcode::Load) {
    const LLVMTypeRef type = storage_type(ir_, instruction.dtype);
    const auto buffer = static_cast<size_t>(instruction.index);
    set_row_value(i, {.stored = ir_.load(type, addresses[buffer], bytes_of(ir_, type))});
  } else if (instruction.opcode == Opcode::Iota) {
    set_row_value(i, {.computed = outer_position[static_cast<size_t>(instruction.index)]});
  } else {
    set_row_value(i, emit(i, scalars_, false));
  }
}

Value BodyEmitter::operand(int32_t i, const std::vector<Value>& values, bool as_vector) const {
  const auto index = static_cast<size_t>(i);
  if (!as_vector) return scalars_[index];
  return place(i) >= Place::Column ? values[index] : splats_[index];
}

Value BodyEmitter::emit(int32_t i, std::vector<Value>& values, bool as_vector) {
  const Instruction& instruction = at(i);
  // Copies, because a form made here must not be used where this code does not dominate.
  std::array<Value, 3> copies;
  std::array<Operand, 3> operands;
  size_t count = 0;
  for (const int32_t index : instruction.operands) {
    if (index < 0) break;
    const bool local = as_vector && place(index) >= Place::Column;
    if (!local) copies[count] = operand(index, values, as_vector);
    operands[count] = {local ? &values[static_cast<size_t>(index)] : &copies[count],
                       at(index).dtype};
    ++count;
  }
  if (instruction.opcode == Opcode::Random) {
    const auto word = [&](size_t k) {
      return computed(ir_, operands[k].dtype, *operands[k].value);
    };
    const auto words = emit_philox(ir_, word(0), word(1), word(2));
    // Instructions for the other words of the same counter repeat this; LLVM merges them.
    return {.computed = words[static_cast<size_t>(instruction.index)]};
  }
  return emit_instruction(ir_, instruction, std::span(operands.data(), count));
}

void BodyEmitter::emit_element_value(int32_t i, const PieceFrame& frame,
                                     std::vector<Value>& values) {
  const Instruction& instruction = at(i);
  Value& value = values[static_cast<size_t>(i)];
  if (instruction.opcode == Opcode::Load) {
    const LLVMTypeRef type = storage_type(ir_, instruction.dtype);
    const LLVMValueRef row = frame.addresses[static_cast<size_t>(instruction.index)];
    const bool unit = program_.buffers[static_cast<size_t>(instruction.index)].vector_stride ==
                      VectorStride::Unit;
    const LLVMValueRef step =
        unit ? ir_.word(bytes_of(ir_, type)) : stride(instruction.index, program_.outer_rank);
    const LLVMValueRef address = ir_.address(row, ir_.mul(frame.position, step));
    value.stored = unit ? load_piece(ir_, type, address, frame.tail)
                        : gather_piece(ir_, type, address, step, frame.tail);
  } else if (instruction.opcode == Opcode::Iota) {
    value.computed = ir_.add(ir_.splat(frame.position), ir_.lane_numbers(ir_.i64));
  } else {
    value = emit_position_test(i, frame.position);
    if (!value) value = emit(i, values, true);
  }
}

Value BodyEmitter::emit_position_test(int32_t i, LLVMValueRef position) {
  const Instruction& instruction = at(i);
  const auto is_position = [&](int32_t operand) {
    return at(operand).opcode == Opcode::Iota && place(operand) >= Place::Column;
  };
  const auto [a, b, _] = instruction.operands;
  if (info(instruction.opcode).form != OpcodeForm::Predicate || b < 0) return {};
  if (is_position(a) == is_position(b)) return {};
  const int32_t other = is_position(a) ? b : a;
  if (place(other) >= Place::Column) return {};
  // Positions are below 2^63 - kLanes, so that a number just outside the piece on either side
  // compares with all its lanes as any number further out does; the difference fits 32 bits.
  const LLVMValueRef number = scalar(other);
  const LLVMValueRef before = ir_.sub(position, ir_.word(1));
  const LLVMValueRef after = ir_.add(position, ir_.word(kLanes));
  const LLVMValueRef near =
      ir_.intrinsic("llvm.smin", {ir_.intrinsic("llvm.smax", {number, before}), after});
  const LLVMValueRef lane = ir_.convert(LLVMTrunc, ir_.sub(near, position), ir_.i32);
  const LLVMValueRef lanes = ir_.lane_numbers(ir_.i32), wanted = ir_.splat(lane);
  const bool first = is_position(a);
  return {.computed = emit_comparison(ir_, instruction.opcode, DType::Int64, first ? lanes : wanted,
                                      first ? wanted : lanes)};
}

LLVMValueRef BodyEmitter::element(int32_t i, const std::vector<Value>& values) {
  Value value = operand(i, values, true);
  return computed(ir_, at(i).dtype, value);
}

void BodyEmitter::store_element(int32_t store, const PieceFrame& frame,
                                const std::vector<Value>& values) {
  const Instruction& instruction = at(store);
  const LLVMTypeRef type = storage_type(ir_, instruction.dtype);
  Value operand_value = operand(instruction.operands[0], values, true);
  const LLVMValueRef value = stored(ir_, instruction.dtype, operand_value);
  const LLVMValueRef row = frame.addresses[static_cast<size_t>(instruction.index)];
  const BufferParameter& buffer = program_.buffers[static_cast<size_t>(instruction.index)];
  const bool unit = buffer.vector_stride == VectorStride::Unit;
  const LLVMValueRef step =
      unit ? ir_.word(bytes_of(ir_, type)) : stride(instruction.index, program_.outer_rank);
  const LLVMValueRef address = ir_.address(row, ir_.mul(frame.position, step));
  if (buffer.streamed && !frame.tail) {
    store_piece_streamed(ir_, value, address);
  } else if (unit) {
    store_piece(ir_, value, address, frame.tail);
  } else {
    scatter_piece(ir_, value, address, step, frame.tail);
  }
}

void BodyEmitter::store_row_value(int32_t store, const std::vector<LLVMValueRef>& addresses) {
  const Instruction& instruction = at(store);
  const LLVMTypeRef type = storage_type(ir_, instruction.dtype);
  Value value = scalars_[static_cast<size_t>(instruction.operands[0])];
  ir_.store(stored(ir_, instruction.dtype, value),
            addresses[static_cast<size_t>(instruction.index)], bytes_of(ir_, type));
}

}  // namespace lamella::tile
