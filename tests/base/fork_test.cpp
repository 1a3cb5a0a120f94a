// A process that runs parallel loops can be forked: parent and child both go on.
#include "lamella/base/system/fork.h"

#include <atomic>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lamella/base/parallel.h"
#include "lamella/base/system/channel.h"
#include "lamella/base/system/child_process.h"

namespace lamella {
namespace {

#ifdef __SANITIZE_THREAD__
#define SKIP_WITHOUT_THREADS_IN_CHILDREN() \
  GTEST_SKIP() << "the thread sanitizer allows no threads in a forked child"
#else
#define SKIP_WITHOUT_THREADS_IN_CHILDREN()
#endif

int64_t sum_in_parallel(int64_t count) {
  std::atomic<int64_t> sum{0};
  parallel_for(count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) sum += i;
  });
  return sum;
}

// The status with which a child ends that runs `body`.
template <typename Body>
int status_of_child(Body&& body) {
  const int64_t child = fork_process();
  if (child == 0) _exit(body());
  int status = -1;
  EXPECT_EQ(waitpid(static_cast<pid_t>(child), &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Restores the thread count.
class Fork : public testing::Test {
 protected:
  void SetUp() override { set_thread_count(2); }
  void TearDown() override { set_thread_count(threads_); }

 private:
  int threads_ = thread_count();
};

TEST_F(Fork, AHundredChildrenAfterParallelLoops) {
  SKIP_WITHOUT_THREADS_IN_CHILDREN();
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(sum_in_parallel(1000), 499500);
    ASSERT_EQ(status_of_child([] {
                if (thread_count() != 1) return 1;
                if (sum_in_parallel(1000) != 499500) return 2;
                set_thread_count(2);
                return sum_in_parallel(1000) == 499500 ? 0 : 3;
              }),
              0);
  }
}

TEST_F(Fork, AChildOfAChild) {
  SKIP_WITHOUT_THREADS_IN_CHILDREN();
  ASSERT_EQ(sum_in_parallel(1000), 499500);
  EXPECT_EQ(status_of_child([] {
              set_thread_count(2);
              if (sum_in_parallel(1000) != 499500) return 1;
              return status_of_child([] { return sum_in_parallel(1000) == 499500 ? 0 : 2; });
            }),
            0);
}

TEST_F(Fork, WaitsForWorkOfOtherThreads) {
  SKIP_WITHOUT_THREADS_IN_CHILDREN();
  std::mutex lock;
  std::atomic<bool> stop{false};
  std::thread worker([&] {
    while (!stop) {
      const UnforkableWork work;
      const UnforkableWork nested;
      std::lock_guard held(lock);
      sum_in_parallel(100);
    }
  });
  for (int i = 0; i < 100; ++i) {
    // In the child nobody would ever give the lock back.
    EXPECT_EQ(status_of_child([&] { return lock.try_lock() ? 0 : 1; }), 0);
  }
  stop = true;
  worker.join();
}

TEST_F(Fork, ChannelsCarryBytesAndTellOfTheEnd) {
  auto [ours, theirs] = Channel::pair(64);
  const int64_t child = fork_process();
  if (child == 0) {
    ours.close();
    std::byte value;
    while (theirs.receive({&value, 1})) {
      theirs.shared()[0] = value;
      if (!theirs.send({&value, 1})) break;
    }
    _exit(5);
  }
  theirs.close();
  for (int i = 0; i < 3; ++i) {
    std::byte value{static_cast<unsigned char>(i)};
    ASSERT_TRUE(ours.send({&value, 1}));
    ASSERT_TRUE(ours.receive({&value, 1}));
    EXPECT_EQ(value, static_cast<std::byte>(i));
    EXPECT_EQ(ours.shared()[0], value);
  }
  ours.shut_down();
  EXPECT_EQ(reap_process(child), "ended with status 5");
  EXPECT_EQ(reap_process(child), "ended");
  std::byte value{};
  EXPECT_FALSE(ours.receive({&value, 1}));
}

TEST_F(Fork, TheEndOfAKilledChildIsSeen) {
  auto [ours, theirs] = Channel::pair(0);
  const int64_t child = fork_process();
  if (child == 0) {
    for (;;) pause();
  }
  theirs.close();
  kill_process(child);
  std::byte value{};
  EXPECT_FALSE(ours.receive({&value, 1}));
  EXPECT_EQ(reap_process(child), "was killed by signal 9 (Killed)");
}

}  // namespace
}  // namespace lamella
