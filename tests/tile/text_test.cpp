// The text form keeps programs whole, and bad text is an error that names its line.
#include "tests/tile/tile_testing.h"

#include "lamella/base/error.h"

namespace lamella::tile {
namespace {

constexpr const char* kSoftmax = R"(program "soft\"max" rows outer 1
buffer 0 read f32 unit
buffer 1 write f32 unit
scalar 0 f32
%0 = load f32 [0]
%1 = reducemax f32 %0
%2 = sub f32 %0 %1
%3 = scalar f32 [0]
%4 = mul f32 %2 %3
%5 = exp f32 %4
%6 = reducesum f32 %5
%7 = div f32 %5 %6
%8 = store f32 %7 [1]
)";

std::string error_of(std::string_view text) {
  try {
    parse(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Value);
    return error.message();
  }
  return "no error";
}

TEST(Text, IsPrintedAsItWasRead) {
  const Program program = parse(kSoftmax);
  EXPECT_EQ(program.name, "soft\"max");
  EXPECT_EQ(print(program), kSoftmax);
}

TEST(Text, SaysWhatIsStreamed) {
  Program program = parse(kSoftmax);
  program.buffers[1].streamed = true;
  const std::string text = print(program);
  EXPECT_NE(text.find("buffer 1 write f32 unit streamed\n"), std::string::npos);
  EXPECT_EQ(parse(text), program);
}

TEST(Text, KeepsEveryConstant) {
  Builder b("constants", 2, Reduction::Columns, 1);
  for (const double value :
       {0.0, -0.0, 1.0 / 3, 5e-324, -1.7e308, 1e22, std::numeric_limits<double>::infinity(),
        -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    b.constant(DType::Float64, value);
  }
  b.integer_constant(DType::Int64, std::numeric_limits<int64_t>::min());
  b.integer_constant(DType::Bool, 1);
  b.iota(2);
  const Program program = std::move(b).finish();
  EXPECT_EQ(parse(print(program)), program);
  EXPECT_EQ(key(parse(print(program))), key(program));
}

TEST(Text, TakesCommentsAndBlankLines) {
  const Program program = parse(
      "// one\n\n  program \"p\" none outer 0 // two\n\r\n"
      "%0 = constant f32 1.5  // three");
  EXPECT_EQ(program.body.size(), 1u);
  EXPECT_EQ(program.body[0].immediate, 1.5);
}

TEST(Text, ErrorsNameTheLine) {
  using testing::HasSubstr;
  EXPECT_THAT(error_of(""), HasSubstr("holds no program"));
  EXPECT_THAT(error_of("program \"p\" none outer 0\n%0 = fly f32"),
              HasSubstr("line 2: \"fly\" is no opcode"));
  EXPECT_THAT(error_of("program \"p\" none outer 0\n%1 = constant f32 1"),
              HasSubstr("line 2: the next value is %0"));
  EXPECT_THAT(error_of("program \"p\" none outer 99999999999"), HasSubstr("line 1"));
  EXPECT_THAT(error_of("program \"p"), HasSubstr("line 1: the name does not end"));
  EXPECT_THAT(error_of("program \"p\" none outer 0\n%0 = constant f32"),
              HasSubstr("line 2: the constant is missing"));
  EXPECT_THAT(error_of("program \"p\" none outer 0\n%0 = load f32 [0]"),
              HasSubstr("%0 (load): buffer 0 is not one of the program's 0"));
}

TEST(Text, EveryPrefixAndEveryDamagedByteIsHandled) {
  const std::string text = kSoftmax;
  for (size_t i = 0; i <= text.size(); ++i) {
    error_of(std::string_view(text).substr(0, i));
    for (const char c : {'\0', ' ', '9', '%', '\n', '"', '\xff'}) {
      std::string damaged = text;
      damaged[std::min(i, text.size() - 1)] = c;
      error_of(damaged);
    }
  }
}

}  // namespace
}  // namespace lamella::tile
