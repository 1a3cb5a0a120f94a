// Matrix products give the definition's bits for every layout, size, dtype, epilogue and thread
// count, and touch nothing outside their matrices.
#include "tests/tile/guarded_copy.h"
#include "tests/tile/sample_programs.h"
#include <fmt/format.h>

#include "lamella/base/parallel.h"
#include "lamella/tile/cpu/matmul_kernel.h"

namespace lamella::tile {
namespace {

enum class Layout : uint8_t { RowMajor, Transposed, Spread };

struct MatmulCase {
  DType input = DType::Float32;
  std::vector<int64_t> batch;
  int64_t rows = 1, columns = 1, depth = 1;
  Layout a = Layout::RowMajor, b = Layout::RowMajor;
  Program epilogue;
  int bias_buffers = 0;

  MatmulProgram program() const {
    return {.input = input, .batch_rank = static_cast<int>(batch.size()), .epilogue = epilogue};
  }
  std::string text() const {
    return fmt::format("{} batch {} {}x{}x{} layouts {} {}", name(input), batch.size(), rows,
                       columns, depth, static_cast<int>(a), static_cast<int>(b));
  }
};

// bias (one a column) added, then relu, then a cast.
Program bias_relu(DType product, DType result, int batch_rank) {
  Builder b("bias_relu", batch_rank + 1);
  const ValueId x = b.load_input(product);
  const ValueId sum = b.apply(Opcode::Add, x, b.load_input(product));
  b.store_output(b.cast(b.apply(Opcode::Max, sum, b.constant(product, 0)), result));
  return std::move(b).finish();
}

int64_t count_batches(const MatmulCase& c) {
  int64_t count = 1;
  for (const int64_t size : c.batch) count *= size;
  return count;
}

// A matrix of each batch in the layout, batches densely one after the other.
MatmulLaunch::Matrix layout_matrix(void* data, const MatmulCase& c, int64_t rows, int64_t columns,
                                   Layout layout) {
  MatmulLaunch::Matrix matrix = {.data = data};
  const int64_t spread = layout == Layout::Spread ? 2 : 1;
  matrix.row_stride = layout == Layout::Transposed ? 1 : columns * spread;
  matrix.column_stride = layout == Layout::Transposed ? rows : spread;
  int64_t stride = rows * columns * spread;
  matrix.batch_strides.resize(c.batch.size());
  for (size_t axis = c.batch.size(); axis-- > 0;) {
    matrix.batch_strides[axis] = stride;
    stride *= c.batch[axis];
  }
  return matrix;
}

// The memory of a launch, on the heap or beside forbidden pages.
class MatmulMemory {
 public:
  explicit MatmulMemory(const MatmulCase& c) : case_(c) {
    const int64_t batches = count_batches(c);
    const auto size = [&](int64_t rows, int64_t columns, Layout layout) {
      return batches * rows * columns * (layout == Layout::Spread ? 2 : 1);
    };
    a_ = make_array(c.input, size(c.rows, c.depth, c.a), 1, Fill::Ordinary);
    b_ = make_array(c.input, size(c.depth, c.columns, c.b), 2, Fill::Ordinary);
    const DType product = product_dtype(c.input);
    bias_ = make_array(product, c.columns, 3, Fill::Ordinary);
    const DType result = c.epilogue.body.empty() ? product : c.epilogue.buffers.back().dtype;
    result_ = Array(result, batches * c.rows * c.columns);
  }

  template <typename Execute>
  Array run(Execute execute) {
    return run_at(execute, a_.bytes.data(), b_.bytes.data(), bias_.bytes.data(),
                  result_.bytes.data());
  }
  template <typename Execute>
  Array run_guarded(Execute execute) {
    const GuardedCopy a(a_, Edge::End), b(b_, Edge::End), bias(bias_, Edge::End);
    const GuardedCopy result(result_, Edge::End);
    run_at(execute, a.data(), b.data(), bias.data(), result.data());
    result.copy_back(result_);
    return result_;
  }

 private:
  template <typename Execute>
  Array run_at(Execute execute, void* a, void* b, void* bias, void* result) {
    const MatmulCase& c = case_;
    MatmulLaunch launch = {.batch = c.batch,
                           .rows = c.rows,
                           .columns = c.columns,
                           .depth = c.depth,
                           .a = layout_matrix(a, c, c.rows, c.depth, c.a),
                           .b = layout_matrix(b, c, c.depth, c.columns, c.b)};
    const auto out = layout_matrix(result, c, c.rows, c.columns, Layout::RowMajor);
    if (c.epilogue.body.empty()) {
      launch.product = out;
    } else {
      Launch::Buffer bias_buffer = {bias, std::vector<int64_t>(c.batch.size() + 1, 0)};
      bias_buffer.strides.push_back(1);
      Launch::Buffer result_buffer = {result, out.batch_strides};
      result_buffer.strides.insert(result_buffer.strides.end(), {out.row_stride, 1});
      launch.buffers = {bias_buffer, result_buffer};
    }
    execute(launch);
    return result_;
  }

  const MatmulCase& case_;
  Array a_, b_, bias_, result_;
};

void run_kernel(const MatmulKernel& kernel, const MatmulLaunch& launch) {
  Array scratch(DType::UInt8, (kernel.scratch_bytes(launch) + 63) / 64 * 64);
  std::fill(scratch.bytes.begin(), scratch.bytes.end(), uint8_t{0xFF});
  kernel.run(launch, GuardedCopy(scratch, Edge::End).data());
}

void expect_defined_bits(const MatmulCase& c, InstructionSet least = InstructionSet::Generic) {
  const Array expected =
      MatmulMemory(c).run([&](const MatmulLaunch& launch) { interpret(c.program(), launch); });
  for (const InstructionSet set : kSets) {
    if (set > native_instruction_set() || set < least) continue;
    const MatmulKernel kernel(c.program(), set);
    const auto execute = [&](const MatmulLaunch& launch) { run_kernel(kernel, launch); };
    expect_same(MatmulMemory(c).run(execute), expected, c.text() + " " + set_name(set));
    expect_same(MatmulMemory(c).run_guarded(execute), expected, c.text() + " " + set_name(set));
  }
}

TEST(Matmul, OfEverySmallSize) {
  for (const int64_t rows : {1, 2, 3, 5, 7, 8, 9, 13, 17}) {
    for (const int64_t columns : {1, 10, 16, 17, 48, 49, 65, 130}) {
      for (const int64_t depth : {0, 1, 3, 4, 17}) {
        expect_defined_bits({.rows = rows, .columns = columns, .depth = depth},
                            InstructionSet::Avx2);
      }
    }
  }
}

TEST(Matmul, OnTheBaselineInstructionSet) {
  for (const DType dtype : {DType::Float32, DType::Float64, DType::BFloat16}) {
    expect_defined_bits({.input = dtype, .rows = 9, .columns = 35, .depth = 20});
    expect_defined_bits(
        {.input = dtype, .rows = 9, .columns = 35, .depth = 20, .b = Layout::Transposed});
  }
}

TEST(Matmul, OfEveryLayoutAndDtype) {
  const auto layouts = {Layout::RowMajor, Layout::Transposed, Layout::Spread};
  for (const DType dtype : {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16}) {
    for (const Layout a : layouts) {
      for (const Layout b : layouts) {
        for (const int64_t rows : {1, 6, 50}) {
          expect_defined_bits(
              {.input = dtype, .rows = rows, .columns = 37, .depth = 45, .a = a, .b = b},
              InstructionSet::Avx2);
        }
      }
    }
  }
}

// Several blocks of rows and depth, several panels of columns.
TEST(Matmul, OfSeveralBlocks) {
  for (const Layout b : {Layout::RowMajor, Layout::Transposed}) {
    expect_defined_bits({.rows = 210, .columns = 150, .depth = 900, .b = b}, InstructionSet::Avx2);
    expect_defined_bits({.rows = 20, .columns = 150, .depth = 900, .a = Layout::Transposed, .b = b},
                        InstructionSet::Avx2);
  }
}

// So few rows of A, so large a B, that B is read in short pieces of rows.
TEST(Matmul, OfFewRowsByALargeMatrix) {
  for (const int64_t rows : {1, 3}) {
    MatmulCase c = {.rows = rows, .columns = 1100, .depth = 2050};
    expect_defined_bits(c, InstructionSet::Avx2);
    c.epilogue = bias_relu(DType::Float32, DType::BFloat16, 0);
    expect_defined_bits(c, InstructionSet::Avx2);
  }
}

TEST(Matmul, OfBatches) {
  expect_defined_bits({.batch = {3, 2}, .rows = 10, .columns = 20, .depth = 30});
  expect_defined_bits(
      {.batch = {5}, .rows = 40, .columns = 33, .depth = 16, .b = Layout::Transposed},
      InstructionSet::Avx2);
  expect_defined_bits({.batch = {0}, .rows = 4, .columns = 3, .depth = 16});
}

TEST(Matmul, WithEpilogue) {
  for (const auto& [input, result] : {std::pair{DType::Float32, DType::Float32},
                                      {DType::BFloat16, DType::BFloat16},
                                      {DType::Float16, DType::Float32},
                                      {DType::Float64, DType::Float32}}) {
    for (const int64_t rows : {1, 7, 100, 250}) {
      for (const int64_t depth : {30, 800}) {
        expect_defined_bits({.input = input,
                             .rows = rows,
                             .columns = 70,
                             .depth = depth,
                             .epilogue = bias_relu(product_dtype(input), result, 0)},
                            InstructionSet::Avx2);
      }
    }
    expect_defined_bits({.input = input,
                         .batch = {2, 3},
                         .rows = 9,
                         .columns = 20,
                         .depth = 10,
                         .epilogue = bias_relu(product_dtype(input), result, 2)});
  }
}

TEST(Matmul, ThreadsDoNotChangeBits) {
  const int before = thread_count();
  const std::vector<MatmulCase> cases = {
      {.rows = 300, .columns = 500, .depth = 100},
      {.rows = 1000, .columns = 30, .depth = 200, .b = Layout::Transposed},
      {.rows = 3, .columns = 2000, .depth = 300},
      {.rows = 800, .columns = 70, .depth = 100, .a = Layout::Transposed},
      {.rows = 100, .columns = 300, .depth = 600, .b = Layout::Transposed},
      {.batch = {3}, .rows = 100, .columns = 100, .depth = 100},
      {.rows = 300,
       .columns = 500,
       .depth = 100,
       .epilogue = bias_relu(DType::Float32, DType::BFloat16, 0)}};
  for (const MatmulCase& c : cases) {
    const MatmulKernel kernel(c.program(), native_instruction_set());
    const auto execute = [&](const MatmulLaunch& launch) { run_kernel(kernel, launch); };
    set_thread_count(1);
    const Array one = MatmulMemory(c).run(execute);
    for (const int threads : {2, 3, 8}) {
      set_thread_count(threads);
      expect_same(MatmulMemory(c).run(execute), one, c.text() + std::to_string(threads));
    }
  }
  set_thread_count(before);
}

TEST(Matmul, PropagatesInfinityAndNan) {
  // The lanes beyond the last column must not leak into it.
  std::vector<float> a = {INFINITY, 0, 1, 2}, b = {1, NAN, 3, 4}, c(4);
  const MatmulKernel kernel({}, native_instruction_set());
  run_kernel(kernel, {.rows = 2,
                      .columns = 2,
                      .depth = 2,
                      .a = {a.data(), {}, 2, 1},
                      .b = {b.data(), {}, 2, 1},
                      .product = {c.data(), {}, 2, 1}});
  EXPECT_EQ(c[0], INFINITY);
  EXPECT_TRUE(std::isnan(c[1]));
  EXPECT_EQ(c[2], 7);
  EXPECT_TRUE(std::isnan(c[3]));
}

}  // namespace
}  // namespace lamella::tile
