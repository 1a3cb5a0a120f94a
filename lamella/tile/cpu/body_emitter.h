// Emits the values of a program's body in the scopes where they live: once a launch, once a row,
// once a piece of a row.
#pragma once

#include <map>

#include "lamella/tile/cpu/arguments.h"
#include "lamella/tile/cpu/instructions.h"
#include "lamella/tile/cpu/memory.h"

namespace lamella::tile {

// Where element values of one piece come from.
struct PieceFrame {
  std::vector<LLVMValueRef> addresses;  // per buffer, of the row's element 0
  LLVMValueRef position = nullptr;      // int64, of the piece's first element in the row
  Tail tail;
};

class BodyEmitter {
 public:
  BodyEmitter(Ir& ir, const Program& program, LLVMValueRef arguments);

  const Program& program() const { return program_; }
  const Instruction& at(int32_t i) const { return program_.body[static_cast<size_t>(i)]; }
  Place place(int32_t i) const { return places_[static_cast<size_t>(i)]; }

  // Launch arguments. They are read in the function's entry block, once each.
  LLVMValueRef extent(int axis) { return argument(layout_.extent(axis)); }
  LLVMValueRef base(int buffer);
  LLVMValueRef stride(int buffer, int axis) { return argument(layout_.stride(buffer, axis)); }

  // Constants, scalars and what follows from them alone.
  void emit_uniform();
  // A value of a row, given what reads the row: its addresses and its position on each outer axis.
  void emit_row_value(int32_t i, const std::vector<LLVMValueRef>& addresses,
                      const std::vector<LLVMValueRef>& outer_position);
  // An element's or a column's value, into `values`.
  void emit_element_value(int32_t i, const PieceFrame& frame, std::vector<Value>& values);
  void store_element(int32_t store, const PieceFrame& frame, const std::vector<Value>& values);
  void store_row_value(int32_t store, const std::vector<LLVMValueRef>& addresses);
  // A reduction's finished result, a scalar of a row.
  void set_row_value(int32_t i, const Value& value);

  // The computed form of a value of uniform or row place.
  LLVMValueRef scalar(int32_t i) const { return scalars_[static_cast<size_t>(i)].computed; }
  // The computed form of a value as a vector, whatever its place.
  LLVMValueRef element(int32_t i, const std::vector<Value>& values);

 private:
  LLVMValueRef argument(int index);
  Value emit(int32_t i, std::vector<Value>& values, bool as_vector);
  Value operand(int32_t i, const std::vector<Value>& values, bool as_vector) const;
  // A comparison of the lanes' positions with one number, or nothing if the instruction is none.
  Value emit_position_test(int32_t i, LLVMValueRef position);

  Ir& ir_;
  const Program& program_;
  ArgumentLayout layout_;
  LLVMValueRef arguments_;
  std::vector<Place> places_;
  std::vector<LLVMValueRef> argument_values_;
  std::vector<Value> scalars_;  // values of uniform and row place
  std::vector<Value> splats_;   // the same in every lane, made where the scalar is
};

}  // namespace lamella::tile
