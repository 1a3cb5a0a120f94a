// Builds tile programs instruction by instruction.
#pragma once

#include <string>
#include <utility>

#include "lamella/tile/opcode.h"
#include "lamella/tile/program.h"

namespace lamella::tile {

// An instruction of the program under construction.
struct ValueId {
  int32_t index = -1;
};

class Builder {
 public:
  explicit Builder(std::string name, int outer_rank = 0, Reduction reduction = Reduction::None,
                   int reduced_rank = 0) {
    program_.name = std::move(name);
    program_.outer_rank = outer_rank;
    program_.reduction = reduction;
    program_.reduced_rank = reduced_rank;
  }

  // Parameters; each returns its number.
  int32_t input(DType dtype, VectorStride stride = VectorStride::Unit) {
    program_.buffers.push_back({dtype, Access::Read, stride});
    return static_cast<int32_t>(program_.buffers.size()) - 1;
  }
  int32_t output(DType dtype, VectorStride stride = VectorStride::Unit) {
    program_.buffers.push_back({dtype, Access::Write, stride});
    return static_cast<int32_t>(program_.buffers.size()) - 1;
  }
  int32_t scalar_parameter(DType dtype) {
    program_.scalars.push_back(dtype);
    return static_cast<int32_t>(program_.scalars.size()) - 1;
  }

  ValueId load(int32_t buffer) {
    return add({.opcode = Opcode::Load, .dtype = buffer_dtype(buffer), .index = buffer});
  }
  // Declares an input and loads it.
  ValueId load_input(DType dtype, VectorStride stride = VectorStride::Unit) {
    return load(input(dtype, stride));
  }
  ValueId scalar(int32_t number) {
    return add({.opcode = Opcode::Scalar,
                .dtype = program_.scalars[static_cast<size_t>(number)],
                .index = number});
  }
  // A constant of any dtype; integers beyond 2^53 need integer_constant.
  ValueId constant(DType dtype, double value) {
    if (!is_float(dtype)) return integer_constant(dtype, static_cast<int64_t>(value));
    return add({.opcode = Opcode::Constant, .dtype = dtype, .immediate = value});
  }
  ValueId integer_constant(DType dtype, int64_t value) {
    if (dtype == DType::Bool) value = value != 0 ? 1 : 0;
    return add({.opcode = Opcode::Constant, .dtype = dtype, .immediate_integer = value});
  }
  ValueId iota(int axis) {
    return add({.opcode = Opcode::Iota, .dtype = DType::Int64, .index = axis});
  }
  ValueId random(int word, ValueId seed, ValueId offset, ValueId element) {
    return add({.opcode = Opcode::Random,
                .dtype = DType::Int32,
                .operands = {seed.index, offset.index, element.index},
                .index = word});
  }

  // Any opcode whose dtype follows from its operands: one operand, two, three.
  ValueId apply(Opcode opcode, ValueId a) { return apply(opcode, a, {}, {}); }
  ValueId apply(Opcode opcode, ValueId a, ValueId b) { return apply(opcode, a, b, {}); }
  ValueId apply(Opcode opcode, ValueId a, ValueId b, ValueId c) {
    DType result = dtype(a);
    if (info(opcode).form == OpcodeForm::Predicate) result = DType::Bool;
    if (info(opcode).form == OpcodeForm::Select) result = dtype(b);
    return add({.opcode = opcode, .dtype = result, .operands = {a.index, b.index, c.index}});
  }
  ValueId select(ValueId condition, ValueId yes, ValueId no) {
    return apply(Opcode::Select, condition, yes, no);
  }
  ValueId cast(ValueId value, DType to) {
    if (dtype(value) == to) return value;
    return add({.opcode = Opcode::Cast, .dtype = to, .operands = {value.index, -1, -1}});
  }
  ValueId bitcast(ValueId value, DType to) {
    return add({.opcode = Opcode::Bitcast, .dtype = to, .operands = {value.index, -1, -1}});
  }
  void store(int32_t buffer, ValueId value) {
    add({.opcode = Opcode::Store,
         .dtype = buffer_dtype(buffer),
         .operands = {value.index, -1, -1},
         .index = buffer});
  }
  // Declares an output and stores to it.
  int32_t store_output(ValueId value, VectorStride stride = VectorStride::Unit) {
    const int32_t buffer = output(dtype(value), stride);
    store(buffer, value);
    return buffer;
  }

  DType dtype(ValueId value) const { return program_.body[static_cast<size_t>(value.index)].dtype; }
  DType buffer_dtype(int32_t buffer) const {
    return program_.buffers[static_cast<size_t>(buffer)].dtype;
  }

  // The finished program, verified.
  Program finish() && {
    verify(program_);
    return std::move(program_);
  }

 private:
  ValueId add(Instruction instruction) {
    program_.body.push_back(instruction);
    return {static_cast<int32_t>(program_.body.size()) - 1};
  }

  Program program_;
};

}  // namespace lamella::tile
