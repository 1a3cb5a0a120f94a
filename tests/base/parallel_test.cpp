// parallel_for covers its range once, keeps to the grain and passes exceptions on.
#include "lamella/base/parallel.h"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace lamella {
namespace {

TEST(ParallelFor, CoversEveryIndexOnce) {
  for (int64_t count : {0, 1, 7, 64, 1000}) {
    for (int64_t grain : {1, 3, 64}) {
      std::vector<std::atomic<int>> hits(static_cast<size_t>(count));
      parallel_for(count, grain, [&](int64_t begin, int64_t end) {
        EXPECT_EQ(begin % grain, 0);
        for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
      });
      for (const auto& hit : hits) EXPECT_EQ(hit, 1);
    }
  }
}

TEST(ParallelFor, TakesWhatASlowThreadHasNotBegun) {
  const int before = thread_count();
  set_thread_count(2);
  constexpr int64_t kCount = 16;
  std::atomic<int64_t> done{0};
  parallel_for(kCount, 1, [&](int64_t begin, int64_t end) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (begin == 0 && done < kCount - end && std::chrono::steady_clock::now() < give_up) {
      std::this_thread::yield();
    }
    if (begin == 0) {
      EXPECT_EQ(done, kCount - end) << "the other thread did not do the rest";
    }
    done += end - begin;
  });
  EXPECT_EQ(done, kCount);
  set_thread_count(before);
}

TEST(ParallelFor, GivesEachCallAThreadOfItsOwn) {
  const int before = thread_count();
  for (const int threads : {1, 2, 3, 70}) {  // also more than processors
    set_thread_count(threads);
    std::vector<std::atomic<bool>> busy(static_cast<size_t>(threads));
    std::atomic<int64_t> sum{0};
    const auto body = [&](int64_t begin, int64_t end, int64_t thread) {
      ASSERT_LT(thread, static_cast<int64_t>(busy.size()));
      EXPECT_FALSE(busy[static_cast<size_t>(thread)].exchange(true));
      sum += end - begin;
      busy[static_cast<size_t>(thread)] = false;
    };
    parallel_for_threads(1000, 1, body, threads);
    EXPECT_EQ(sum, 1000);
    busy = std::vector<std::atomic<bool>>(static_cast<size_t>((threads + 1) / 2));
    parallel_for_threads(1000, 1, body, std::ssize(busy));
    EXPECT_EQ(sum, 2000);
  }
  set_thread_count(before);
}

TEST(ParallelFor, ThrowsWhatABodyThrows) {
  EXPECT_THROW(parallel_for(100, 1, [](int64_t, int64_t) { throw std::runtime_error("body"); }),
               std::runtime_error);
}

TEST(ParallelFor, NestedLoopsRunInTheirThread) {
  std::atomic<int> sum{0};
  parallel_for(8, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      parallel_for(8, 1, [&](int64_t from, int64_t to) { sum += static_cast<int>(to - from); });
    }
  });
  EXPECT_EQ(sum, 64);
}

}  // namespace
}  // namespace lamella
