// The CPU device copies; the null device only counts.
#include "lamella/device/device.h"

#include <cstring>

#include <gtest/gtest.h>

#include "lamella/device/cpu/cpu_device.h"
#include "lamella/device/null/null_device.h"

namespace lamella {
namespace {

TEST(CpuDevice, CopiesBytes) {
  Device& device = cpu_device();
  EXPECT_EQ(device.name(), "cpu");
  Ref<Allocation> a = device.allocate(5), b = device.allocate(5);
  std::memcpy(a->data(), "tile", 5);
  device.copy(b->data(), a->data(), 5);
  device.copy(nullptr, nullptr, 0);
  device.synchronize();
  EXPECT_STREQ(static_cast<char*>(b->data()), "tile");
}

TEST(NullDevice, CountsWithoutMemory) {
  NullDevice device;
  Ref<Allocation> a = device.allocate(int64_t{1} << 50), b = device.allocate(8);
  EXPECT_NE(a->data(), b->data());
  device.copy(b->data(), a->data(), 8);
  device.synchronize();
  EXPECT_EQ(device.bytes_copied(), 8);
  EXPECT_EQ(device.copies(), 1);
  EXPECT_EQ(device.synchronizations(), 1);
  a.reset();
  EXPECT_EQ(device.statistics().used, 8);
  EXPECT_EQ(device.statistics().peak_used, (int64_t{1} << 50) + 8);
  device.reset_peak();
  EXPECT_EQ(device.statistics().peak_used, 8);
}

}  // namespace
}  // namespace lamella
