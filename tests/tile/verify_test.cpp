// A program that breaks a rule is refused with the instruction and the rule.
#include "tests/tile/tile_testing.h"

#include "lamella/base/error.h"

namespace lamella::tile {
namespace {

using testing::HasSubstr;

std::string refusal(const Program& program) {
  try {
    verify(program);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Internal);
    return error.message();
  }
  return "accepted";
}

// A valid program that each test breaks in one way.
Program sum_of_two() {
  Builder b("sum");
  const ValueId x = b.load_input(DType::Float32), y = b.load_input(DType::Float32);
  b.store_output(b.apply(Opcode::Add, x, y));
  return std::move(b).finish();
}

TEST(Verify, AcceptsWhatBuildersMake) {
  EXPECT_EQ(refusal(sum_of_two()), "accepted");
}

TEST(Verify, ChecksOperands) {
  Program program = sum_of_two();
  program.body[2].operands[1] = 2;
  EXPECT_THAT(refusal(program), HasSubstr("%2 (add): operand 1 must be an earlier instruction"));
  program.body[2].operands[1] = -1;
  EXPECT_THAT(refusal(program), HasSubstr("%2 (add): operand 1 must be an earlier instruction"));
  program = sum_of_two();
  program.body[0].operands[0] = 0;
  EXPECT_THAT(refusal(program), HasSubstr("%0 (load): takes 0 operands"));
}

TEST(Verify, ChecksDtypes) {
  Program program = sum_of_two();
  program.buffers[1].dtype = program.body[1].dtype = DType::Int32;
  EXPECT_THAT(refusal(program), HasSubstr("operand 1 must be float32, got int32"));
  program = sum_of_two();
  program.buffers[0].dtype = DType::Float64;
  EXPECT_THAT(refusal(program), HasSubstr("buffer 0 holds float64, not float32"));
  program = sum_of_two();
  program.body[2].opcode = Opcode::And;
  EXPECT_THAT(refusal(program), HasSubstr("does not take float32"));
  program = sum_of_two();
  program.buffers[0].dtype = program.body[0].dtype = DType::UInt32;
  EXPECT_THAT(refusal(program), HasSubstr("do not compute with"));
}

TEST(Verify, ChecksBuffersAndIndices) {
  Program program = sum_of_two();
  program.body[0].index = 3;
  EXPECT_THAT(refusal(program), HasSubstr("buffer 3 is not one of the program's 3"));
  program = sum_of_two();
  program.body[0].index = 2;
  EXPECT_THAT(refusal(program), HasSubstr("buffer 2 is for writing"));
  program = sum_of_two();
  program.buffers[2].vector_stride = VectorStride::Zero;
  EXPECT_THAT(refusal(program), HasSubstr("more than one value a row"));
  program = sum_of_two();
  program.buffers[0].streamed = true;
  EXPECT_THAT(refusal(program), HasSubstr("buffer 0 cannot be streamed"));
  program = sum_of_two();
  program.body[2].immediate = 1;
  EXPECT_THAT(refusal(program), HasSubstr("immediate"));
}

TEST(Verify, ChecksReductions) {
  Builder b("columns", 1, Reduction::Columns, 1);
  const ValueId x = b.load_input(DType::Float32);
  const ValueId sum = b.apply(Opcode::ReduceSum, x);
  b.store_output(sum);
  Program program = std::move(b).finish();
  program.reduced_rank = 2;
  EXPECT_THAT(refusal(program), HasSubstr("reduced_rank between 1 and outer_rank (1), got 2"));
  program.reduced_rank = 1;
  program.body.push_back(
      {.opcode = Opcode::Sub, .dtype = DType::Float32, .operands = {x.index, sum.index, -1}});
  EXPECT_THAT(refusal(program), HasSubstr("mixes a column with values of a row or an element"));
  program = sum_of_two();
  program.body[2] = {.opcode = Opcode::ReduceSum, .dtype = DType::Float32, .operands = {0, -1, -1}};
  EXPECT_THAT(refusal(program), HasSubstr("reduces in a program without reduction"));
}

TEST(Places, FollowTheOperands) {
  Builder b("places", 1, Reduction::Rows);
  const ValueId scalar = b.scalar(b.scalar_parameter(DType::Float32));
  const ValueId x = b.load_input(DType::Float32);
  const ValueId bias = b.load_input(DType::Float32, VectorStride::Zero);
  const ValueId sum = b.apply(Opcode::ReduceSum, x);
  b.apply(Opcode::Add, scalar, scalar);
  b.apply(Opcode::Add, sum, bias);
  b.apply(Opcode::Add, x, bias);
  b.iota(0);
  b.iota(1);
  using enum Place;
  EXPECT_EQ(places(std::move(b).finish()),
            (std::vector{Uniform, Element, Row, Row, Uniform, Row, Element, Row, Element}));
}

TEST(Key, IgnoresTheNameAndNothingElse) {
  const Program program = sum_of_two();
  Program other = program;
  other.name = "another";
  EXPECT_EQ(key(other), key(program));
  EXPECT_EQ(other, program);
  other.body[2].opcode = Opcode::Sub;
  EXPECT_NE(key(other), key(program));
  other = program;
  other.buffers[0].vector_stride = VectorStride::Any;
  EXPECT_NE(key(other), key(program));
  other = program;
  other.outer_rank = 1;
  EXPECT_NE(key(other), key(program));
  other = program;
  other.buffers[2].streamed = true;
  EXPECT_NE(key(other), key(program));
}

}  // namespace
}  // namespace lamella::tile
