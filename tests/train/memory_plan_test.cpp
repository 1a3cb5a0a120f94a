// What memory a training step takes: as planned, hardly more than must live at once, and no more
// than eager execution.
#include "lamella/runtime/memory_plan.h"

#include "tests/training_networks.h"
#include "tests/window_limits.h"
#include <gtest/gtest.h>

#include "lamella/device/pool.h"
#include "lamella/runtime/counters.h"

namespace lamella::train {
namespace {

using testing_support::Training;

class StepMemory : public testing::TestWithParam<const char*> {
 protected:
  static Training training() {
    set_seed(1);
    const std::string kind = GetParam();
    if (kind == "LeNet") return Training::lenet();
    if (kind == "LSTM") return Training::lstm();
    return Training::transformer();
  }

  // The memory a step takes beside what exists before it.
  static int64_t measured(const Training& training) {
    for (int i = 0; i < 3; ++i) training.step();
    const int64_t before = cpu_pool().statistics().used;
    cpu_pool().reset_peak();
    training.step();
    return cpu_pool().statistics().peak_used - before;
  }
};

TEST_P(StepMemory, IsPlannedCloseToTheLeastAndBelowEagerExecution) {
  const Training whole = training();
  const testing_support::ScopedWindowLimits long_window;
  const int64_t peak = measured(whole);
  const int64_t planned = counters().arena_bytes, least = counters().arena_lower_bound;
  EXPECT_LE(planned, least + least / 20);
  // Beside the arena there are the loss and the counters of steps and draws.
  EXPECT_GE(peak, planned);
  EXPECT_LE(peak, planned + 1024);
  const testing_support::ScopedWindowLimits limits({.fixed = 1});
  const int64_t eager = measured(whole);
  EXPECT_LE(peak, eager + eager / 20);
}

INSTANTIATE_TEST_SUITE_P(Networks, StepMemory, testing::Values("LeNet", "LSTM", "Transformer"),
                         [](const auto& network) { return std::string(network.param); });

}  // namespace
}  // namespace lamella::train
