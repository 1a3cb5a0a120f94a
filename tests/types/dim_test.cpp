// Size expressions: canonical form, evaluation, floor division.
#include "lamella/types/dim.h"

#include <gtest/gtest.h>

namespace lamella {
namespace {

TEST(Dim, EqualExpressionsAreEqual) {
  const Dim batch = Dim::symbol(0), width = Dim::symbol(1);
  EXPECT_EQ(batch * 784 + batch, batch * 785);
  EXPECT_EQ(batch * width, width * batch);
  EXPECT_EQ(batch - batch, Dim(0));
  EXPECT_NE(batch, width);
}

TEST(Dim, DivisionOfAMultipleIsExact) {
  const Dim batch = Dim::symbol(0), width = Dim::symbol(1);
  EXPECT_EQ(floor_div(batch * 784, 784), batch);
  EXPECT_EQ(floor_div(batch * width * 4, batch * 2), width * 2);
  EXPECT_EQ(floor_div(batch * 6 + 5, 3), batch * 2 + 1);
}

TEST(Dim, EvaluatesUnderABinding) {
  const Dim width = Dim::symbol(0);
  const Dim pooled = floor_div(width - 3, 2) + 1;
  const int64_t binding[] = {8};
  EXPECT_EQ(pooled.evaluate(binding), 3);
  EXPECT_EQ(pooled.text(), "1+floor((-3+s0)/(2))");
}

TEST(Dim, IntegersFloorTowardsMinusInfinity) {
  EXPECT_EQ(floor_div(Dim(-3), Dim(2)), Dim(-2));
  EXPECT_EQ(floor_div(Dim(3), Dim(-2)), Dim(-2));
}

TEST(Dim, SizesBeyondTheRangeAreRefused) {
  const Dim large = int64_t{1} << 61;
  EXPECT_ANY_THROW((void)(large * 2));
  EXPECT_ANY_THROW((void)(large * large));
  EXPECT_ANY_THROW((void)(large + large));
  EXPECT_ANY_THROW((void)(Dim(0) - large - large));
  EXPECT_TRUE(Dim(INT64_MIN).known()) << "never mistaken for an expression";
}

}  // namespace
}  // namespace lamella
