// The 16-bit floats against the compiler's own _Float16 and arithmetic on bit patterns.
#include "lamella/types/half.h"

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

namespace lamella {
namespace {

__extension__ using NativeHalf = _Float16;

TEST(Half, EveryFloat16WidensAsTheCompilerDoes) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = std::bit_cast<NativeHalf>(static_cast<uint16_t>(bits));
    const float expected = static_cast<float>(half);
    const float got = float_from_float16_bits(static_cast<uint16_t>(bits));
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(got));
    } else {
      ASSERT_EQ(std::bit_cast<uint32_t>(expected), std::bit_cast<uint32_t>(got)) << bits;
    }
  }
}

TEST(Half, NarrowsAsTheCompilerDoes) {
  for (uint64_t step = 0; step < (1ull << 32); step += 40503) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(step));
    const auto expected = std::bit_cast<uint16_t>(static_cast<NativeHalf>(value));
    const uint16_t got = float16_bits_from_float(value);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(float_from_float16_bits(got)));
    } else {
      ASSERT_EQ(expected, got) << value;
    }
  }
}

TEST(Half, BFloat16RoundsHalvesToEven) {
  EXPECT_EQ(bfloat16_bits_from_float(1.0f), 0x3F80);
  EXPECT_EQ(bfloat16_bits_from_float(std::bit_cast<float>(0x3F808000u)), 0x3F80);
  EXPECT_EQ(bfloat16_bits_from_float(std::bit_cast<float>(0x3F818000u)), 0x3F82);
  EXPECT_EQ(bfloat16_bits_from_float(std::bit_cast<float>(0x7F7FFFFFu)), 0x7F80);
  EXPECT_TRUE(std::isnan(float_from_bfloat16_bits(bfloat16_bits_from_float(NAN))));
}

TEST(Half, DoubleRoundsOnce) {
  // Just above a tie of float16: rounding through float would lose the excess and round to even.
  const double value = 1.0 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ(float16_bits_from_float(float_round_to_odd(value)), 0x3C01);
}

}  // namespace
}  // namespace lamella
