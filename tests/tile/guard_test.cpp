// Kernels touch no byte outside their buffers: every buffer here ends, or begins, at a page that
// cannot be accessed.
#include "tests/tile/guarded_copy.h"
#include "tests/tile/sample_programs.h"

namespace lamella::tile {
namespace {

void expect_within_bounds(const Case& c) {
  const std::vector<Array> expected = c.interpreted();
  for (const InstructionSet set : kSets) {
    if (set > native_instruction_set()) continue;
    for (const Edge edge : {Edge::End, Edge::Begin}) {
      std::vector<Array> arrays = c.make_arrays();
      std::vector<std::unique_ptr<GuardedCopy>> copies;
      Launch launch = c.make_launch(arrays);
      for (size_t i = 0; i < arrays.size(); ++i) {
        copies.push_back(std::make_unique<GuardedCopy>(arrays[i], edge));
        launch.buffers[i].data = copies[i]->data();
      }
      const auto kernel = compile(c.program, set);
      const Array scratch(DType::UInt8, kernel->scratch_bytes(launch.extents) / 64 * 64 + 64);
      const GuardedCopy scratch_copy(scratch, edge);
      kernel->run(launch, scratch_copy.data());
      for (size_t i = 0; i < arrays.size(); ++i) {
        copies[i]->copy_back(arrays[i]);
        expect_same(arrays[i], expected[i], c.program.name + " " + set_name(set));
      }
    }
  }
}

TEST(Guard, CopiesOfEveryDtype) {
  for (const DType dtype : kComputeDTypes) {
    Builder b("copy " + std::string(name(dtype)), 1);
    b.store_output(b.load_input(dtype));
    const Program program = std::move(b).finish();
    for (const int64_t n : {1, 3, 15, 16, 17, 33, 63, 64, 65, 127}) {
      expect_within_bounds(Case(program, {2, n}, Fill::Bits));
    }
  }
}

TEST(Guard, BroadcastsAndScalars) {
  for (const int64_t n : {1, 5, 16, 31, 64, 100}) {
    for (const VectorStride stride : {VectorStride::Zero, VectorStride::Unit}) {
      Case c(axpy_relu(2, VectorStride::Unit, stride), {2, 3, n});
      c.scalars = {float_word(2)};
      expect_within_bounds(c);
    }
  }
}

TEST(Guard, AnyStride) {
  for (const DType dtype : kComputeDTypes) {
    Builder b("gather " + std::string(name(dtype)), 1);
    const ValueId x = b.load_input(dtype, VectorStride::Any);
    b.store_output(x, VectorStride::Any);
    const Program program = std::move(b).finish();
    for (const int64_t n : {1, 15, 16, 17, 65}) {
      expect_within_bounds(Case(program, {3, n}, Fill::Bits));
    }
  }
}

TEST(Guard, RowPrograms) {
  for (const int64_t n : {1, 10, 16, 17, 63, 64, 65, 1000, 4100}) {
    expect_within_bounds(Case(softmax(), {3, n}));
    expect_within_bounds(Case(softmax(DType::BFloat16), {3, n}));
    expect_within_bounds(Case(cross_entropy(), {2, n}));
    Case c(layer_norm(), {2, n});
    c.moves[2] = c.moves[3] = {false, true};
    c.scalars = {float_word(1 / static_cast<float>(n))};
    expect_within_bounds(c);
  }
}

TEST(Guard, ColumnPrograms) {
  for (const int64_t rows : {1, 8, 65}) {
    for (const int64_t n : {1, 10, 16, 17, 64, 65, 130}) {
      expect_within_bounds(Case(column_sums(1, 1), {rows, n}));
    }
  }
}

}  // namespace
}  // namespace lamella::tile
