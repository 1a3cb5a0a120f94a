// Random permutations.
#include "lamella/kernels/permutation.h"

#include <algorithm>
#include <numeric>

#include "tests/kernels/array.h"

#include "lamella/base/philox.h"

namespace lamella::kernels {
namespace {

// The definition, word for word.
std::vector<double> sorted_by_key(uint64_t seed, uint64_t offset, int64_t n) {
  std::vector<std::pair<uint64_t, int64_t>> entries;
  for (int64_t i = 0; i < n; ++i) {
    const PhiloxCounter words = philox_at(seed, offset, static_cast<uint64_t>(i));
    entries.emplace_back(words[0] | static_cast<uint64_t>(words[1]) << 32, i);
  }
  std::sort(entries.begin(), entries.end());
  std::vector<double> order;
  for (const auto& entry : entries) order.push_back(static_cast<double>(entry.second));
  return order;
}

TEST(Permutation, SortsByPhiloxWords) {
  for (int64_t n : {0, 1, 2, 10, 1023, 1024, 1025, 5000, 100000}) {
    for (DType dtype : {DType::Int32, DType::Int64}) {
      Array out(dtype, {n});
      expect_same_bits_for_any_thread_count(out, [&] { permutation(42, 7, out); });
      EXPECT_EQ(out.values(), sorted_by_key(42, 7, n));
    }
  }
}

TEST(Permutation, DependsOnSeedAndOffset) {
  Array out(DType::Int32, {8});
  permutation(0, 0, out);
  EXPECT_EQ(out.values(), sorted_by_key(0, 0, 8));
  const auto first = out.values();
  permutation(0, 1, out);
  EXPECT_NE(out.values(), first);
  permutation(1, 0, out);
  EXPECT_NE(out.values(), first);
}

TEST(Permutation, EveryPlaceIsAsLikely) {
  // The mean of where each of 16 numbers lands over 4000 draws; 5 standard errors around 7.5.
  std::vector<double> sums(16);
  Array out(DType::Int64, {16});
  for (uint64_t offset = 0; offset < 4000; ++offset) {
    permutation(3, offset, out);
    for (int64_t i = 0; i < 16; ++i) {
      sums[static_cast<size_t>(out.flat(i))] += static_cast<double>(i);
    }
  }
  for (double sum : sums) EXPECT_NEAR(sum / 4000, 7.5, 5 * 4.61 / std::sqrt(4000));
}

TEST(Permutation, WritesAnyStride) {
  Array memory(DType::Int64, {20});
  memory.fill_with(-1);
  TensorView every_second = memory;
  every_second.sizes = {10};
  every_second.strides = {2};
  permutation(1, 2, every_second);
  const auto expected = sorted_by_key(1, 2, 10);
  for (int64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(memory.flat(2 * i), expected[static_cast<size_t>(i)]);
    EXPECT_EQ(memory.flat(2 * i + 1), -1);
  }
}

TEST(Permutation, RefusesWhatDoesNotFit) {
  Array matrix(DType::Int64, {2, 2}), floats(DType::Float32, {4});
  message_of(ErrorKind::Value, [&] { permutation(0, 0, matrix); });
  message_of(ErrorKind::Type, [&] { permutation(0, 0, floats); });
  TensorView huge = row_major_view(nullptr, DType::Int32, {int64_t{1} << 32});
  message_of(ErrorKind::Value, [&] { permutation(0, 0, huge); });
}

}  // namespace
}  // namespace lamella::kernels
