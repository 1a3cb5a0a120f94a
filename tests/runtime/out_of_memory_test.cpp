// When memory runs out: the error says who holds it, and the process goes on.
#include "tests/runtime/training_step.h"
#include "tests/window_limits.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lamella/device/pool.h"

namespace lamella {
namespace {

using testing::HasSubstr;
using testing_support::SmallNetwork;

// Leaves `bytes` of memory beside what is in use.
class MemoryLeft {
 public:
  explicit MemoryLeft(int64_t bytes) {
    Window::of_thread().flush();
    cpu_pool().compact();
    cpu_pool().set_limit(cpu_pool().statistics().reserved + bytes);
  }
  ~MemoryLeft() { cpu_pool().set_limit(before_); }
  MemoryLeft(const MemoryLeft&) = delete;

 private:
  const int64_t before_ = cpu_pool().limit();
};

constexpr int64_t kMebibyte = 1 << 20;

Error failure_of(const Tensor& tensor) {
  try {
    tensor.wait();
  } catch (const Error& error) {
    return error;
  }
  throw std::runtime_error("nothing was thrown");
}

TEST(OutOfMemory, NamesTheLargestHoldersWithShapeAndLine) {
  const testing_support::ScopedWindowLimits long_window;
  const int line = __LINE__ + 1;
  const Tensor held = ops::exp(ops::uniform({1024, 1024}, 0.0, 1.0));
  held.wait();
  held.storage()->set_label("backbone.conv1.weight");
  const Tensor small = ops::tanh(ops::uniform({512, 512}, 0.0, 1.0));
  small.wait();
  const MemoryLeft left(2 * kMebibyte);
  const int asking = __LINE__ + 1;
  const Tensor large = ops::square(ops::broadcast_to(held, {4, 1024, 1024}));
  const Error error = failure_of(large);
  EXPECT_EQ(error.kind(), ErrorKind::Memory);
  EXPECT_THAT(error.what(),
              HasSubstr("16.0 MiB (16777216 bytes) asked for square f32[4,1024,1024]"));
  EXPECT_EQ(error.location().line, asking);
  EXPECT_THAT(error.what(), HasSubstr(fmt::format("backbone.conv1.weight f32[1024,1024] ({}:{})",
                                                  __FILE__, line)));
  EXPECT_THAT(error.what(), HasSubstr("tanh f32[512,512]"));
  // What was there still is, and there is memory for more.
  EXPECT_EQ(ops::sum(ops::exp(small)).type().dtype, DType::Float32);
  EXPECT_GT(ops::sum(ops::exp(small)).item(), 0);
}

TEST(OutOfMemory, NamesTheLargestTemporariesOfAWindow) {
  const testing_support::ScopedWindowLimits long_window;
  const Tensor x = ops::uniform({256, 256}, 0.0, 1.0);
  x.wait();
  const MemoryLeft left(2 * kMebibyte);
  const int line = __LINE__ + 1;
  Tensor wide = ops::matmul(ops::broadcast_to(x, {16, 256, 256}), x);
  wide = ops::sum(ops::softmax(wide));
  const Error error = failure_of(wide);
  EXPECT_EQ(error.kind(), ErrorKind::Memory);
  EXPECT_THAT(error.what(), HasSubstr("asked for temporaries of a window"));
  EXPECT_THAT(error.what(),
              HasSubstr(fmt::format("matmul f32[16,256,256] ({}:{})", __FILE__, line)));
}

TEST(OutOfMemory, LeavesATrainingStepUndone) {
  const testing_support::ScopedWindowLimits long_window;
  SmallNetwork network;
  for (int step = 0; step < 3; ++step) {
    network.step(testing_support::batch_inputs(8), testing_support::batch_labels(8)).wait();
  }
  const auto before = testing_support::bytes_of(network.weights[0]);
  const Tensor x = testing_support::batch_inputs(40000),
               labels = testing_support::batch_labels(40000);
  {
    const MemoryLeft left(kMebibyte);
    EXPECT_EQ(failure_of(network.step(x, labels)).kind(), ErrorKind::Memory);
  }
  EXPECT_EQ(testing_support::bytes_of(network.weights[0]), before);
  EXPECT_TRUE(std::isfinite(network.step(x, labels).item()));
  EXPECT_NE(testing_support::bytes_of(network.weights[0]), before);
}

}  // namespace
}  // namespace lamella
