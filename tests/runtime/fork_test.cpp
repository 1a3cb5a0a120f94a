// A child of fork computes with what the parent has computed, in one thread, and is told of what
// the parent has not.
#include "lamella/base/system/fork.h"

#include <atomic>
#include <thread>

#include "tests/files.h"
#include "tests/thread_count.h"
#include "tests/window_limits.h"
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lamella/base/parallel.h"
#include "lamella/ir/tensor.h"
#include "lamella/ir/window.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/tensor_operators.h"

namespace lamella {
namespace {

template <typename Body>
int status_of_child(Body&& body) {
  const int64_t child = fork_process();
  if (child == 0) {
    int status = 99;
    try {
      status = body();
    } catch (const std::exception& error) {
      std::fputs(error.what(), stderr);
    }
    _exit(status);
  }
  int status = -1;
  EXPECT_EQ(waitpid(static_cast<pid_t>(child), &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class Fork : public testing::Test {
  const testing_support::ScopedWindowLimits long_window_;
  const testing_support::ScopedThreadCount threads_{2};

 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "the thread sanitizer allows no threads in a forked child";
#endif
  }
};

// Large enough that the parent's kernels run in its threads.
Tensor product() {
  const Tensor x = Tensor::from_vector<float>({256, 256}, std::vector<float>(65536, 0.5f));
  return ops::matmul(x, ops::tanh(x));
}

TEST_F(Fork, ChildrenRunKernelsThatTheParentHasRun) {
  const std::vector<float> expected = product().to_vector<float>();
  for (int i = 0; i < 20; ++i) {
    const Tensor ready = product();
    ready.wait();
    ASSERT_EQ(status_of_child([&] {
                if (ready.to_vector<float>() != expected) return 1;
                if (product().to_vector<float>() != expected) return 2;
                set_thread_count(2);
                return product().to_vector<float>() == expected ? 0 : 3;
              }),
              0);
  }
}

TEST_F(Fork, AForkWaitsForAnotherThreadsStep) {
  const std::vector<float> expected = product().to_vector<float>();
  std::atomic<bool> stop{false};
  std::thread trainer([&] {
    while (!stop) product().wait();
  });
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(status_of_child([&] { return product().to_vector<float>() == expected ? 0 : 1; }), 0);
  }
  stop = true;
  trainer.join();
}

TEST_F(Fork, WhatWasPendingIsAnErrorInTheChildAndNotInTheParent) {
  const Tensor x = Tensor::from_vector<float>({2}, std::vector<float>{1, 2});
  const Tensor pending = x + 1.0;
  EXPECT_EQ(status_of_child([&] {
              for (const auto& read : {std::function<void()>([&] { pending.to_vector<float>(); }),
                                       std::function<void()>([&] { (void)(pending * 2.0); })}) {
                const Error error = error_of(read);
                if (error.kind() != ErrorKind::Value) return 1;
                if (error.message().find("pending in the process that forked") == std::string::npos)
                  return 2;
              }
              return (x * 2.0).to_vector<float>() == std::vector<float>{2, 4} ? 0 : 3;
            }),
            0);
  EXPECT_EQ(pending.to_vector<float>(), (std::vector<float>{2, 3}));
}

TEST_F(Fork, WhatOtherThreadsHadPendingIsAnErrorToo) {
  std::atomic<int> stage{0};
  Tensor pending;
  std::thread other([&] {
    const testing_support::ScopedWindowLimits long_window;
    pending = Tensor::from_vector<float>({2}, std::vector<float>{1, 2}) + 1.0;
    stage = 1;
    stage.notify_all();
    stage.wait(1);
  });
  stage.wait(0);
  EXPECT_EQ(status_of_child([&] {
              return error_of([&] { pending.to_vector<float>(); }).kind() == ErrorKind::Value ? 0
                                                                                              : 1;
            }),
            0);
  EXPECT_EQ(pending.to_vector<float>(), (std::vector<float>{2, 3}));
  stage = 2;
  stage.notify_all();
  other.join();
}

}  // namespace
}  // namespace lamella
