// What a training run may cost: graphs, kernels, launches, allocations, memory.
#include "lamella/runtime/counters.h"

#include <thread>

#include "tests/errors.h"
#include "tests/memory_growth.h"
#include "tests/runtime/training_step.h"
#include "tests/window_limits.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lamella/device/pool.h"
#include "lamella/tile/cpu/kernel.h"

namespace lamella {
namespace {

using testing_support::batch_inputs;
using testing_support::batch_labels;
using testing_support::bytes_of;
using testing_support::MemoryGrowth;
using testing_support::SmallNetwork;

// What windows save, and when their errors come.
class Counters : public testing::Test {
  const testing_support::ScopedWindowLimits long_window_;
};
class Failure : public Counters {};

// Kernels that had to be compiled, or read from disk because an earlier process compiled them.
int64_t kernels_needed() {
  const tile::KernelCacheStatistics statistics = tile::kernel_cache_statistics();
  return statistics.compiled + statistics.disk_hits;
}

TEST_F(Counters, ManyBatchSizesShareThreeGraphsAndNoKernelIsCompiledAfterThem) {
  SmallNetwork network;
  const int64_t graphs = counters().graphs;
  int64_t kernels = 0;
  for (int64_t batch = 2; batch < 502; ++batch) {
    network.step(batch_inputs(batch), batch_labels(batch)).wait();
    if (batch == 4) kernels = kernels_needed();
  }
  EXPECT_LE(counters().graphs - graphs, 3);
  EXPECT_EQ(kernels_needed(), kernels);
}

TEST_F(Counters, ChangingRatesAndDropoutMakeNoNewGraph) {
  SmallNetwork network;
  const Tensor x = batch_inputs(32), labels = batch_labels(32);
  int64_t graphs = 0;
  for (int step = 0; step < 1000; ++step) {
    network.step(x, labels, 1e-3 / (1 + step), 0.1 + 1e-4 * step).wait();
    if (step == 1) graphs = counters().graphs;
  }
  EXPECT_EQ(counters().graphs, graphs);
}

TEST_F(Counters, AnAdamStepIsOneLaunchThatAllocatesNothing) {
  SmallNetwork network;
  std::vector<Tensor> gradients;
  for (const Tensor& weight : network.weights) {
    gradients.push_back(ops::uniform(weight.shape(), -1.0, 1.0));
    gradients.back().wait();
  }
  for (int step = 0; step < 2; ++step) {
    network.update(gradients, 1e-3);
    Window::of_thread().flush();
  }
  const int64_t launches = counters().launches,
                allocations = cpu_pool().statistics().allocation_count;
  network.update(gradients, 1e-3);
  Window::of_thread().flush();
  EXPECT_EQ(counters().launches - launches, 1);
  EXPECT_EQ(cpu_pool().statistics().allocation_count, allocations);
}

TEST_F(Counters, TheArenaMeasuredIsTheOnePlanned) {
  SmallNetwork network;
  const Tensor x = batch_inputs(64), labels = batch_labels(64);
  for (int step = 0; step < 3; ++step) network.step(x, labels).wait();
  const int64_t before = cpu_pool().statistics().used;
  cpu_pool().reset_peak();
  const Tensor loss = network.step(x, labels);
  Window::of_thread().flush();
  // Beside the arena only the loss is new: weights and moments are written in place.
  EXPECT_EQ(cpu_pool().statistics().peak_used - before,
            counters().arena_bytes + size_of(loss.dtype()));
}

TEST_F(Counters, ASumThatIsNeverReadDoesNotGrow) {
  SmallNetwork network;
  const Tensor x = batch_inputs(4), labels = batch_labels(4);
  Tensor total = Tensor::from_vector<float>({}, {0});
  MemoryGrowth growth;
  for (int step = 0; step < 10000; ++step) {
    total = total + network.loss(x, labels, 0);
    if (step == 1000) growth.begin();
  }
  EXPECT_LE(growth.bytes(), 2 << 20);
  EXPECT_GT(total.item(), 0);
}

TEST_F(Counters, ALongChainNeedsNoDepthAndLittleMemory) {
  Tensor x = Tensor::from_vector<float>({4}, {1, 2, 3, 4});
  MemoryGrowth growth;
  for (int i = 0; i < 100000; ++i) {
    x = x * 0.5 + 1.0;
    if (i == 10000) growth.begin();
  }
  EXPECT_LE(growth.bytes(), 2 << 20);
  x = Tensor();
}

TEST_F(Failure, AFailedStepLeavesEverythingAsItWasAndTheNextOneTrains) {
  SmallNetwork network;
  for (int step = 0; step < 6; ++step) network.step(batch_inputs(8), batch_labels(8)).wait();
  std::vector<std::vector<uint8_t>> before;
  for (const Tensor& tensor : network.state()) before.push_back(bytes_of(tensor));
  const Tensor bad = Tensor::from_vector<int32_t>({8}, {0, 1, 2, 3, 4, 5, 6, 1000});
  const Tensor loss = network.step(batch_inputs(8), bad);
  EXPECT_THROW(loss.wait(), Error);
  EXPECT_THROW(loss.wait(), Error) << "a failed value stays failed";
  for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(bytes_of(network.state()[i]), before[i]);
  const double next = network.step(batch_inputs(8), batch_labels(8)).item();
  EXPECT_TRUE(std::isfinite(next));
  EXPECT_NE(bytes_of(network.weights[0]), before[0]);
}

TEST_F(Failure, OfEachValueIsToldToEveryThread) {
  const Tensor table = Tensor::from_vector<float>({2}, {1, 2});
  const auto row = [&](int32_t number) {
    return ops::embedding(Tensor::from_vector<int32_t>({1}, {number}), table);
  };
  std::vector<Tensor> failed;
  std::thread([&] {
    const testing_support::ScopedWindowLimits long_window;
    for (int32_t number : {7, 8}) {
      failed.push_back(row(number));
      EXPECT_THROW(failed.back().wait(), Error);
    }
  }).join();
  for (size_t i = 0; i < failed.size(); ++i) {
    const auto why = testing::AllOf(testing::HasSubstr("never computed: its run failed"),
                                    testing::HasSubstr(i == 0 ? "index 7" : "index 8"));
    EXPECT_THAT(message_of([&] { failed[i].wait(); }), why);
    EXPECT_THAT(message_of([&] { (failed[i] + 1.0).wait(); }), why);
  }
}

TEST_F(Failure, AViewNeverReachesBeyondItsOperand) {
  const Tensor x = Tensor::from_vector<float>({6}, {0, 1, 2, 3, 4, 5});
  const auto elements = [&](int64_t start, int64_t length, int64_t step) {
    return ops::narrow(x, start, 0, Shape{length}, step).to_vector<float>();
  };
  EXPECT_EQ(elements(1, 3, 2), (std::vector<float>{1, 3, 5}));
  EXPECT_EQ(elements(5, 3, -2), (std::vector<float>{5, 3, 1}));
  EXPECT_THROW(elements(2, 3, 2), Error);
  EXPECT_THROW(elements(3, 3, -2), Error);
  EXPECT_THROW(elements(-1, 1, 1), Error);
  EXPECT_THROW(elements(1 << 30, 1, 1), Error);
  EXPECT_THROW((void)ops::narrow(x, ops::sum(x), 0, Shape{1}), Error) << "a start that is computed";
  EXPECT_THROW(ops::narrow_update(x, 5, x, 0).wait(), Error);
}

TEST_F(Failure, NamesTheOperatorTheIndexAndTheLine) {
  const Tensor table = Tensor::from_vector<float>({3, 1}, {1, 2, 3});
  const Tensor indices = Tensor::from_vector<int32_t>({1}, {7});
  const int line = __LINE__ + 1;
  const Tensor row = ops::gather(table, indices, 0);
  try {
    row.wait();
    FAIL() << "index 7 of 3 must fail";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Index);
    EXPECT_EQ(error.location().line, line);
    EXPECT_NE(error.message().find("index 7"), std::string::npos) << error.message();
  }
}

// The second gather finds the graph of the first one.
TEST_F(Failure, NamesTheLineOfThisUseOfAGraph) {
  const Tensor table = Tensor::from_vector<float>({3, 1}, {1, 2, 3});
  const auto line_of_failure = [&](const Tensor& row) {
    try {
      row.wait();
    } catch (const Error& error) {
      return error.location().line;
    }
    return 0;
  };
  const Tensor indices = Tensor::from_vector<int32_t>({1}, {7});
  const int line = __LINE__ + 1;
  const Tensor first = ops::gather(table, indices, 0);
  EXPECT_EQ(line_of_failure(first), line);
  const Tensor second = ops::gather(table, indices, 0);
  EXPECT_EQ(line_of_failure(second), line + 2);
}

// What a composite is made of comes from the line that called it.
TEST_F(Failure, NamesTheLineOfAComposite) {
  const Tensor logits = Tensor::from_vector<float>({1, 3}, {1, 2, 3});
  const Tensor labels = Tensor::from_vector<int32_t>({1}, {7});
  const int line = __LINE__ + 1;
  const Tensor loss = ops::cross_entropy(logits, labels);
  try {
    loss.wait();
    FAIL() << "class 7 of 3 must fail";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Index);
    EXPECT_EQ(error.location().line, line) << error.what();
  }
}

}  // namespace
}  // namespace lamella
