// Every opcode on every dtype it takes gives the interpreter's bits at every instruction set.
#include "lamella/tile/opcode.h"

#include "tests/tile/tile_testing.h"

namespace lamella::tile {
namespace {

// Long enough for whole steps, a whole piece and a tail.
constexpr int64_t kCount = 4096 + 64 + 16 + 7;

// One a row (`stride` Zero: scalar code) or one an element.
Program single_opcode(Opcode opcode, DType dtype, VectorStride stride) {
  Builder b(std::string(name(opcode)) + " " + std::string(name(dtype)),
            stride == VectorStride::Zero ? 1 : 0);
  std::array<ValueId, 3> operands;
  const int count = operand_count(opcode);
  for (int i = 0; i < count; ++i) {
    const bool condition = opcode == Opcode::Select && i == 0;
    operands[static_cast<size_t>(i)] = b.load_input(condition ? DType::Bool : dtype, stride);
  }
  b.store_output(b.apply(opcode, operands[0], operands[1], operands[2]), stride);
  return std::move(b).finish();
}

class EveryOpcode : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Tile, EveryOpcode,
                         testing::Range(static_cast<int>(Opcode::Neg),
                                        static_cast<int>(Opcode::Cast)),
                         [](const auto& instance) {
                           return std::string(name(static_cast<Opcode>(instance.param)));
                         });

TEST_P(EveryOpcode, GivesTheInterpretersBits) {
  const auto opcode = static_cast<Opcode>(GetParam());
  for (const DType dtype : kComputeDTypes) {
    if (!accepts(opcode, dtype)) continue;
    const Case c(single_opcode(opcode, dtype, VectorStride::Unit), {kCount}, Fill::Special);
    expect_compiled_as_interpreted(c, "opcode");
  }
}

TEST_P(EveryOpcode, GivesTheSameBitsOnValuesOfARow) {
  const auto opcode = static_cast<Opcode>(GetParam());
  for (const DType dtype : kComputeDTypes) {
    if (!accepts(opcode, dtype)) continue;
    const Case c(single_opcode(opcode, dtype, VectorStride::Zero), {kCount, 1}, Fill::Special);
    expect_compiled_as_interpreted(c, "opcode of rows");
  }
}

// What LLVM computes at compile time is what would have been computed later.
TEST_P(EveryOpcode, GivesTheSameBitsOnConstants) {
  const auto opcode = static_cast<Opcode>(GetParam());
  for (const DType dtype : kComputeDTypes) {
    if (!accepts(opcode, dtype)) continue;
    Builder b(std::string(name(opcode)) + " of constants");
    const std::vector<double> values = special_values(dtype);
    for (size_t i = 0; i < values.size(); ++i) {
      const auto constant = [&](size_t k) {
        return b.constant(dtype, values[(i + k) % values.size()]);
      };
      const bool selects = opcode == Opcode::Select;
      const ValueId first = selects ? b.constant(DType::Bool, i % 2 == 0) : constant(0);
      const int count = operand_count(opcode);
      b.store_output(b.apply(opcode, first, count > 1 ? constant(5) : ValueId{},
                             count > 2 ? constant(11) : ValueId{}),
                     VectorStride::Zero);
    }
    const Case c(std::move(b).finish(), {1});
    expect_compiled_as_interpreted(c, std::string(name(dtype)));
  }
}

class EveryDType : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Tile, EveryDType, testing::ValuesIn(kComputeDTypes),
                         [](const auto& instance) { return std::string(name(instance.param)); });

TEST_P(EveryDType, CastsToEveryOther) {
  for (const DType to : kComputeDTypes) {
    Builder b("cast " + std::string(name(GetParam())) + " to " + std::string(name(to)));
    b.store_output(b.cast(b.load_input(GetParam()), to));
    const Case c(std::move(b).finish(), {kCount}, Fill::Special);
    expect_compiled_as_interpreted(c, "cast");
  }
}

TEST_P(EveryDType, Bitcasts) {
  for (const DType to : kComputeDTypes) {
    if (size_of(to) != size_of(GetParam())) continue;
    if ((to == DType::Bool) != (GetParam() == DType::Bool)) continue;
    Builder b("bitcast");
    b.store_output(b.bitcast(b.load_input(GetParam()), to));
    const Case c(std::move(b).finish(), {kCount}, Fill::Special);
    expect_compiled_as_interpreted(c, "bitcast");
  }
}

TEST_P(EveryDType, ScalarsAndConstants) {
  Builder b("fill");
  const ValueId given = b.scalar(b.scalar_parameter(GetParam()));
  const ValueId constant = b.constant(GetParam(), GetParam() == DType::Bool ? 1 : 0.3 + 7);
  b.store_output(given);
  b.store_output(constant);
  b.store_output(b.select(b.load_input(DType::Bool), given, constant));
  Case c(std::move(b).finish(), {100});
  c.scalars = {GetParam() == DType::Bool ? 1u : 0x3FF4000045004240u};
  expect_compiled_as_interpreted(c, "scalar");
}

TEST_P(EveryDType, ReducesRowsAndColumns) {
  for (const Opcode opcode :
       {Opcode::ReduceSum, Opcode::ReduceProd, Opcode::ReduceMin, Opcode::ReduceMax}) {
    if (!accepts(opcode, GetParam())) continue;
    for (const Fill fill : {Fill::Ordinary, Fill::Special}) {
      Builder rows("rows " + std::string(name(opcode)), 1, Reduction::Rows);
      rows.store_output(rows.apply(opcode, rows.load_input(GetParam())), VectorStride::Zero);
      const Case row_case(std::move(rows).finish(), {3, 4096 + 100}, fill);
      expect_compiled_as_interpreted(row_case, std::string(name(GetParam())));

      Builder columns("columns " + std::string(name(opcode)), 1, Reduction::Columns, 1);
      columns.store_output(columns.apply(opcode, columns.load_input(GetParam())));
      const Case column_case(std::move(columns).finish(), {64 * 3 + 5, 100}, fill);
      expect_compiled_as_interpreted(column_case, std::string(name(GetParam())));
    }
  }
}

TEST(Sources, IotaAndRandom) {
  Builder b("random", 1);
  const ValueId seed = b.scalar(b.scalar_parameter(DType::Int64));
  const ValueId offset = b.scalar(b.scalar_parameter(DType::Int64));
  const ValueId width = b.scalar(b.scalar_parameter(DType::Int64));
  const ValueId element = b.apply(Opcode::Add, b.apply(Opcode::Mul, b.iota(0), width), b.iota(1));
  for (int word = 0; word < 4; ++word) b.store_output(b.random(word, seed, offset, element));
  b.store_output(element);
  Case c(std::move(b).finish(), {3, 1000});
  c.scalars = {0x123456789ABCDEFu, 0xFFFFFFFF00000003u, 1000};
  expect_compiled_as_interpreted(c, "random");
}

// A vector's positions are compared with one number a row in 32 bits, however far away it is.
TEST(Sources, ComparesPositionsWithNumbers) {
  constexpr std::array kComparisons = {Opcode::Equal,     Opcode::NotEqual, Opcode::Less,
                                       Opcode::LessEqual, Opcode::Greater,  Opcode::GreaterEqual};
  for (const Reduction reduction : {Reduction::None, Reduction::Rows, Reduction::Columns}) {
    Builder b("positions", 1, reduction, reduction == Reduction::Columns ? 1 : 0);
    const ValueId given = b.scalar(b.scalar_parameter(DType::Int64)), row = b.iota(0);
    for (const ValueId number : {given, row}) {
      for (const Opcode opcode : kComparisons) {
        for (const bool swapped : {false, true}) {
          const ValueId position = b.iota(1);
          const ValueId is =
              swapped ? b.apply(opcode, number, position) : b.apply(opcode, position, number);
          if (reduction == Reduction::None) {
            b.store_output(is);
          } else {
            const ValueId count = b.apply(Opcode::ReduceSum, b.cast(is, DType::Int32));
            b.store_output(count,
                           reduction == Reduction::Rows ? VectorStride::Zero : VectorStride::Unit);
          }
        }
      }
    }
    Case c(std::move(b).finish(), {40, 37});
    constexpr auto kLeast = std::numeric_limits<int64_t>::min();
    for (const int64_t number : {int64_t{-1}, int64_t{0}, int64_t{15}, int64_t{16}, int64_t{36},
                                 int64_t{37}, int64_t{1} << 32, (int64_t{1} << 32) + 3,
                                 -(int64_t{1} << 32) + 3, kLeast, kLeast + 20, ~kLeast}) {
      c.scalars = {static_cast<uint64_t>(number)};
      expect_compiled_as_interpreted(c, std::to_string(number));
    }
  }
}

}  // namespace
}  // namespace lamella::tile
