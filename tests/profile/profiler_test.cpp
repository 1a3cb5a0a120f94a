// The profiler's life: what is recorded when, and what it writes.
#include "lamella/profile/profiler.h"

#include <filesystem>

#include "tests/files.h"
#include "tests/training_networks.h"
#include "tests/window_limits.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lamella/ops/tensor_operators.h"
#include "lamella/profile/recorder.h"

namespace lamella::profile {
namespace {

using testing::ElementsAre;

TEST(Schedule, RecordsTheActiveStepsOfEachCycle) {
  const Schedule schedule{.wait = 1, .warmup = 1, .active = 2, .repeat = 2, .skip_first = 3};
  std::vector<int64_t> recorded, ends;
  for (int64_t step = 0; step < 20; ++step) {
    if (schedule.records(step)) recorded.push_back(step);
    if (schedule.ends_cycle(step)) ends.push_back(step);
  }
  EXPECT_THAT(recorded, ElementsAre(5, 6, 9, 10));
  EXPECT_THAT(ends, ElementsAre(6, 10));
  EXPECT_THROW((Schedule{.active = 0}.check()), Error);
  EXPECT_THROW((Schedule{.wait = -1}.check()), Error);
}

size_t launches(const Profiler& profiler) {
  size_t count = 0;
  for (const Recording& recording : profiler.recordings()) {
    for (const ThreadRecord& thread : recording.threads) {
      for (const Span& span : thread.spans) count += span.launch >= 0 ? 1 : 0;
    }
  }
  return count;
}

// Work recorded before the start is not the profiled piece's, work pending at the stop is.
TEST(Profiler, SettlesPendingWorkWhereItStartsAndStops) {
  const testing_support::ScopedWindowLimits long_window;
  Profiler profiler({.start_profile = false});
  const Tensor before = ops::exp(ops::normal({8}));
  profiler.start();
  const Tensor inside = ops::normal({8}) + 1.0;
  profiler.stop();
  EXPECT_EQ(launches(profiler), 1u);
  EXPECT_EQ(inside.value()->state(), Value::State::Ready);
}

TEST(Profiler, FollowsItsSchedule) {
  const testing_support::ScopedWindowLimits long_window;
  std::vector<size_t> at_cycle_end;
  Profiler profiler(
      {.schedule = Schedule{.wait = 1, .active = 2, .repeat = 2},
       .on_trace_ready = [&](Profiler& self) { at_cycle_end.push_back(launches(self)); }});
  for (int step = 0; step < 10; ++step) {
    const Tensor one = ops::normal({8}) * 2.0;
    profiler.step();
  }
  EXPECT_THAT(at_cycle_end, ElementsAre(2u, 2u));
  EXPECT_FALSE(is_recording());
}

TEST(Profiler, HandsOverEachRecordingOnce) {
  const testing_support::ScopedWindowLimits long_window;
  std::vector<size_t> received;
  const auto work = [](int times) {
    for (int i = 0; i < times; ++i) ops::normal({8}).wait();
  };
  const auto receive = [&](Profiler& self) { received.push_back(launches(self)); };
  {
    Profiler pieces({.start_profile = false, .on_trace_ready = receive});
    pieces.stop();
    for (int piece : {1, 2}) {
      pieces.start();
      work(piece);
      pieces.stop();
      pieces.stop();
    }
    EXPECT_THAT(received, ElementsAre(1u, 2u));
  }
  received.clear();
  {
    // The last cycle is cut off.
    Profiler cycles({.schedule = Schedule{.active = 3}, .on_trace_ready = receive});
    for (int step = 0; step < 4; ++step) {
      work(1);
      cycles.step();
    }
    cycles.stop();
    EXPECT_THAT(received, ElementsAre(3u, 1u));
  }
  received.clear();
  {
    Profiler gone({.on_trace_ready = receive});
    work(1);
  }
  EXPECT_THAT(received, ElementsAre());
}

// Without anyone who receives them, all cycles are there to be written.
TEST(Profiler, KeepsTheCyclesThatNobodyReceives) {
  const testing_support::ScopedWindowLimits long_window;
  Profiler profiler({.schedule = Schedule{.active = 1, .repeat = 3}});
  for (int step = 0; step < 5; ++step) {
    ops::normal({8}).wait();
    profiler.step();
  }
  EXPECT_EQ(launches(profiler), 3u);
}

TEST(Profiler, WritesItsFilesAndFreesTheRecorder) {
  const TemporaryFolder folder;
  const std::string path = folder / "deep/profile";
  Profiler profiler({.output_path = path, .profile_memory = true});
  EXPECT_TRUE(is_recording());
  const auto training = testing_support::Training::lenet(2);
  training.step();
  profiler.analyse();
  EXPECT_FALSE(is_recording());
  for (const char* name :
       {"timeline.json", "operators.csv", "operators.txt", "layers.csv", "layers.txt", "lines.csv",
        "summary.txt", "memory.csv", "memory_peak.csv", "memory_peak.txt"}) {
    EXPECT_GT(std::filesystem::file_size(std::filesystem::path(path) / name), 0u) << name;
  }
}

TEST(Profiler, StopsWhenItIsGone) {
  {
    Profiler profiler;
  }
  EXPECT_FALSE(is_recording());
}

}  // namespace
}  // namespace lamella::profile
