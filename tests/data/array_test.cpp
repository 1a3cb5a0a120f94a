// Who may write the bytes of an array.
#include "lamella/data/array.h"

#include <array>

#include <gtest/gtest.h>

namespace lamella::data {
namespace {

TEST(Array, IsExclusiveWhileNoOtherArraySharesItsBytes) {
  Array whole(DType::Float32, {4, 2});
  EXPECT_TRUE(whole.exclusive());
  {
    const Array part = whole.slice(1, 2);
    EXPECT_FALSE(whole.exclusive());
    EXPECT_FALSE(part.exclusive());
  }
  EXPECT_TRUE(whole.exclusive());
  whole = whole.row(1);
  EXPECT_TRUE(whole.exclusive());
}

TEST(Array, OverBorrowedMemoryIsNeverExclusive) {
  const auto borrowed = [] {
    return Array(DType::UInt8, {2, 3}, std::make_shared<std::array<std::byte, 6>>());
  };
  EXPECT_FALSE(borrowed().exclusive());
  EXPECT_FALSE(borrowed().reshaped({6}).exclusive());
  EXPECT_FALSE(borrowed().slice(0, 1).exclusive());
  EXPECT_FALSE(borrowed().row(1).exclusive());
  EXPECT_FALSE(borrowed().as_text().exclusive());
}

}  // namespace
}  // namespace lamella::data
