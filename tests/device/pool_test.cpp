// The memory pool: alignment, reuse, statistics, limits, guards.
#include "lamella/device/pool.h"

#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lamella/base/error.h"

namespace lamella {
namespace {

using testing::HasSubstr;

TEST(MemoryPool, AlignsEverySizeAndKeepsBlocksApart) {
  MemoryPool pool;
  std::vector<Ref<Allocation>> live;
  for (int64_t size : {0, 1, 63, 64, 65, 511, 512, 513, 1024, 1025, 32768, 32769, 1 << 20}) {
    for (int copies = 0; copies < 3; ++copies) {
      live.push_back(pool.allocate(size));
      EXPECT_EQ(reinterpret_cast<uintptr_t>(live.back()->data()) % 64, 0u);
      EXPECT_EQ(live.back()->size(), size);
      std::memset(live.back()->data(), static_cast<int>(live.size()), static_cast<size_t>(size));
    }
  }
  for (size_t i = 0; i < live.size(); ++i) {
    const auto* bytes = static_cast<const unsigned char*>(live[i]->data());
    for (int64_t j = 0; j < live[i]->size(); ++j) ASSERT_EQ(bytes[j], i + 1);
  }
}

TEST(MemoryPool, HandsFreedMemoryOutAgain) {
  MemoryPool pool;
  for (int64_t size : {100, 5000, 100000, 10 << 20}) {
    void* first = pool.allocate(size)->data();
    const int64_t reserved = pool.statistics().reserved;
    EXPECT_EQ(pool.allocate(size)->data(), first);
    EXPECT_EQ(pool.statistics().reserved, reserved);
  }
}

TEST(MemoryPool, WastesAtMostAQuarterOfALargeBlock) {
  MemoryPool pool;
  void* large = pool.allocate(10 << 20)->data();
  EXPECT_NE(pool.allocate(7 << 20)->data(), large);
  EXPECT_EQ(pool.allocate(9 << 20)->data(), large);
}

TEST(MemoryPool, CountsWhatIsUsed) {
  MemoryPool pool;
  EXPECT_EQ(pool.statistics().fragmentation(), 0.0);
  Ref<Allocation> a = pool.allocate(1000);
  {
    Ref<Allocation> b = pool.allocate(1 << 20);
    EXPECT_EQ(pool.statistics().used, 1000 + (1 << 20));
  }
  MemoryStatistics statistics = pool.statistics();
  EXPECT_EQ(statistics.used, 1000);
  EXPECT_EQ(statistics.peak_used, 1000 + (1 << 20));
  EXPECT_EQ(statistics.allocation_count, 2);
  EXPECT_EQ(statistics.reserved, (1 << 20) + (64 << 10));
  EXPECT_NEAR(statistics.fragmentation(), 1.0 - 1000.0 / ((1 << 20) + (64 << 10)), 1e-12);
  pool.reset_peak();
  EXPECT_EQ(pool.statistics().peak_used, 1000);
}

TEST(MemoryPool, CompactKeepsOnlyWhatIsUsed) {
  MemoryPool pool;
  Ref<Allocation> kept = pool.allocate(100);
  std::memset(kept->data(), 7, 100);
  for (int64_t size : {100, 2000, 30000, 1 << 20}) {
    std::vector<Ref<Allocation>> many;
    for (int i = 0; i < 2000; ++i) many.push_back(pool.allocate(size >> (i % 3)));
  }
  EXPECT_GT(pool.compact(), 1 << 20);
  EXPECT_EQ(pool.statistics().reserved, 64 << 10);
  EXPECT_EQ(static_cast<char*>(kept->data())[99], 7);
  Ref<Allocation> next = pool.allocate(100);
  EXPECT_NE(next->data(), kept->data());
}

TEST(MemoryPool, ReservedIsBoundedByThePeak) {
  MemoryPool pool;
  constexpr int64_t kMegabyte = 1 << 20;
  for (int64_t i = 0; i < 200; ++i) pool.allocate(kMegabyte * (3 + i * 2));
  const MemoryStatistics statistics = pool.statistics();
  EXPECT_LE(statistics.reserved, statistics.peak_used * 5 / 4 + 64 * kMegabyte);
}

TEST(MemoryPool, OutOfMemoryNamesTheHoldersAndLeavesThePoolUsable) {
  MemoryPool pool({.limit = 10 << 20});
  Ref<Allocation> weights = pool.allocate(6 << 20, "weights");
  Ref<Allocation> small = pool.allocate(2000, "bias");
  {
    Ref<Allocation> cached = pool.allocate(3 << 20, "freed");
  }
  try {
    pool.allocate(5 << 20, "activations");
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Memory);
    EXPECT_THAT(error.what(),
                HasSubstr("5.0 MiB (5242880 bytes) asked for activations, 6.0 MiB in use"));
    EXPECT_THAT(error.what(), HasSubstr("of at most 10.0 MiB"));
    EXPECT_THAT(error.what(), HasSubstr("held by weights 6.0 MiB, bias 2.0 KiB"));
    EXPECT_THAT(error.what(), Not(HasSubstr("freed")));
  }
  EXPECT_NE(pool.allocate(3 << 20)->data(), nullptr);
  EXPECT_NE(pool.allocate(100)->data(), nullptr);
}

TEST(MemoryPool, ReportsHoldersWithShapeAndLineAndAddsUpEqualOnes) {
  MemoryPool pool({.limit = 10 << 20});
  const TensorType type{DType::Float32, Layout::RowMajor, {512, 1024}};
  std::vector<Ref<Allocation>> held;
  for (int i = 0; i < 3; ++i)
    held.push_back(pool.allocate(2 << 20, {"conv2d", {"train.py", 31}, type}));
  held[0]->rename_holder("conv1.weight");
  try {
    pool.allocate(5 << 20, {"exp", {"train.py", 40}, type});
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("asked for exp f32[512,1024] (train.py:40)"));
    EXPECT_THAT(error.what(), HasSubstr("held by 2 x conv2d f32[512,1024] (train.py:31) 4.0 MiB, "
                                        "conv1.weight f32[512,1024] (train.py:31) 2.0 MiB"));
    EXPECT_EQ(error.location().line, 40);
  }
}

TEST(MemoryPool, TakesAnotherLimitWhileItIsUsed) {
  MemoryPool pool({.limit = 10 << 20});
  const Ref<Allocation> kept = pool.allocate(6 << 20);
  pool.set_limit(20 << 20);
  {
    const Ref<Allocation> more = pool.allocate(12 << 20);
  }
  EXPECT_EQ(pool.limit(), 20 << 20);
  EXPECT_GE(pool.statistics().peak_reserved, 18 << 20);
  pool.set_limit(7 << 20);
  EXPECT_THROW(pool.allocate(5 << 20), Error);
  EXPECT_NE(pool.allocate(1 << 19)->data(), nullptr);
  EXPECT_THROW(pool.set_limit(-1), Error);
  pool.compact();
  pool.reset_peak_reserved();
  EXPECT_EQ(pool.statistics().peak_reserved, pool.statistics().reserved);
}

TEST(MemoryPool, TellsAListenerOfEveryAllocation) {
  struct Listener final : AllocationListener {
    void allocated(const Allocation& made) noexcept override { bytes += made.size(); }
    void released(const Allocation& freed) noexcept override { bytes -= freed.size(); }
    int64_t bytes = 0;
  };
  Listener listener;
  MemoryPool pool;
  pool.set_listener(&listener);
  const Ref<Allocation> kept = pool.allocate(100);
  {
    const Ref<Allocation> gone = pool.allocate(1 << 20);
  }
  EXPECT_EQ(listener.bytes, 100);
  pool.set_listener(nullptr);
  const Ref<Allocation> unheard = pool.allocate(50);
  EXPECT_EQ(listener.bytes, 100);
  EXPECT_EQ(pool.live().size(), 2u);
}

TEST(MemoryPool, GivesCachedMemoryBackBeforeItFails) {
  MemoryPool pool({.limit = 10 << 20});
  pool.allocate(3 << 20);
  pool.allocate(6 << 20);
  EXPECT_NE(pool.allocate(9 << 20)->data(), nullptr);
}

TEST(MemoryPool, RefusesNegativeSizes) {
  MemoryPool pool;
  EXPECT_THROW(pool.allocate(-1), Error);
}

TEST(MemoryPool, ListsHoldersWhole) {
  MemoryPool pool;
  const Holder vector = {"vector", {"train.py", 1}, {DType::Float32, Layout::RowMajor, {7}}};
  const Holder matrix = {"matrix", {"train.py", 2}, {DType::Int8, Layout::RowMajor, {3, 4, 5}}};
  for (const int64_t size : {100, 1 << 20}) {
    const Ref<Allocation> held = pool.allocate(size, vector);
    std::atomic<bool> ends = false;
    std::thread changes([&] {
      while (!ends) {
        held->set_holder(matrix);
        held->set_holder(vector);
      }
    });
    for (int i = 0; i < 2000; ++i) {
      for (const LiveAllocation& live : pool.live()) {
        const std::string said = text(live.holder);
        EXPECT_TRUE(said == text(vector) || said == text(matrix)) << said;
      }
    }
    ends = true;
    changes.join();
  }
}

TEST(MemoryPool, ServesThreadsThatFreeEachOthersMemory) {
  MemoryPool pool;
  std::vector<Ref<Allocation>> exchange(64);
  std::mutex mutex;
  const auto work = [&](uint32_t seed) {
    std::minstd_rand random(seed);
    for (int i = 0; i < 20000; ++i) {
      Ref<Allocation> mine = pool.allocate(static_cast<int64_t>(random() % 60000));
      *static_cast<char*>(mine->data()) = 1;
      std::lock_guard lock(mutex);
      exchange[random() % exchange.size()] = std::move(mine);
    }
  };
  std::thread other(work, 1u);
  work(2u);
  other.join();
  exchange.clear();
  EXPECT_EQ(pool.statistics().used, 0);
  EXPECT_EQ(pool.statistics().allocation_count, 40000);
  pool.compact();
  EXPECT_EQ(pool.statistics().reserved, 0);
}

TEST(GuardedPoolDeathTest, FaultsOnTheFirstByteOutside) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  MemoryPool end({.guard = GuardMode::End});
  const Ref<Allocation> at_end = end.allocate(1000);
  auto* last = static_cast<volatile char*>(at_end->data()) + 999;
  EXPECT_EQ(*last, '\xFF');
  EXPECT_DEATH(last[1] = 0, "");
  MemoryPool begin({.guard = GuardMode::Begin});
  const Ref<Allocation> at_begin = begin.allocate(1000);
  auto* first = static_cast<volatile char*>(at_begin->data());
  EXPECT_EQ(*first, '\xFF');
  EXPECT_DEATH(first[-1] = 0, "");
  volatile char* freed = static_cast<volatile char*>(end.allocate(10)->data());
  EXPECT_DEATH(freed[0] = 0, "");
}

TEST(GuardedPool, CountsAndLimits) {
  MemoryPool pool({.guard = GuardMode::End, .limit = 1 << 20});
  Ref<Allocation> a = pool.allocate(1000, "a");
  EXPECT_EQ(pool.statistics().used, 1000);
  EXPECT_EQ(pool.statistics().reserved, 8192);
  EXPECT_THROW(pool.allocate(1 << 20), Error);
  a.reset();
  EXPECT_EQ(pool.statistics().reserved, 0);
}

TEST(PoolOptions, ComeFromTheEnvironment) {
  setenv("LAMELLA_GUARD", "2", 1);
  setenv("LAMELLA_MEMORY_LIMIT", "12345", 1);
  const PoolOptions options = pool_options_from_environment();
  EXPECT_EQ(options.guard, GuardMode::Begin);
  EXPECT_EQ(options.limit, 12345);
  setenv("LAMELLA_GUARD", "3", 1);
  EXPECT_THROW(pool_options_from_environment(), Error);
  unsetenv("LAMELLA_GUARD");
  unsetenv("LAMELLA_MEMORY_LIMIT");
}

TEST(Buffer, IsARangeThatKeepsItsAllocation) {
  MemoryPool pool;
  Buffer part = Buffer(pool.allocate(100)).range(10, 50).range(5, 20);
  EXPECT_EQ(part.offset, 15);
  EXPECT_EQ(part.data(), static_cast<char*>(part.allocation->data()) + 15);
  EXPECT_EQ(pool.statistics().used, 100);
  EXPECT_FALSE(part.pinned());
  part.pin();
  EXPECT_TRUE(Buffer(part.allocation).pinned());
  part.unpin();
  EXPECT_FALSE(part.pinned());
  part = {};
  EXPECT_EQ(pool.statistics().used, 0);
}

TEST(ExternalMemory, IsReleasedOnceAtTheEnd) {
  int released = 0;
  char memory[8];
  {
    Buffer buffer = wrap_external(memory, 8, [&] { ++released; });
    Buffer other = buffer.range(4, 4);
    EXPECT_EQ(other.data(), memory + 4);
    buffer = {};
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
}

}  // namespace
}  // namespace lamella
