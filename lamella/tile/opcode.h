// What is fixed about each opcode: its name in the text form, its operands, the dtypes it takes.
#pragma once

#include <optional>
#include <string_view>

#include "lamella/tile/program.h"

namespace lamella::tile {

inline constexpr int kOpcodeCount = static_cast<int>(Opcode::Store) + 1;

// How an opcode's dtype follows from its operands.
enum class OpcodeForm : uint8_t {
  Source,      // has no operands but is described by its index or immediate
  Random,      // three int64 operands, int32 result
  Same,        // operands and result of one dtype
  Predicate,   // operands of one dtype, bool result
  Select,      // a bool operand, then two of the result's dtype
  Conversion,  // one operand of any dtype
  Reduction,   // one operand of the result's dtype
  Store,       // one operand of the buffer's dtype
};

struct OpcodeInfo {
  std::string_view name;
  OpcodeForm form;
  int operands;
  // The operand dtypes accepted (for Source, the result's).
  bool bools;
  bool integers;
  bool floats;
};

LAMELLA_API const OpcodeInfo& info(Opcode opcode);
LAMELLA_API std::optional<Opcode> opcode_from_name(std::string_view name);

inline std::string_view name(Opcode opcode) {
  return info(opcode).name;
}
inline int operand_count(Opcode opcode) {
  return info(opcode).operands;
}
inline bool is_reduction(Opcode opcode) {
  return info(opcode).form == OpcodeForm::Reduction;
}
inline bool accepts(Opcode opcode, DType operand) {
  const OpcodeInfo& entry = info(opcode);
  if (operand == DType::Bool) return entry.bools;
  return is_float(operand) ? entry.floats : entry.integers && is_integer(operand);
}
// Functions evaluated by tile/math, many times the cost of an addition.
LAMELLA_API bool is_transcendental(Opcode opcode);

}  // namespace lamella::tile
