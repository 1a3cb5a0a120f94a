// parallel_for covers its range once, keeps to the grain and passes exceptions on.
#include "lamella/base/parallel.h"

#include <atomic>
#include <stdexcept>
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
