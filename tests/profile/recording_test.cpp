// What is recorded: every launch with the operations of the program it computes, in their layers,
// phases and lines.
#include <atomic>
#include <set>
#include <thread>

#include "tests/training_networks.h"
#include "tests/window_limits.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lamella/device/pool.h"
#include "lamella/ops/tensor_operators.h"
#include "lamella/profile/cost_table.h"
#include "lamella/profile/memory_history.h"
#include "lamella/profile/profiler.h"
#include "lamella/profile/recorder.h"

namespace lamella::profile {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing_support::ScopedWindowLimits;
using testing_support::Training;

Recording record(const std::function<void()>& program, Memory memory = Memory::Ignored) {
  Window::of_thread().flush();
  start_recording(memory);
  program();
  Window::of_thread().flush();
  return stop_recording();
}

std::vector<const LaunchKind*> launches(const Recording& recording) {
  std::vector<const LaunchKind*> all;
  for (const ThreadRecord& thread : recording.threads) {
    for (const Span& span : thread.spans) {
      if (span.launch >= 0) all.push_back(&thread.launches[static_cast<size_t>(span.launch)]);
    }
  }
  return all;
}

std::set<std::string> names(const std::vector<CostRow>& rows) {
  std::set<std::string> all;
  for (const CostRow& row : rows) all.insert(row.name);
  return all;
}

const CostRow& row(const std::vector<CostRow>& rows, const std::string& name) {
  for (const CostRow& candidate : rows) {
    if (candidate.name == name) return candidate;
  }
  throw std::runtime_error("no row " + name);
}

TEST(Recording, SharesAFusedKernelAmongItsOperationsByTheirCost) {
  const ScopedWindowLimits long_window;
  const Tensor x = ops::normal({64, 100}), y = ops::normal({64, 100});
  y.wait();
  x.wait();
  const Recording recording = record([&] {
    Tensor z = ops::exp(x);
    z = z * y;
    z.wait();
  });
  const auto all = launches(recording);
  ASSERT_EQ(all.size(), 1u);
  const LaunchKind& kind = *all[0];
  EXPECT_EQ(kind.bytes, 3 * 6400 * 4);
  ASSERT_EQ(kind.operations.size(), 2u);
  EXPECT_EQ(kind.operations[0].op->name(), "exp");
  EXPECT_EQ(kind.operations[1].op->name(), "mul");
  EXPECT_EQ(kind.operations[0].flops, 10 * 6400);
  EXPECT_DOUBLE_EQ(kind.operations[0].share, 10.0 / 11);
  EXPECT_DOUBLE_EQ(kind.operations[1].share, 1.0 / 11);
}

// Operators made of others are reported under the name the program called them by.
TEST(Recording, NamesOperatorsAsTheProgramCalledThem) {
  const ScopedWindowLimits long_window;
  const Tensor x = ops::normal({32, 48});
  x.wait();
  const Recording recording = record([&] { ops::softmax(x).wait(); });
  const auto rows = cost_table({&recording, 1}, CostKey::Operator);
  EXPECT_EQ(names(rows), std::set<std::string>{"softmax"});
}

TEST(Recording, CountsTheWorkOfSizesThatAreSymbolsInTheGraph) {
  const Tensor weight = ops::normal({24, 16}), bias = ops::normal({24});
  weight.wait();
  bias.wait();
  for (int64_t batch : {3, 5, 7, 11}) {
    const Tensor x = ops::normal({batch, 16});
    x.wait();
    const Recording recording = record([&] { ops::dense(x, weight, bias).wait(); });
    const auto rows = cost_table({&recording, 1}, CostKey::Operator);
    EXPECT_GE(row(rows, "dense").flops, 2.0 * static_cast<double>(batch) * 24 * 16) << batch;
    EXPECT_LE(row(rows, "dense").flops, 2.2 * static_cast<double>(batch) * 24 * 16) << batch;
  }
}

// A graph that is found again stands for other lines and layers than the one it was compiled for.
TEST(Recording, KnowsEachUseOfOneGraph) {
  const ScopedWindowLimits limits({.fixed = 1});
  const Tensor x = ops::normal({4, 4});
  int first = 0, second = 0;
  const Recording recording = record([&] {
    set_current_layer("left");
    first = __LINE__ + 1;
    ops::tanh(x).wait();
    set_current_layer("right");
    second = __LINE__ + 1;
    ops::tanh(x).wait();
    set_current_layer(nullptr);
  });
  EXPECT_EQ(names(cost_table({&recording, 1}, CostKey::Layer)),
            (std::set<std::string>{"left", "right"}));
  EXPECT_EQ(names(cost_table({&recording, 1}, CostKey::Line)),
            (std::set<std::string>{fmt::format("{}:{}", __FILE__, first),
                                   fmt::format("{}:{}", __FILE__, second)}));
}

TEST(Recording, NamesTheLayersAndPhasesOfATrainingStep) {
  const Training training = Training::lenet(4);
  for (int i = 0; i < 2; ++i) training.step();
  const Recording recording = record([&] { training.step(); });
  const auto rows = cost_table({&recording, 1}, CostKey::Layer);
  EXPECT_THAT(names(rows), Contains(HasSubstr("conv1")));
  EXPECT_THAT(names(rows), Contains(HasSubstr("conv2")));
  EXPECT_THAT(names(rows), Contains(HasSubstr("fc1")));
  double forward = 0, backward = 0, update = 0;
  for (const CostRow& layer : rows) {
    forward += layer.forward;
    backward += layer.backward;
    update += layer.update;
    if (layer.name.ends_with("conv2")) {
      EXPECT_GT(layer.forward, 0);
      EXPECT_GT(layer.backward, 0);
      EXPECT_GT(layer.flops, 0);
    }
  }
  EXPECT_GT(forward, 0);
  EXPECT_GT(backward, 0);
  EXPECT_GT(update, 0);
}

TEST(Recording, FindsTheLaunchesInsideALoop) {
  const Training training = Training::lstm(2, 3);
  training.step();
  const Recording recording = record([&] { training.step(); });
  const auto rows = cost_table({&recording, 1}, CostKey::Operator);
  const CostRow& scan = row(rows, "scan");
  EXPECT_GT(scan.total, scan.self);
  EXPECT_THAT(names(cost_table({&recording, 1}, CostKey::Layer)), Contains(HasSubstr("lstm")));
}

TEST(Recording, AddsUpToTheTimeOfAllLaunches) {
  const Training training = Training::transformer(2, 4);
  training.step();
  const Recording recording = record([&] { training.step(); });
  double launched = 0;
  for (const ThreadRecord& thread : recording.threads) {
    for (const Span& span : thread.spans) {
      EXPECT_GE(span.duration(), 0);
      EXPECT_GE(span.begin, recording.began);
      EXPECT_LE(span.end, recording.ended);
      if (span.launch >= 0) launched += static_cast<double>(span.duration()) * 1e-9;
    }
  }
  for (CostKey key : {CostKey::Operator, CostKey::Layer, CostKey::Line}) {
    double sum = 0;
    for (const CostRow& entry : cost_table({&recording, 1}, key)) sum += entry.self;
    EXPECT_NEAR(sum, launched, launched * 1e-9);
  }
}

TEST(Recording, IsOneAtATime) {
  start_recording(Memory::Ignored);
  EXPECT_THROW(start_recording(Memory::Ignored), Error);
  std::ignore = stop_recording();
  EXPECT_THROW(std::ignore = stop_recording(), Error);
}

TEST(Recording, NamesWhoHoldsMemoryAtThePeak) {
  const ScopedWindowLimits long_window;
  const Tensor kept = ops::normal({256, 256});
  kept.wait();
  int line = 0;
  const auto program = [&] {
    line = __LINE__ + 1;
    const Tensor large = ops::exp(ops::broadcast_to(kept, {16, 256, 256}));
    large.wait();
  };
  const Recording recording = record(program, Memory::Recorded);
  const MemoryPeak peak = memory_peak({&recording, 1});
  ASSERT_FALSE(peak.holders.empty());
  EXPECT_THAT(peak.holders[0].holder, HasSubstr("exp f32[16,256,256]"));
  EXPECT_THAT(peak.holders[0].holder, HasSubstr(fmt::format("recording_test.cpp:{}", line)));
  EXPECT_EQ(peak.holders[0].bytes, 16 * 256 * 256 * 4);
  const auto points = memory_points(recording);
  EXPECT_GE(points.size(), 3u);
  EXPECT_EQ(points.front().used, points.back().used);
}

TEST(Recording, NamesTheTemporariesOfAnArena) {
  const ScopedWindowLimits long_window;
  const Training training = Training::lenet(8);
  for (int i = 0; i < 2; ++i) training.step();
  const Recording recording = record([&] { training.step(); }, Memory::Recorded);
  const MemoryPeak peak = memory_peak({&recording, 1});
  ASSERT_FALSE(peak.in_arena.empty());
  std::vector<std::string> holders, temporaries;
  for (const HeldMemory& held : peak.in_arena) temporaries.push_back(held.holder);
  EXPECT_THAT(temporaries, Contains(HasSubstr("f32[8,6,28,28]")));
  for (const HeldMemory& held : peak.holders) holders.push_back(held.holder);
  EXPECT_THAT(holders, Contains(HasSubstr("fc1.weight f32[120,400]")));
}

TEST(Recording, KnowsOfAllocationsOfOtherThreadsWhenTheyWereMade) {
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      std::vector<Ref<Allocation>> held(64);
      for (size_t turn = 0; !done; ++turn) {
        held[turn * 7 % held.size()] = cpu_pool().allocate(64 + static_cast<int64_t>(turn % 64));
      }
    });
  }
  for (int i = 0; i < 100; ++i) {
    const Recording recording = record([] {}, Memory::Recorded);
    std::set<const Allocation*> live;
    for (const MemoryEvent& event : recording.memory.before) {
      EXPECT_TRUE(live.insert(event.allocation).second);
    }
    for (const MemoryEvent& event : recording.memory.events) {
      if (event.bytes > 0) {
        EXPECT_TRUE(live.insert(event.allocation).second);
      } else {
        EXPECT_EQ(live.erase(event.allocation), 1u);
      }
    }
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
}

// The place in memory of one arena may be that of another one later, or earlier.
TEST(MemoryPeak, NamesTheTemporariesOfTheArenaThatLives) {
  const auto* const place = reinterpret_cast<const Allocation*>(0x1000);
  const auto* const other = reinterpret_cast<const Allocation*>(0x2000);
  const Holder early("early"), late("late");
  Recording recording;
  MemoryRecord& memory = recording.memory;
  memory.holders = {Holder("temporaries"), Holder("weight")};
  const auto arena_at = [&](int64_t time, const Holder& content) {
    memory.arenas.push_back({.allocation = place, .time = time, .contents = {{content, 10}}});
  };
  // The first arena at the place, beside a weight, is the peak; it was told of.
  memory.events = {{1, other, 100, 1, 0}, {2, place, 10, 0, 0}, {4, other, -100, 1, 0},
                   {5, place, -10, 0, 0}, {6, place, 20, 0, 0}, {8, place, -20, 0, 0}};
  arena_at(3, early);
  arena_at(7, late);
  const auto names = [&] {
    std::vector<std::string> all;
    for (const HeldMemory& held : memory_peak({&recording, 1}).in_arena) all.push_back(held.holder);
    return all;
  };
  EXPECT_EQ(names(), std::vector<std::string>{text(early)});
  // It was not, as one before was larger: the later arena's content is not its.
  memory.arenas.erase(memory.arenas.begin());
  EXPECT_EQ(names(), std::vector<std::string>{});
}

}  // namespace
}  // namespace lamella::profile
