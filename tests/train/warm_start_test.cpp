// A second start of the same program compiles nothing; a loop over batch sizes does not grow.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/memory_growth.h"
#include <gtest/gtest.h>
#include <unistd.h>

#include "lamella/nn/activation.h"
#include "lamella/nn/container.h"
#include "lamella/nn/convolution.h"
#include "lamella/nn/dense.h"
#include "lamella/nn/loss.h"
#include "lamella/nn/normalization.h"
#include "lamella/nn/pooling.h"
#include "lamella/ops/random.h"
#include "lamella/optim/adam.h"
#include "lamella/tile/cpu/kernel.h"
#include "lamella/train/step.h"

namespace lamella::train {
namespace {

namespace fs = std::filesystem;

Ref<TrainOneStepCell> convolutional_step() {
  const auto net = make_ref<nn::SequentialCell>(std::vector<Ref<nn::Cell>>{
      make_ref<nn::Conv2d>(1, 4, 3), make_ref<nn::BatchNorm2d>(4), make_ref<nn::ReLU>(),
      make_ref<nn::MaxPool2d>(2, 2), make_ref<nn::Flatten>(), make_ref<nn::Dense>(64, 10)});
  const auto loss =
      make_ref<nn::SoftmaxCrossEntropyWithLogits>(nn::Labels::Classes, nn::Reduction::Mean);
  auto step = make_ref<TrainOneStepCell>(make_ref<WithLossCell>(net, loss),
                                         make_ref<optim::Adam>(net->trainable_params()));
  step->set_train(true);
  return step;
}

void run_step(TrainOneStepCell& step, int64_t batch) {
  const Tensor x = ops::uniform({batch, 1, 8, 8}, 0.0, 1.0);
  const Tensor labels = ops::integers({batch}, int64_t{0}, int64_t{10}, DType::Int32);
  EXPECT_TRUE(std::isfinite(step({x, labels})[0].item()));
}

// Only run by the test below, in a process of its own.
TEST(WarmStart, DISABLED_TrainsAndSaysWhatWasCompiled) {
  const auto step = convolutional_step();
  for (int i = 0; i < 3; ++i) run_step(*step, 16);
  const tile::KernelCacheStatistics statistics = tile::kernel_cache_statistics();
  std::ofstream(std::getenv("LAMELLA_TEST_REPORT"))
      << statistics.compiled << " " << statistics.disk_hits;
}

TEST(WarmStart, ASecondProcessCompilesNoKernel) {
  const fs::path folder = fs::temp_directory_path() / fmt::format("lamella-warm-{}", ::getpid());
  const fs::path report = folder / "report";
  fs::create_directories(folder / "cache");
  fs::permissions(folder / "cache", fs::perms::owner_all);
  const std::string command = fmt::format(
      "LAMELLA_CACHE_DIR='{}' LAMELLA_TEST_REPORT='{}' '{}' --gtest_also_run_disabled_tests "
      "--gtest_filter=WarmStart.DISABLED_TrainsAndSaysWhatWasCompiled > /dev/null",
      (folder / "cache").string(), report.string(), fs::read_symlink("/proc/self/exe").string());
  const auto run = [&] {
    EXPECT_EQ(std::system(command.c_str()), 0);
    int64_t compiled = -1, from_disk = -1;
    std::ifstream(report) >> compiled >> from_disk;
    return std::pair(compiled, from_disk);
  };
  const auto [cold_compiled, cold_from_disk] = run();
  const auto [warm_compiled, warm_from_disk] = run();
  EXPECT_GT(cold_compiled, 5);
  EXPECT_EQ(cold_from_disk, 0);
  EXPECT_EQ(warm_compiled, 0);
  EXPECT_GT(warm_from_disk, 5);
  fs::remove_all(folder);
}

TEST(Growth, ALoopOverBatchSizesKeepsItsMemory) {
  const auto step = convolutional_step();
  testing_support::MemoryGrowth growth;
  for (int i = 0; i < 1800; ++i) {
    run_step(*step, 1 + i % 100);
    if (i == 1000) growth.begin();
  }
  EXPECT_LE(growth.bytes(), 2 << 20);
}

}  // namespace
}  // namespace lamella::train
