// The functions of tile/math against the C library in long double: within 2 units in the last place
// of float32 over its whole range, and float16 and bfloat16 within 1.
#include <cfloat>

#include "tests/tile/tile_testing.h"

namespace lamella::tile {
namespace {

using Real = long double;

Program one_function(Opcode opcode, DType dtype) {
  Builder b(std::string(name(opcode)));
  const ValueId x = b.load_input(dtype);
  b.store_output(operand_count(opcode) == 2 ? b.apply(opcode, x, b.load_input(dtype))
                                            : b.apply(opcode, x));
  return std::move(b).finish();
}

// The same program with results in float64, so that the reference is not rounded to the dtype.
Program reference_function(Opcode opcode, DType dtype) {
  Builder b(std::string(name(opcode)));
  const ValueId x = b.cast(b.load_input(dtype), DType::Float64);
  b.store_output(operand_count(opcode) == 2
                     ? b.apply(opcode, x, b.cast(b.load_input(dtype), DType::Float64))
                     : b.apply(opcode, x));
  return std::move(b).finish();
}

struct FloatFormat {
  int digits;          // of the significand
  int least_exponent;  // of the smallest denormal
  double largest;
};

FloatFormat format_of(DType dtype) {
  switch (dtype) {
    case DType::Float16:
      return {11, -24, 65504};
    case DType::BFloat16:
      return {8, -133, 0x1.FEp127};
    case DType::Float32:
      return {24, -149, FLT_MAX};
    default:
      return {53, -1074, DBL_MAX};
  }
}

// How far a result is from the exact one, in units of the exact one's last place.
double distance(DType dtype, double result, double exact) {
  const FloatFormat format = format_of(dtype);
  if (std::isnan(exact)) return std::isnan(result) ? 0 : HUGE_VAL;
  if (std::isnan(result)) return HUGE_VAL;
  if (result == exact) return 0;
  // Anything beyond the largest number by half a unit rounds to infinity.
  const double clamped = std::clamp(exact, -format.largest, format.largest);
  if (std::isinf(result)) {
    if (std::signbit(result) != std::signbit(exact)) return HUGE_VAL;
    result = std::copysign(format.largest, result);
  }
  int exponent = 0;
  std::frexp(clamped, &exponent);
  const double unit = std::ldexp(1.0, std::max(exponent - format.digits, format.least_exponent));
  return std::fabs(result - clamped) / unit;
}

void expect_accurate(Opcode opcode, DType dtype, std::vector<Array> inputs, double limit) {
  const int64_t count = inputs[0].count();
  Array actual(dtype, count), exact(DType::Float64, count);
  Launch launch = {.extents = {count}};
  for (Array& input : inputs) launch.buffers.push_back({input.bytes.data(), {1}});
  Launch reference = launch;
  launch.buffers.push_back({actual.bytes.data(), {1}});
  reference.buffers.push_back({exact.bytes.data(), {1}});
  run_kernel(*compile(one_function(opcode, dtype), native_instruction_set()), launch);
  interpret_in_long_double(reference_function(opcode, dtype), reference);
  double worst = 0;
  int64_t where = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double d = distance(dtype, actual.value(i), exact.value(i));
    if (d > worst) {
      worst = d;
      where = i;
    }
  }
  EXPECT_LE(worst, limit) << name(opcode) << " of " << name(dtype) << " at "
                          << inputs[0].value(where) << " gives " << actual.value(where)
                          << " instead of " << exact.value(where);
}

constexpr std::array kFunctions = {
    Opcode::Sqrt,    Opcode::Rsqrt,   Opcode::Reciprocal, Opcode::Exp,  Opcode::Expm1,
    Opcode::Log,     Opcode::Log1p,   Opcode::Log2,       Opcode::Sin,  Opcode::Cos,
    Opcode::Tan,     Opcode::Asin,    Opcode::Acos,       Opcode::Atan, Opcode::Sinh,
    Opcode::Cosh,    Opcode::Tanh,    Opcode::Erf,        Opcode::Erfc, Opcode::Gaussian,
    Opcode::Sigmoid, Opcode::Softplus};

class Accuracy : public testing::TestWithParam<Opcode> {};
INSTANTIATE_TEST_SUITE_P(Tile, Accuracy, testing::ValuesIn(kFunctions),
                         [](const auto& instance) { return std::string(name(instance.param)); });

// Every exponent and sign, with evenly spread significands.
TEST_P(Accuracy, OfFloat32OverItsWholeRange) {
  constexpr uint64_t kStep = 65537;
  Array input(DType::Float32, (uint64_t{1} << 32) / kStep);
  for (int64_t i = 0; i < input.count(); ++i) {
    input.set_bits(i, static_cast<uint64_t>(i) * kStep & 0xFFFFFFFF);
  }
  expect_accurate(GetParam(), DType::Float32, {input}, 2);
}

// Where functions are mostly used.
TEST_P(Accuracy, OfFloat32NearZero) {
  Array input(DType::Float32, 100003);
  for (int64_t i = 0; i < input.count(); ++i) {
    input.set_value(i, (static_cast<double>(i) / 100003 - 0.5) * 24);
  }
  expect_accurate(GetParam(), DType::Float32, {input}, 2);
}

TEST_P(Accuracy, OfEveryFloat16AndBFloat16) {
  for (const DType dtype : {DType::Float16, DType::BFloat16}) {
    Array input(dtype, 65536);
    for (int64_t i = 0; i < 65536; ++i) input.set_bits(i, static_cast<uint64_t>(i));
    expect_accurate(GetParam(), dtype, {input}, 0.51);
  }
}

TEST_P(Accuracy, OfFloat64) {
  std::vector<Array> inputs = {make_array(DType::Float64, 20000, 3)};
  expect_accurate(GetParam(), DType::Float64, std::move(inputs), 2);
}

TEST(AccuracyOfTwo, PowAndAtan2) {
  for (const Opcode opcode : {Opcode::Pow, Opcode::Atan2}) {
    for (const Fill fill : {Fill::Special, Fill::Ordinary, Fill::Bits}) {
      for (const DType dtype : {DType::Float32, DType::Float16, DType::BFloat16, DType::Float64}) {
        expect_accurate(opcode, dtype,
                        {make_array(dtype, 100000, 5, fill), make_array(dtype, 100000, 6, fill)},
                        2);
      }
    }
  }
}

TEST(AccuracyAbsolute, TanhSigmoidErf) {
  for (const Opcode opcode : {Opcode::Tanh, Opcode::Sigmoid, Opcode::Erf}) {
    Array input = make_array(DType::Float32, 100000, 7), actual(DType::Float32, 100000),
          exact(DType::Float64, 100000);
    run_kernel(
        *compile(one_function(opcode, DType::Float32), native_instruction_set()),
        {.extents = {100000}, .buffers = {{input.bytes.data(), {1}}, {actual.bytes.data(), {1}}}});
    interpret_in_long_double(
        reference_function(opcode, DType::Float32),
        {.extents = {100000}, .buffers = {{input.bytes.data(), {1}}, {exact.bytes.data(), {1}}}});
    for (int64_t i = 0; i < 100000; ++i) {
      if (std::isnan(input.value(i))) continue;
      ASSERT_NEAR(actual.value(i), exact.value(i), 1e-6) << name(opcode) << input.value(i);
    }
  }
}

}  // namespace
}  // namespace lamella::tile
