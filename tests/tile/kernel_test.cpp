// Whole kernels give the values their programs say, at sizes around the edges of pieces and chunks.
#include "lamella/tile/cpu/kernel.h"

#include <cmath>

#include <gtest/gtest.h>

#include "lamella/tile/builder.h"

namespace lamella::tile {
namespace {

using Floats = std::vector<float>;

Floats ramp(int64_t count, float scale) {
  Floats values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = scale * (static_cast<float>((i * 37) % 101) - 50.0f);
  }
  return values;
}

void run(const Kernel& kernel, const Launch& launch) {
  std::vector<double> scratch(static_cast<size_t>(kernel.scratch_bytes(launch.extents) / 8 + 16));
  const auto address = (reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64;
  kernel.run(launch, reinterpret_cast<void*>(address));
}

class AllSets : public testing::TestWithParam<InstructionSet> {
 protected:
  void SetUp() override {
    if (GetParam() > native_instruction_set()) GTEST_SKIP() << "this machine lacks the set";
  }
};
INSTANTIATE_TEST_SUITE_P(Tile, AllSets,
                         testing::Values(InstructionSet::Generic, InstructionSet::Avx2,
                                         InstructionSet::Avx512));

TEST_P(AllSets, AddsAndScales) {
  Builder b("axpy");
  const auto scale = b.scalar(b.scalar_parameter(DType::Float32));
  const auto x = b.load_input(DType::Float32), y = b.load_input(DType::Float32);
  b.store_output(b.apply(Opcode::Add, b.apply(Opcode::Mul, scale, x), y));
  const auto kernel = compile(std::move(b).finish(), GetParam());
  for (const int64_t n : {0, 1, 15, 16, 17, 63, 64, 65, 1000, 100000}) {
    Floats first = ramp(n, 0.5f), second = ramp(n, 3), result(static_cast<size_t>(n), -1);
    run(*kernel, {.extents = {n},
                  .buffers = {{first.data(), {1}}, {second.data(), {1}}, {result.data(), {1}}},
                  .scalars = {std::bit_cast<uint32_t>(2.0f)}});
    for (size_t i = 0; i < result.size(); ++i) ASSERT_EQ(result[i], first[i] * 2 + second[i]);
  }
}

TEST_P(AllSets, Softmax) {
  Builder b("softmax", 1, Reduction::Rows);
  const auto x = b.load_input(DType::Float32);
  const auto largest = b.apply(Opcode::ReduceMax, x);
  const auto e = b.apply(Opcode::Exp, b.apply(Opcode::Sub, x, largest));
  const auto sum = b.apply(Opcode::ReduceSum, e);
  b.store_output(b.apply(Opcode::Div, e, sum));
  const auto kernel = compile(std::move(b).finish(), GetParam());
  for (const int64_t n : {1, 10, 16, 63, 64, 65, 1000, 4096, 4097, 20000}) {
    const int64_t rows = 3;
    Floats input = ramp(rows * n, 0.1f), result(static_cast<size_t>(rows * n), -1);
    run(*kernel,
        {.extents = {rows, n}, .buffers = {{input.data(), {n, 1}}, {result.data(), {n, 1}}}});
    for (int64_t row = 0; row < rows; ++row) {
      double largest_value = -1e9, total = 0;
      const auto at = [&](int64_t i) { return static_cast<size_t>(row * n + i); };
      for (int64_t i = 0; i < n; ++i) largest_value = std::max<double>(largest_value, input[at(i)]);
      for (int64_t i = 0; i < n; ++i) total += std::exp(input[at(i)] - largest_value);
      for (int64_t i = 0; i < n; ++i) {
        const double expected = std::exp(input[at(i)] - largest_value) / total;
        ASSERT_NEAR(result[at(i)], expected, 1e-6 * expected) << n << " " << i;
      }
    }
  }
}

TEST_P(AllSets, ColumnSums) {
  Builder b("bias_gradient", 1, Reduction::Columns, 1);
  const auto x = b.load_input(DType::Float32);
  b.store_output(b.apply(Opcode::ReduceSum, x));
  const auto kernel = compile(std::move(b).finish(), GetParam());
  for (const int64_t rows : {0, 1, 7, 64, 65, 200, 1000}) {
    for (const int64_t n : {0, 1, 16, 17, 64, 100, 3000}) {
      Floats input = ramp(rows * n, 1), result(static_cast<size_t>(n), -1);
      run(*kernel,
          {.extents = {rows, n}, .buffers = {{input.data(), {n, 1}}, {result.data(), {0, 1}}}});
      for (int64_t i = 0; i < n; ++i) {
        float sum = 0;
        for (int64_t row = 0; row < rows; ++row) sum += input[static_cast<size_t>(row * n + i)];
        ASSERT_EQ(result[static_cast<size_t>(i)], sum) << rows << "x" << n << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace lamella::tile
