// The placement of temporaries: never over each other while they live, and tight.
#include "lamella/runtime/memory_plan.h"

#include <random>

#include <gtest/gtest.h>

namespace lamella {
namespace {

void expect_disjoint(const std::vector<PlannedSlot>& slots, const ArenaPlan& plan) {
  for (size_t a = 0; a < slots.size(); ++a) {
    EXPECT_EQ(plan.offsets[a] % 64, 0);
    EXPECT_LE(plan.offsets[a] + slots[a].bytes, plan.bytes);
    for (size_t b = 0; b < a; ++b) {
      const bool together =
          slots[a].first_step <= slots[b].last_step && slots[b].first_step <= slots[a].last_step;
      if (!together || slots[a].bytes == 0 || slots[b].bytes == 0) continue;
      EXPECT_TRUE(plan.offsets[a] + slots[a].bytes <= plan.offsets[b] ||
                  plan.offsets[b] + slots[b].bytes <= plan.offsets[a]);
    }
  }
}

TEST(MemoryPlan, KeepsWhatLivesTogetherApartAndWastesLittle) {
  std::mt19937 random(3);
  const auto draw = [&](int most) {
    return static_cast<int>(random() % static_cast<unsigned>(most));
  };
  for (int program = 0; program < 50; ++program) {
    std::vector<PlannedSlot> slots;
    const int steps = 10 + draw(60);
    for (int step = 0; step < steps; ++step) {
      // Mostly read soon, sometimes kept for the way back.
      const int last =
          draw(4) == 0 ? steps - 1 - step / 2 : std::min(steps - 1, step + 1 + draw(3));
      slots.push_back({int64_t{1} << (6 + draw(10)), step, std::max(step, last)});
    }
    slots.push_back({0, 0, steps - 1});
    const ArenaPlan plan = plan_arena(slots);
    expect_disjoint(slots, plan);
    EXPECT_GE(plan.bytes, plan.lower_bound);
    EXPECT_LE(plan.bytes, plan.lower_bound + plan.lower_bound / 10) << program;
  }
}

TEST(MemoryPlan, SaysWhereMostLives) {
  const ArenaPlan plan = plan_arena({{100, 0, 1}, {1000, 2, 3}, {64, 3, 4}});
  EXPECT_EQ(plan.lower_bound, 1024 + 64);
  EXPECT_EQ(plan.bytes, plan.lower_bound);
  EXPECT_EQ(plan.peak_step, 3);
}

TEST(MemoryPlan, OfNothingIsEmpty) {
  EXPECT_EQ(plan_arena({}).bytes, 0);
  EXPECT_EQ(plan_arena({{0, 0, 2}}).bytes, 0);
}

// Where the largest-first order leaves a gap that another order does not: the two ends live with
// the middle, but not with each other.
TEST(MemoryPlan, TriesMoreThanOneOrder) {
  const std::vector<PlannedSlot> slots = {{128, 0, 1}, {192, 1, 2}, {128, 2, 3}, {64, 0, 0},
                                          {64, 3, 3},  {320, 3, 4}, {128, 4, 5}, {256, 5, 6}};
  const ArenaPlan plan = plan_arena(slots);
  expect_disjoint(slots, plan);
  EXPECT_EQ(plan.bytes, plan.lower_bound);
}

}  // namespace
}  // namespace lamella
