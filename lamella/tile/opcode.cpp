// The table of opcodes.
#include "lamella/tile/opcode.h"

#include <array>

namespace lamella::tile {

namespace {

using enum OpcodeForm;

// Columns: name, form, operands, then whether bool, integers and floats are accepted.
constexpr std::array<OpcodeInfo, kOpcodeCount> kTable = {{
    {"load", Source, 0, true, true, true},
    {"scalar", Source, 0, true, true, true},
    {"constant", Source, 0, true, true, true},
    {"iota", Source, 0, false, true, false},
    {"random", OpcodeForm::Random, 3, false, true, false},
    {"neg", Same, 1, false, true, true},
    {"abs", Same, 1, false, true, true},
    {"sign", Same, 1, false, true, true},
    {"not", Same, 1, true, true, false},
    {"floor", Same, 1, false, false, true},
    {"ceil", Same, 1, false, false, true},
    {"round", Same, 1, false, false, true},
    {"trunc", Same, 1, false, false, true},
    {"sqrt", Same, 1, false, false, true},
    {"rsqrt", Same, 1, false, false, true},
    {"reciprocal", Same, 1, false, false, true},
    {"exp", Same, 1, false, false, true},
    {"expm1", Same, 1, false, false, true},
    {"log", Same, 1, false, false, true},
    {"log1p", Same, 1, false, false, true},
    {"log2", Same, 1, false, false, true},
    {"sin", Same, 1, false, false, true},
    {"cos", Same, 1, false, false, true},
    {"tan", Same, 1, false, false, true},
    {"asin", Same, 1, false, false, true},
    {"acos", Same, 1, false, false, true},
    {"atan", Same, 1, false, false, true},
    {"sinh", Same, 1, false, false, true},
    {"cosh", Same, 1, false, false, true},
    {"tanh", Same, 1, false, false, true},
    {"erf", Same, 1, false, false, true},
    {"erfc", Same, 1, false, false, true},
    {"gaussian", Same, 1, false, false, true},
    {"sigmoid", Same, 1, false, false, true},
    {"softplus", Same, 1, false, false, true},
    {"isnan", Predicate, 1, false, false, true},
    {"isinf", Predicate, 1, false, false, true},
    {"isfinite", Predicate, 1, false, false, true},
    {"add", Same, 2, false, true, true},
    {"sub", Same, 2, false, true, true},
    {"mul", Same, 2, false, true, true},
    {"div", Same, 2, false, true, true},
    {"floordiv", Same, 2, false, true, true},
    {"mod", Same, 2, false, true, true},
    {"pow", Same, 2, false, true, true},
    {"atan2", Same, 2, false, false, true},
    {"min", Same, 2, true, true, true},
    {"max", Same, 2, true, true, true},
    {"and", Same, 2, true, true, false},
    {"or", Same, 2, true, true, false},
    {"xor", Same, 2, true, true, false},
    {"equal", Predicate, 2, true, true, true},
    {"notequal", Predicate, 2, true, true, true},
    {"less", Predicate, 2, true, true, true},
    {"lessequal", Predicate, 2, true, true, true},
    {"greater", Predicate, 2, true, true, true},
    {"greaterequal", Predicate, 2, true, true, true},
    {"select", OpcodeForm::Select, 3, true, true, true},
    {"fma", Same, 3, false, false, true},
    {"cast", Conversion, 1, true, true, true},
    {"bitcast", Conversion, 1, true, true, true},
    {"reducesum", Reduction, 1, false, true, true},
    {"reduceprod", Reduction, 1, false, true, true},
    {"reducemin", Reduction, 1, true, true, true},
    {"reducemax", Reduction, 1, true, true, true},
    {"store", OpcodeForm::Store, 1, true, true, true},
}};

}  // namespace

const OpcodeInfo& info(Opcode opcode) {
  return kTable[static_cast<size_t>(opcode)];
}

std::optional<Opcode> opcode_from_name(std::string_view name) {
  for (int i = 0; i < kOpcodeCount; ++i) {
    if (kTable[static_cast<size_t>(i)].name == name) return static_cast<Opcode>(i);
  }
  return std::nullopt;
}

bool is_transcendental(Opcode opcode) {
  return (opcode >= Opcode::Exp && opcode <= Opcode::Softplus) || opcode == Opcode::Pow ||
         opcode == Opcode::Atan2;
}

}  // namespace lamella::tile
