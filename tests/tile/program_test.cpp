// Whole programs give the interpreter's bits: at sizes around the edges of pieces, steps and
// chunks, with broadcasts and strides, in place, on one thread and on two.
#include "tests/tile/sample_programs.h"

#include "lamella/base/parallel.h"

namespace lamella::tile {
namespace {

constexpr std::array<int64_t, 14> kLengths = {0,  1,    15,   16,   17,   63,   64,
                                              65, 1023, 1024, 1025, 4095, 4096, 4097};

std::string of_size(int64_t n) {
  return "length " + std::to_string(n);
}

TEST(Elementwise, OfEveryLength) {
  for (const int64_t n : kLengths) {
    Case c(axpy_relu(0), {n});
    c.scalars = {float_word(0.7f)};
    expect_compiled_as_interpreted(c, of_size(n));
  }
}

TEST(Elementwise, BroadcastsAlongAnyAxis) {
  // Every subset of three axes for y; one that stands still on the last axis has stride Zero.
  for (int mask = 0; mask < 8; ++mask) {
    const std::vector<bool> moves = {(mask & 1) != 0, (mask & 2) != 0, (mask & 4) != 0};
    const VectorStride stride = moves[2] ? VectorStride::Unit : VectorStride::Zero;
    Case c(axpy_relu(2, VectorStride::Unit, stride), {3, 5, 70});
    c.scalars = {float_word(-1.5f)};
    c.moves[1] = moves;
    expect_compiled_as_interpreted(c, "mask " + std::to_string(mask));
  }
}

TEST(Elementwise, ReadsAndWritesWithAnyStride) {
  for (const DType dtype : kComputeDTypes) {
    Builder b("transpose " + std::string(name(dtype)), 1);
    const ValueId x = b.load_input(dtype, VectorStride::Any);
    b.store_output(x);
    b.store_output(x, VectorStride::Any);
    const Program program = std::move(b).finish();
    for (const auto& shape : {std::pair<int64_t, int64_t>{37, 50}, {1, 3}, {16, 64}}) {
      const int64_t rows = shape.first, columns = shape.second;
      Array input = make_array(dtype, rows * columns, 1, Fill::Bits);
      const auto run = [&](auto execute) {
        std::vector<Array> outputs(2, Array(dtype, rows * columns));
        // The input is read transposed; the second output is written transposed.
        const Launch launch = {.extents = {rows, columns},
                               .buffers = {{input.bytes.data(), {1, rows}},
                                           {outputs[0].bytes.data(), {columns, 1}},
                                           {outputs[1].bytes.data(), {1, rows}}}};
        execute(launch);
        return outputs;
      };
      const auto expected = run([&](const Launch& launch) { interpret(program, launch); });
      expect_same(expected[1], input, "a transposition back");
      for (const InstructionSet set : kSets) {
        if (set > native_instruction_set()) continue;
        const auto actual =
            run([&](const Launch& launch) { run_kernel(*compile(program, set), launch); });
        for (size_t i = 0; i < 2; ++i) expect_same(actual[i], expected[i], set_name(set));
      }
    }
  }
}

// The launch in another order of its outer axes gives the same, and rows whose elements are apart
// come to lie side by side.
TEST(Elementwise, OrdersOuterAxes) {
  Builder b("copy", 3);
  b.store_output(b.load_input(DType::Float32, VectorStride::Any));
  const Program program = std::move(b).finish();
  const int64_t p = 33, h = 3, d = 20, n = 2;
  const Array input = make_array(DType::Float32, n * p * h * d, 1, Fill::Bits);
  Array expected(DType::Float32, n * p * h * d), actual = expected;
  // From [n, h, d, p] to [n, p, h, d].
  const auto launch_into = [&](Array& output) {
    return Launch{.extents = {n, p, h, d},
                  .buffers = {{const_cast<uint8_t*>(input.bytes.data()), {h * d * p, 1, d * p, p}},
                              {output.bytes.data(), {p * h * d, h * d, d, 1}}}};
  };
  interpret(program, launch_into(expected));
  for (const InstructionSet set : kSets) {
    if (set > native_instruction_set()) continue;
    const Ref<const Kernel> kernel = compile(program, set);
    Launch launch = launch_into(actual);
    kernel->order_outer_axes(launch);
    EXPECT_EQ(launch.extents, (std::vector<int64_t>{n, h, p, d}));
    EXPECT_EQ(launch.buffers[0].strides[2], 1);
    run_kernel(*kernel, launch);
    expect_same(actual, expected, set_name(set));
  }
}

TEST(Elementwise, DoesNotReorderAxesThatAreNumbered) {
  Builder b("positions", 2);
  b.store_output(b.iota(0), VectorStride::Any);
  const Ref<const Kernel> kernel = compile(std::move(b).finish(), native_instruction_set());
  Launch launch = {.extents = {5, 7, 9}, .buffers = {{nullptr, {1, 45, 5}}}};
  kernel->order_outer_axes(launch);
  EXPECT_EQ(launch.extents, (std::vector<int64_t>{5, 7, 9}));
}

TEST(Elementwise, ReversesAlongANegativeStride) {
  Builder b("reverse");
  b.store_output(b.load_input(DType::Float32, VectorStride::Any));
  const auto kernel = compile(std::move(b).finish(), native_instruction_set());
  Array input = make_array(DType::Float32, 100, 1), output(DType::Float32, 100);
  kernel->run({.extents = {100},
               .buffers = {{input.bytes.data() + 99 * 4, {-1}}, {output.bytes.data(), {1}}}},
              nullptr);
  for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(output.bits(i), input.bits(99 - i));
}

TEST(Elementwise, UpdatesInPlace) {
  Builder b("in_place");
  const ValueId x = b.load_input(DType::Float32), y = b.load_input(DType::Float32);
  b.store_output(b.apply(Opcode::Add, x, y));
  b.store_output(b.apply(Opcode::Sub, x, y));
  const Program program = std::move(b).finish();
  for (const int64_t n : kLengths) {
    Array x_memory = make_array(DType::Float32, n, 1, Fill::Ordinary);
    Array y_memory = make_array(DType::Float32, n, 2, Fill::Ordinary);
    const Array x_before = x_memory, y_before = y_memory;
    run_kernel(*compile(program, native_instruction_set()),
               {.extents = {n},
                .buffers = {{x_memory.bytes.data(), {1}},
                            {y_memory.bytes.data(), {1}},
                            {x_memory.bytes.data(), {1}},
                            {y_memory.bytes.data(), {1}}}});
    for (int64_t i = 0; i < n; ++i) {
      const auto a = static_cast<float>(x_before.value(i));
      const auto b_value = static_cast<float>(y_before.value(i));
      ASSERT_EQ(static_cast<float>(x_memory.value(i)), a + b_value);
      ASSERT_EQ(static_cast<float>(y_memory.value(i)), a - b_value);
    }
  }
}

TEST(Rows, SoftmaxOfEveryLength) {
  for (const int64_t n : kLengths) {
    if (n == 0) continue;  // a maximum of nothing
    expect_compiled_as_interpreted(Case(softmax(), {3, n}), of_size(n));
  }
  expect_compiled_as_interpreted(Case(softmax(), {2, 3 * 4096 + 77}), "four chunks");
  expect_compiled_as_interpreted(Case(softmax(), {2, 7 * 4096}), "seven chunks");
}

TEST(Rows, SoftmaxOfEveryFloat) {
  for (const DType dtype : {DType::Float16, DType::BFloat16, DType::Float64}) {
    for (const int64_t n : {1, 17, 100, 5000}) {
      expect_compiled_as_interpreted(Case(softmax(dtype), {3, n}), of_size(n));
    }
  }
}

TEST(Rows, InPlace) {
  const Program program = softmax();
  for (const int64_t n : {10, 64, 1000, 5000}) {
    const Case c(program, {4, n});
    const Array expected = c.interpreted()[1];
    Array memory = c.make_arrays()[0];
    run_kernel(*compile(program, native_instruction_set()),
               {.extents = {4, n},
                .buffers = {{memory.bytes.data(), {n, 1}}, {memory.bytes.data(), {n, 1}}}});
    expect_same(memory, expected, of_size(n));
  }
}

TEST(Rows, LayerNormOfEveryLength) {
  for (const int64_t n : kLengths) {
    Case c(layer_norm(), {5, n});
    c.moves[2] = c.moves[3] = {false, true};
    c.scalars = {float_word(n == 0 ? 0 : 1 / static_cast<float>(n))};
    expect_compiled_as_interpreted(c, of_size(n));
  }
}

TEST(Rows, CrossEntropyOfEveryLength) {
  for (const int64_t n : kLengths) {
    if (n == 0) continue;
    expect_compiled_as_interpreted(Case(cross_entropy(), {7, n}), of_size(n));
  }
}

// A sum over what is 0 but at one position is that element, wherever the position lies: within the
// row, in front of it, behind it.
Program picking(DType dtype) {
  Builder b("picking " + std::string(name(dtype)), 1, Reduction::Rows);
  const ValueId position = b.apply(Opcode::Sub, b.iota(0), b.integer_constant(DType::Int64, 3));
  const ValueId x = b.load_input(dtype), zero = b.constant(dtype, 0);
  const ValueId largest = b.apply(Opcode::ReduceMax, x);
  const ValueId below = b.apply(Opcode::Sub, x, largest);
  const ValueId curved = is_float(dtype) ? b.apply(Opcode::Exp, below) : below;
  const ValueId total = b.apply(Opcode::ReduceSum, curved);
  const ValueId here = b.apply(Opcode::Equal, b.iota(1), position);
  const auto pick = [&](ValueId of) {
    const ValueId sum = b.apply(Opcode::ReduceSum, b.select(here, of, zero));
    b.store_output(sum, VectorStride::Zero);
    return sum;
  };
  pick(x);
  const ValueId picked = pick(below);
  pick(curved);
  pick(b.apply(Opcode::Mul, curved, total));
  pick(largest);
  b.store_output(
      b.select(here, zero, b.apply(Opcode::Add, b.apply(Opcode::Mul, x, picked), total)));
  return std::move(b).finish();
}

TEST(Rows, PicksOneElement) {
  for (const DType dtype : kComputeDTypes) {
    if (dtype == DType::Bool) continue;
    for (const int64_t n : {0, 1, 2, 15, 16, 17, 63, 64, 130, 5000}) {
      for (const Fill fill : {Fill::Ordinary, Fill::Special}) {
        expect_compiled_as_interpreted(Case(picking(dtype), {24, n}, fill), of_size(n));
      }
    }
  }
}

// Picks before, in and after the passes that keep a value and find it kept.
TEST(Rows, PicksWhatIsKeptOnlyWhereItIs) {
  const DType f = DType::Float32;
  const auto last_passes = [&](Builder& b, ValueId curved, ValueId scale) {
    const ValueId third = b.apply(Opcode::ReduceMax, b.apply(Opcode::Mul, curved, scale));
    b.store_output(b.apply(Opcode::Mul, curved, third));
    return std::move(b).finish();
  };
  const auto pick = [&](Builder& b, ValueId of) {
    const ValueId here = b.apply(Opcode::Equal, b.iota(1), b.iota(0));
    return b.apply(Opcode::ReduceSum, b.select(here, of, b.constant(f, 0)));
  };
  Builder early("pick before it is kept", 1, Reduction::Rows);
  const ValueId first = early.apply(Opcode::Sigmoid, early.load_input(f));
  const ValueId scale = pick(early, first);
  early.store_output(scale, VectorStride::Zero);
  const Program before = last_passes(early, first, scale);

  Builder late("pick what was kept", 1, Reduction::Rows);
  const ValueId curved = late.apply(Opcode::Sigmoid, late.load_input(f));
  const ValueId total = late.apply(Opcode::ReduceSum, curved);
  const ValueId picked = pick(late, late.apply(Opcode::Mul, curved, total));
  late.store_output(picked, VectorStride::Zero);
  const Program after = last_passes(late, curved, picked);

  for (const int64_t n : {1, 16, 17, 63, 64, 65, 130, 5000}) {
    expect_compiled_as_interpreted(Case(before, {70, n}), of_size(n));
    expect_compiled_as_interpreted(Case(after, {70, n}), of_size(n));
  }
}

TEST(Rows, PicksBeforeItWritesInPlace) {
  const Program program = picking(DType::Float32);
  const size_t last = program.buffers.size() - 1;
  const Case c(program, {24, 20});
  const std::vector<Array> expected = c.interpreted();
  std::vector<Array> arrays = c.make_arrays();
  Launch launch = {.extents = {24, 20}};
  for (size_t i = 0; i < arrays.size(); ++i) {
    const bool of_rows = program.buffers[i].vector_stride == VectorStride::Zero;
    launch.buffers.push_back({arrays[i].bytes.data(), {of_rows ? 1 : 20, of_rows ? 0 : 1}});
  }
  launch.buffers[last].data = launch.buffers[0].data;
  run_kernel(*compile(program, native_instruction_set()), launch);
  for (size_t i = 1; i < last; ++i) expect_same(arrays[i], expected[i], of_size(20));
  expect_same(arrays[0], expected[last], "in place");
}

TEST(Rows, NoRowsAtAll) {
  expect_compiled_as_interpreted(Case(softmax(), {0, 10}), "no rows");
  expect_compiled_as_interpreted(Case(softmax(DType::Float32, 2), {0, 3, 10}), "no rows");
  expect_compiled_as_interpreted(Case(softmax(DType::Float32, 2), {3, 0, 10}), "no rows");
}

TEST(Rows, ReducesWhatDoesNotVaryAlongTheRow) {
  Builder b("constant_sum", 1, Reduction::Rows);
  const ValueId one = b.constant(DType::Float32, 0.1);
  const ValueId row = b.load_input(DType::Float32, VectorStride::Zero);
  b.store_output(b.apply(Opcode::ReduceSum, one), VectorStride::Zero);
  b.store_output(b.apply(Opcode::ReduceProd, row), VectorStride::Zero);
  const Program program = std::move(b).finish();
  for (const int64_t n : kLengths)
    expect_compiled_as_interpreted(Case(program, {3, n}), of_size(n));
}

TEST(Rows, OuterAxesInAnyOrder) {
  Case c(softmax(DType::Float32, 3), {2, 3, 4, 40});
  const std::vector<Array> expected = c.interpreted();
  // Rows of a transposed view: the input's outer axes run backwards through memory.
  for (const InstructionSet set : kSets) {
    if (set > native_instruction_set()) continue;
    std::vector<Array> arrays = c.make_arrays();
    Array permuted(DType::Float32, arrays[0].count());
    const auto from = [](int64_t i, int64_t j, int64_t k) { return ((i * 3 + j) * 4 + k) * 40; };
    const auto to = [](int64_t i, int64_t j, int64_t k) { return ((k * 3 + j) * 2 + i) * 40; };
    for (int64_t i = 0; i < 2; ++i) {
      for (int64_t j = 0; j < 3; ++j) {
        for (int64_t k = 0; k < 4; ++k) {
          for (int64_t e = 0; e < 40; ++e) {
            permuted.set_bits(to(i, j, k) + e, arrays[0].bits(from(i, j, k) + e));
          }
        }
      }
    }
    run_kernel(*compile(c.program, set),
               {.extents = c.extents,
                .buffers = {{permuted.bytes.data(), {40, 80, 240, 1}},
                            {arrays[1].bytes.data(), {480, 160, 40, 1}}}});
    expect_same(arrays[1], expected[1], set_name(set));
  }
}

TEST(Columns, OfEveryShape) {
  for (const int64_t rows : {0, 1, 7, 63, 64, 65, 128, 200, 7 * 64 + 1}) {
    for (const int64_t n : {0, 1, 16, 17, 64, 65, 300}) {
      const Case c(column_sums(1, 1), {rows, n});
      expect_compiled_as_interpreted(c, std::to_string(rows) + " rows, " + of_size(n));
    }
  }
}

TEST(Columns, WithBatchesAndSeveralReducedAxes) {
  expect_compiled_as_interpreted(Case(column_sums(2, 1), {3, 100, 40}), "batches");
  expect_compiled_as_interpreted(Case(column_sums(2, 2), {9, 20, 40}), "two axes");
  expect_compiled_as_interpreted(Case(column_sums(3, 2), {2, 9, 20, 40}), "both");
  expect_compiled_as_interpreted(Case(column_sums(3, 2), {2, 0, 20, 40}), "empty");
  expect_compiled_as_interpreted(Case(column_sums(3, 2), {0, 5, 20, 40}), "no batch");
}

TEST(Columns, StoresRowsAndPositions) {
  Builder b("rows_of_columns", 2, Reduction::Columns, 1);
  const ValueId x = b.load_input(DType::Float32);
  const ValueId row = b.load_input(DType::Float32, VectorStride::Zero);
  b.store_output(b.apply(Opcode::Mul, row, row), VectorStride::Zero);
  const ValueId number =
      b.apply(Opcode::Add, b.apply(Opcode::Mul, b.iota(0), b.iota(1)), b.iota(2));
  const ValueId sum = b.apply(Opcode::ReduceSum, number);
  b.store_output(sum);
  b.store_output(b.apply(Opcode::ReduceMax, b.apply(Opcode::Add, x, row)));
  expect_compiled_as_interpreted(Case(std::move(b).finish(), {3, 70, 90}), "rows");
}

// More work than one thread is given.
TEST(Threads, DoNotChangeBits) {
  std::vector<Case> cases;
  cases.emplace_back(axpy_relu(0), std::vector<int64_t>{300001});
  cases.back().scalars = {float_word(0.3f)};
  cases.emplace_back(axpy_relu(1), std::vector<int64_t>{3, 100001});
  cases.back().scalars = {float_word(0.3f)};
  cases.emplace_back(axpy_relu(2), std::vector<int64_t>{70, 50, 100});
  cases.back().scalars = {float_word(0.3f)};
  cases.emplace_back(softmax(), std::vector<int64_t>{301, 1000});
  cases.emplace_back(softmax(), std::vector<int64_t>{1, 400001});
  cases.emplace_back(cross_entropy(), std::vector<int64_t>{3, 200001});
  for (const int64_t n : {16385, 100000, 7 * 4096, 1000003}) {
    cases.emplace_back(row_sums(), std::vector<int64_t>{1, n});
    cases.emplace_back(row_sums(), std::vector<int64_t>{3, n});
  }
  cases.emplace_back(column_sums(1, 1), std::vector<int64_t>{3000, 200});
  cases.emplace_back(column_sums(1, 1), std::vector<int64_t>{70, 9000});
  cases.emplace_back(column_sums(2, 1), std::vector<int64_t>{5, 1000, 70});
  const int before = thread_count();
  for (const Case& c : cases) {
    set_thread_count(1);
    const std::vector<Array> one = c.compiled(native_instruction_set());
    for (const int threads : {2, 3, 7}) {
      set_thread_count(threads);
      const std::vector<Array> several = c.compiled(native_instruction_set());
      for (size_t i = 0; i < one.size(); ++i) {
        expect_same(several[i], one[i], c.program.name + " on " + std::to_string(threads));
      }
    }
    set_thread_count(before);
    const std::vector<Array> expected = c.interpreted();
    for (size_t i = 0; i < one.size(); ++i) expect_same(one[i], expected[i], c.program.name);
  }
}

TEST(RunAll, IsTheSameAsRunningEach) {
  const auto kernel = compile(axpy_relu(0), native_instruction_set());
  std::vector<Array> inputs, outputs, expected;
  std::vector<Launch> launches;
  for (const int64_t n : {1000, 3, 0, 70000, 17, 200000, 1}) {
    inputs.push_back(make_array(DType::Float32, n, static_cast<uint32_t>(n), Fill::Ordinary));
    outputs.emplace_back(DType::Float32, n);
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    launches.push_back({.extents = {inputs[i].count()},
                        .buffers = {{inputs[i].bytes.data(), {1}},
                                    {inputs[i].bytes.data(), {1}},
                                    {outputs[i].bytes.data(), {1}}},
                        .scalars = {float_word(0.5f)}});
  }
  for (const Launch& launch : launches) interpret(kernel->program(), launch);
  expected = outputs;
  for (Array& output : outputs) std::fill(output.bytes.begin(), output.bytes.end(), uint8_t{0});
  kernel->run_all(launches);
  for (size_t i = 0; i < outputs.size(); ++i) expect_same(outputs[i], expected[i], "run_all");
}

}  // namespace
}  // namespace lamella::tile
