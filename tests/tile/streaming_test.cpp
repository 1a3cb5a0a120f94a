// Results written past the caches: the same bits, and only where none would be read from there.
#include "lamella/tile/cpu/streaming.h"

#include "tests/tile/sample_programs.h"

#include "lamella/device/pool.h"

namespace lamella::tile {
namespace {

// The program with all that it writes in rows streamed.
Program all_streamed(Program program) {
  for (BufferParameter& buffer : program.buffers) {
    buffer.streamed = buffer.access == Access::Write && buffer.vector_stride == VectorStride::Unit;
  }
  return program;
}

// What the streaming program writes, in rows that begin at lines, against the interpreter.
void expect_same_bits(const Case& given) {
  const std::vector<Array> expected = given.interpreted();
  Case c = given;
  c.program = all_streamed(given.program);
  const int64_t rows = c.extents[0], length = c.extents[1];
  const int64_t row = (length + 63) / 64 * 64;
  for (const InstructionSet set : kSets) {
    if (set > native_instruction_set()) continue;
    std::vector<Array> arrays = c.make_arrays();
    std::vector<Buffer> lines(arrays.size());
    Launch launch = c.make_launch(arrays);
    for (size_t i = 0; i < arrays.size(); ++i) {
      if (!c.program.buffers[i].streamed) continue;
      lines[i] = cpu_pool().allocate(rows * row * size_of(arrays[i].dtype) + 64, "test");
      const auto address = reinterpret_cast<uintptr_t>(lines[i].data());
      launch.buffers[i] = {reinterpret_cast<void*>((address + 63) / 64 * 64), {row, 1}};
    }
    run_kernel(*compile(c.program, set), launch);
    for (size_t i = 0; i < arrays.size(); ++i) {
      if (c.program.buffers[i].access == Access::Read) continue;
      for (int64_t y = 0; lines[i] && y < rows; ++y) {
        const auto bytes = static_cast<size_t>(length * size_of(arrays[i].dtype));
        std::memcpy(
            arrays[i].bytes.data() + static_cast<size_t>(y) * bytes,
            static_cast<const char*>(launch.buffers[i].data) + y * row * size_of(arrays[i].dtype),
            bytes);
      }
      expect_same(arrays[i], expected[i],
                  c.program.name + " " + set_name(set) + " length " + std::to_string(length));
    }
  }
}

TEST(Streaming, ChangesNoBits) {
  for (const int64_t n : {1, 15, 16, 17, 63, 64, 65, 1000, 4097}) {
    Case elementwise(axpy_relu(1), {3, n});
    elementwise.scalars = {float_word(0.7f)};
    expect_same_bits(elementwise);
    for (const DType dtype : {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16}) {
      expect_same_bits(Case(softmax(dtype), {3, n}));
    }
    Case normalized(layer_norm(), {5, n});
    normalized.moves[2] = normalized.moves[3] = {false, true};
    normalized.scalars = {float_word(1 / static_cast<float>(n))};
    expect_same_bits(normalized);
  }
}

TEST(Streaming, CopiesEveryDtype) {
  for (const DType dtype : kComputeDTypes) {
    Builder b("copy", 1);
    b.store_output(b.load_input(dtype));
    const Program copy = std::move(b).finish();
    for (const int64_t n : {1, 16, 31, 200}) expect_same_bits(Case(copy, {2, n}, Fill::Bits));
  }
}

TEST(Streaming, OfRowsWhoseElementsAreApart) {
  Builder b("transpose", 1);
  b.store_output(b.load_input(DType::Float32, VectorStride::Any));
  const Program transpose = std::move(b).finish();
  for (const int64_t n : {5, 16, 100}) {
    Case c(transpose, {40, n}, Fill::Bits);
    expect_same_bits(c);
  }
}

// Large enough for a kernel to stream by itself: in many rows, and in one that threads share.
TEST(Streaming, OfWhatNoCacheHolds) {
  const int64_t count = int64_t{9} << 21;
  const Array input = make_array(DType::Float32, count, 1, Fill::Bits);
  Builder b("negative", 1);
  b.store_output(b.apply(Opcode::Neg, b.load_input(DType::Float32)));
  const Ref<const Kernel> kernel = compile(std::move(b).finish(), native_instruction_set());
  for (const int64_t rows : {int64_t{1}, int64_t{9} << 10}) {
    const Buffer result = cpu_pool().allocate(count * 4, "test");
    std::memset(result.data(), 0, static_cast<size_t>(count) * 4);
    const int64_t length = count / rows;
    const Launch launch = {.extents = {rows, length},
                           .buffers = {{const_cast<uint8_t*>(input.bytes.data()), {length, 1}},
                                       {result.data(), {length, 1}}}};
    ASSERT_TRUE(may_stream(kernel->program(), launch));
    run_kernel(*kernel, launch);
    const auto* negative = static_cast<const uint32_t*>(result.data());
    int64_t wrong = 0;
    for (int64_t i = 0; i < count; ++i) {
      wrong += (negative[i] ^ uint32_t{1} << 31) != static_cast<uint32_t>(input.bits(i));
    }
    EXPECT_EQ(wrong, 0) << rows;
  }
}

// A launch of the copying program of so many rows of 1024; nothing reads its addresses.
class Decision : public testing::Test {
 protected:
  static constexpr int64_t kManyRows = int64_t{1} << 20;
  static Program copy() {
    Builder b("copy", 1);
    b.store_output(b.load_input(DType::Float32));
    return std::move(b).finish();
  }
  static void* at(uintptr_t address) { return reinterpret_cast<void*>(address); }
  static Launch launch(int64_t rows = kManyRows) {
    return {.extents = {rows, 1024},
            .buffers = {{at(uintptr_t{1} << 40), {1024, 1}}, {at(uintptr_t{2} << 40), {1024, 1}}}};
  }
  static bool streams(const Launch& launch, std::span<const PreparedLaunch> later = {}) {
    return may_stream(program_, launch) && streamed(program_, launch, later).buffers[1].streamed;
  }
  inline static const Program program_ = copy();
};

TEST_F(Decision, LargeResultsOnly) {
  EXPECT_TRUE(streams(launch()));
  EXPECT_FALSE(streams(launch(100)));
  EXPECT_FALSE(streams(launch(0)));
}

TEST_F(Decision, AtLinesOnly) {
  Launch aside = launch();
  aside.buffers[1].data = at((uintptr_t{2} << 40) + 4);
  EXPECT_FALSE(streams(aside));
  Launch narrow = launch();
  narrow.buffers[1].strides[0] = 1025;
  EXPECT_FALSE(streams(narrow));
}

TEST_F(Decision, NotInPlace) {
  Launch in_place = launch();
  in_place.buffers[1].data = in_place.buffers[0].data;
  EXPECT_FALSE(streams(in_place));
}

TEST_F(Decision, NotWhatIsReadAtOnce) {
  const Launch first = launch();
  Launch second = launch();
  second.buffers[0].data = first.buffers[1].data;
  const Ref<const Kernel> kernel = compile(program_, native_instruction_set());
  const PreparedLaunch later = {kernel.get(), &second, nullptr};
  EXPECT_FALSE(streams(first, std::span(&later, 1)));
  second.buffers[0].data = at(uintptr_t{3} << 40);
  EXPECT_TRUE(streams(first, std::span(&later, 1)));
}

TEST_F(Decision, WhatIsReadAgainAndAgainCountsOnce) {
  Launch repeated = launch(int64_t{1} << 10);
  EXPECT_FALSE(streams(repeated));
  repeated.extents[0] = kManyRows;
  repeated.buffers[0].strides[0] = repeated.buffers[1].strides[0] = 0;
  EXPECT_FALSE(streams(repeated));
}

}  // namespace
}  // namespace lamella::tile
