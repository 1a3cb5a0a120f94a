// The tables, on recordings whose times are known.
#include "lamella/profile/cost_table.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lamella/ir/operator.h"
#include "lamella/profile/time_shares.h"

namespace lamella::profile {
namespace {

using testing::HasSubstr;

constexpr int64_t kMillisecond = 1'000'000;

OperationShare share(const char* op, double part, const char* layer = nullptr, double flops = 0) {
  return {.op = &find_operator(op),
          .provenance = {.layer = layer},
          .line = {"train.py", 7},
          .flops = flops,
          .share = part};
}

Span launch(int32_t kind, int64_t begin, int64_t end) {
  return {.begin = begin * kMillisecond, .end = end * kMillisecond, .launch = kind};
}
Span activity(Activity what, int64_t begin, int64_t end) {
  return {.begin = begin * kMillisecond, .end = end * kMillisecond, .activity = what};
}

// A product alone, twice; a kernel of exp and mul; a loop of 10 ms that holds 6 ms of tanh.
Recording known() {
  Recording recording{.began = 0, .ended = 100 * kMillisecond};
  recording.threads = {ThreadRecord{
      .spans = {activity(Activity::DataWait, 5, 10), activity(Activity::Flush, 10, 60),
                activity(Activity::GraphLookup, 10, 12), activity(Activity::GraphCompile, 11, 12),
                launch(0, 12, 20), launch(0, 20, 26), launch(1, 30, 34), launch(2, 40, 50),
                launch(3, 41, 45), launch(3, 46, 48)},
      .launches = {{.operations = {share("matmul", 1, "a.fc", 7e6)}, .bytes = 100},
                   {.operations = {share("exp", 0.75, "a"), share("mul", 0.25, "b")}, .bytes = 40},
                   {.operations = {share("scan", 1, "b")}, .bytes = 10},
                   {.operations = {share("tanh", 1, "b.cell")}, .bytes = 20}}}};
  return recording;
}

std::vector<std::string> order(const std::vector<CostRow>& rows) {
  std::vector<std::string> names;
  for (const CostRow& row : rows) names.push_back(row.name);
  return names;
}

TEST(CostTable, SortsOperatorsByTheirOwnTime) {
  const Recording recording = known();
  const auto rows = cost_table({&recording, 1}, CostKey::Operator);
  EXPECT_EQ(order(rows), (std::vector<std::string>{"matmul", "tanh", "scan", "exp", "mul"}));
  EXPECT_EQ(rows[0].count, 2);
  EXPECT_NEAR(rows[0].self, 14e-3, 1e-12);
  EXPECT_NEAR(rows[0].mean, 7e-3, 1e-12);
  EXPECT_NEAR(rows[0].longest, 8e-3, 1e-12);
  EXPECT_NEAR(rows[0].bytes, 200, 1e-9);
  EXPECT_NEAR(rows[0].gflops(), 1, 1e-9);  // 14e6 in 14 ms
  EXPECT_NEAR(rows[2].total, 10e-3, 1e-12);
  EXPECT_NEAR(rows[2].self, 4e-3, 1e-12);
  EXPECT_NEAR(rows[3].self, 3e-3, 1e-12);
  EXPECT_NEAR(rows[4].self, 1e-3, 1e-12);
  EXPECT_NEAR(rows[3].bytes, 30, 1e-9);
}

TEST(CostTable, AddsInnerLayersToTheTotalOfOuterOnes) {
  const Recording recording = known();
  const auto rows = cost_table({&recording, 1}, CostKey::Layer);
  EXPECT_EQ(order(rows), (std::vector<std::string>{"a.fc", "b.cell", "b", "a"}));
  EXPECT_NEAR(rows[3].total, 17e-3, 1e-12);
  EXPECT_NEAR(rows[3].self, 3e-3, 1e-12);
  EXPECT_NEAR(rows[2].total, 11e-3, 1e-12);
  EXPECT_NEAR(rows[2].self, 5e-3, 1e-12);
}

// Whatever the rows are: they are about operations, and a layer's total also about other layers'.
TEST(CostTable, GivesTheMeanOfTheOperationsItCounts) {
  const Recording recording = known();
  for (CostKey key : {CostKey::Operator, CostKey::Layer, CostKey::Line}) {
    for (const CostRow& row : cost_table({&recording, 1}, key)) {
      EXPECT_LE(row.mean, row.longest) << row.name;
      EXPECT_LE(row.self, row.mean * static_cast<double>(row.count) + 1e-12) << row.name;
    }
  }
  const auto layers = cost_table({&recording, 1}, CostKey::Layer);
  EXPECT_NEAR(layers[3].mean, 3e-3, 1e-12);
  EXPECT_NEAR(layers[2].mean, 11e-3 / 2, 1e-12);
}

// A layer that computes nothing but its layers has no operations of its own.
TEST(CostTable, GivesLayersOfLayersRows) {
  Recording recording = known();
  recording.threads[0].launches[1].operations = {share("exp", 1, "other")};
  const auto rows = cost_table({&recording, 1}, CostKey::Layer);
  const auto outer =
      std::find_if(rows.begin(), rows.end(), [](const CostRow& row) { return row.name == "a"; });
  ASSERT_NE(outer, rows.end());
  EXPECT_NEAR(outer->total, 14e-3, 1e-12);
  EXPECT_EQ(outer->count, 0);
  EXPECT_EQ(outer->mean, 0);
}

TEST(CostTable, SaysHowFusedKernelsWereSplit) {
  const Recording recording = known();
  const auto rows = cost_table({&recording, 1}, CostKey::Operator);
  const std::string table = text(rows, CostKey::Operator);
  EXPECT_THAT(table, HasSubstr("split among them"));
  EXPECT_THAT(table, HasSubstr("matmul"));
  EXPECT_THAT(csv(rows, CostKey::Operator),
              HasSubstr("\nmatmul,2,14.000000,14.000000,7.000000,8."));
  const auto lines = cost_table({&recording, 1}, CostKey::Line);
  EXPECT_THAT(csv(lines, CostKey::Line), HasSubstr("\ntrain.py:7,7,"));
}

TEST(TimeShares, AddUpToTheWhole) {
  const Recording recording = known();
  const TimeShares shares = time_shares({&recording, 1});
  EXPECT_NEAR(shares.whole, 100e-3, 1e-12);
  EXPECT_NEAR(shares.kernels, 28e-3, 1e-12);
  EXPECT_NEAR(shares.compiling, 1e-3, 1e-12);
  EXPECT_NEAR(shares.runtime, 21e-3, 1e-12);
  EXPECT_NEAR(shares.data, 5e-3, 1e-12);
  EXPECT_NEAR(shares.program, 45e-3, 1e-12);
  EXPECT_THAT(text(shares), HasSubstr("Most time goes to the program itself"));
  EXPECT_EQ(text(time_shares({})), "Nothing was recorded.\n");
  const auto intervals = program_intervals(recording.threads[0], recording);
  ASSERT_EQ(intervals.size(), 2u);
  EXPECT_EQ(intervals[1].begin, 60 * kMillisecond);
}

}  // namespace
}  // namespace lamella::profile
