// What the tests of the tile layer share: arrays of any dtype, launches of whole arrays, comparison
// of bits.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lamella/tile/builder.h"
#include "lamella/tile/cpu/kernel.h"
#include "lamella/tile/interpreter.h"
#include "lamella/types/half.h"

namespace lamella::tile {

// An array of a dtype in its own memory.
struct Array {
  DType dtype = DType::Float32;
  std::vector<uint8_t> bytes;

  Array() = default;
  Array(DType type, int64_t count)
      : dtype(type), bytes(static_cast<size_t>(count * size_of(type)), 0) {}

  int64_t count() const { return static_cast<int64_t>(bytes.size()) / size_of(dtype); }
  uint64_t bits(int64_t i) const {
    uint64_t word = 0;
    const auto size = static_cast<size_t>(size_of(dtype));
    std::memcpy(&word, bytes.data() + static_cast<size_t>(i) * size, size);
    return word;
  }
  void set_bits(int64_t i, uint64_t word) {
    const auto size = static_cast<size_t>(size_of(dtype));
    std::memcpy(bytes.data() + static_cast<size_t>(i) * size, &word, size);
  }
  // The value in float64; 64-bit integers lose their low bits.
  double value(int64_t i) const {
    const uint64_t word = bits(i);
    switch (dtype) {
      case DType::Float16:
        return float_from_float16_bits(static_cast<uint16_t>(word));
      case DType::BFloat16:
        return float_from_bfloat16_bits(static_cast<uint16_t>(word));
      case DType::Float32:
        return std::bit_cast<float>(static_cast<uint32_t>(word));
      case DType::Float64:
        return std::bit_cast<double>(word);
      case DType::Int8:
        return static_cast<int8_t>(word);
      case DType::Int16:
        return static_cast<int16_t>(word);
      case DType::Int32:
        return static_cast<int32_t>(word);
      case DType::Int64:
        return static_cast<double>(static_cast<int64_t>(word));
      default:
        return static_cast<double>(word);
    }
  }
  void set_value(int64_t i, double value) {
    switch (dtype) {
      case DType::Float16:
        return set_bits(i, float16_bits_from_float(float_round_to_odd(value)));
      case DType::BFloat16:
        return set_bits(i, bfloat16_bits_from_float(float_round_to_odd(value)));
      case DType::Float32:
        return set_bits(i, std::bit_cast<uint32_t>(static_cast<float>(value)));
      case DType::Float64:
        return set_bits(i, std::bit_cast<uint64_t>(value));
      default:
        return set_bits(i, static_cast<uint64_t>(static_cast<int64_t>(value)));
    }
  }
};

inline bool is_nan(DType dtype, uint64_t bits) {
  Array one(dtype, 1);
  one.set_bits(0, bits);
  return is_float(dtype) && std::isnan(one.value(0));
}

// The same bits, except that any NaN equals any other.
inline void expect_same(const Array& actual, const Array& expected, const std::string& what) {
  ASSERT_EQ(actual.count(), expected.count()) << what;
  for (int64_t i = 0; i < actual.count(); ++i) {
    const uint64_t a = actual.bits(i), b = expected.bits(i);
    if (a == b || (is_nan(actual.dtype, a) && is_nan(actual.dtype, b))) continue;
    FAIL() << what << ", element " << i << ": " << std::hex << a << " (" << actual.value(i)
           << ") instead of " << b << " (" << expected.value(i) << ")";
  }
}

// Values around which functions change: zeros, ones, halves, extremes, denormals, infinities, NaN.
inline std::vector<double> special_values(DType dtype) {
  if (dtype == DType::Bool) return {0, 1};
  if (!is_float(dtype)) {
    std::vector<double> values = {0, 1, 2, 3, 5, 7, 10, 64, 100, 127};
    if (!is_unsigned(dtype)) {
      for (const double v : {-1, -2, -3, -7, -64, -127, -128}) values.push_back(v);
    }
    return values;
  }
  std::vector<double> values = {0.0,
                                -0.0,
                                1,
                                -1,
                                0.5,
                                -0.5,
                                1.5,
                                -1.5,
                                2.5,
                                -2.5,
                                2,
                                -2,
                                3,
                                -3,
                                0.25,
                                0.55,
                                0.56,
                                0.92,
                                0.93,
                                4,
                                9,
                                10,
                                20,
                                -20,
                                40,
                                88,
                                89,
                                -87,
                                -88,
                                -100,
                                -104,
                                0.1,
                                -0.1,
                                1e-3,
                                1e-5,
                                3.14159274,
                                1.57079637,
                                65504,
                                65536,
                                1e5,
                                1e10,
                                8388608.5,
                                0x1p-14,
                                0x1p-24,
                                0x1p-126,
                                0x1p-130,
                                -0x1p-140,
                                0x1p-149,
                                0x1p-133,
                                3e38,
                                -3e38,
                                std::numeric_limits<double>::infinity(),
                                -std::numeric_limits<double>::infinity(),
                                std::numeric_limits<double>::quiet_NaN()};
  if (dtype == DType::Float64) {
    for (const double v : {0x1p-1022, 0x1p-1074, 1e308, -1e308, 709.0, -745.0}) values.push_back(v);
  }
  return values;
}

enum class Fill : uint8_t { Special, Bits, Ordinary };

// Special values first (all pairs of them meet if the arrays have different `phase`), then random
// bits and ordinary numbers.
inline Array make_array(DType dtype, int64_t count, uint32_t seed, Fill fill = Fill::Special) {
  Array array(dtype, count);
  std::mt19937_64 random(seed);
  const std::vector<double> specials = special_values(dtype);
  const auto ordinary = [&](int64_t i) {
    const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
    if (dtype == DType::Bool) return array.set_bits(i, random() & 1);
    if (is_float(dtype)) return array.set_value(i, (unit - 0.5) * 6);
    array.set_value(
        i, std::floor(unit * (is_unsigned(dtype) ? 100 : 200) - (is_unsigned(dtype) ? 0 : 100)));
  };
  for (int64_t i = 0; i < count; ++i) {
    const bool special = fill == Fill::Special && random() % 4 != 0;
    if (special) {
      array.set_value(i, specials[random() % specials.size()]);
    } else if (fill == Fill::Ordinary || random() % 2 == 0) {
      ordinary(i);
    } else {
      array.set_bits(i, dtype == DType::Bool ? random() & 1 : random());
    }
  }
  return array;
}

// Row-major strides for the axes of `extents` a buffer moves along; 0 where `moves` is false.
inline std::vector<int64_t> strides_of(const std::vector<int64_t>& extents,
                                       const std::vector<bool>& moves) {
  std::vector<int64_t> strides(extents.size(), 0);
  int64_t next = 1;
  for (size_t i = extents.size(); i-- > 0;) {
    if (!moves[i]) continue;
    strides[i] = next;
    next *= extents[i];
  }
  return strides;
}
inline int64_t count_of(const std::vector<int64_t>& extents, const std::vector<bool>& moves) {
  int64_t count = 1;
  for (size_t i = 0; i < extents.size(); ++i) count *= moves[i] ? extents[i] : 1;
  return count;
}

// Scratch memory as run() wants it.
inline void run_kernel(const Kernel& kernel, const Launch& launch) {
  std::vector<uint8_t> scratch(static_cast<size_t>(kernel.scratch_bytes(launch.extents)) + 64);
  const auto address = (reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64;
  kernel.run(launch, reinterpret_cast<void*>(address));
}

// One launch of a program over dense arrays. `moves[buffer]` says along which axes a buffer moves.
struct Case {
  Program program;
  std::vector<int64_t> extents;
  std::vector<std::vector<bool>> moves;
  std::vector<uint64_t> scalars;
  Fill fill = Fill::Ordinary;

  // All buffers move along every axis, except Zero-stride ones along the vector axis and results of
  // column reductions along the reduced axes.
  Case(Program p, std::vector<int64_t> sizes, Fill how = Fill::Ordinary)
      : program(std::move(p)), extents(std::move(sizes)), fill(how) {
    const std::vector<Place> where = places(program);
    for (size_t buffer = 0; buffer < program.buffers.size(); ++buffer) {
      std::vector<bool> axes(extents.size(), true);
      if (program.buffers[buffer].vector_stride == VectorStride::Zero) axes.back() = false;
      for (size_t i = 0; i < program.body.size(); ++i) {
        if (program.body[i].opcode != Opcode::Store || where[i] != Place::Column) continue;
        if (static_cast<size_t>(program.body[i].index) != buffer) continue;
        for (int axis = program.outer_rank - program.reduced_rank; axis < program.outer_rank;
             ++axis)
          axes[static_cast<size_t>(axis)] = false;
      }
      moves.push_back(axes);
    }
  }

  std::vector<Array> make_arrays() const {
    std::vector<Array> arrays;
    for (size_t i = 0; i < program.buffers.size(); ++i) {
      const int64_t count = count_of(extents, moves[i]);
      const auto seed = static_cast<uint32_t>(17 * i + static_cast<size_t>(count));
      arrays.push_back(program.buffers[i].access == Access::Read
                           ? make_array(program.buffers[i].dtype, count, seed, fill)
                           : Array(program.buffers[i].dtype, count));
    }
    return arrays;
  }
  Launch make_launch(std::vector<Array>& arrays) const {
    Launch launch = {.extents = extents, .scalars = scalars};
    for (size_t i = 0; i < arrays.size(); ++i) {
      launch.buffers.push_back({arrays[i].bytes.data(), strides_of(extents, moves[i])});
    }
    return launch;
  }

  std::vector<Array> interpreted() const {
    std::vector<Array> arrays = make_arrays();
    interpret(program, make_launch(arrays));
    return arrays;
  }
  std::vector<Array> compiled(InstructionSet set) const {
    std::vector<Array> arrays = make_arrays();
    run_kernel(*compile(program, set), make_launch(arrays));
    return arrays;
  }
};

constexpr std::array kSets = {InstructionSet::Generic, InstructionSet::Avx2,
                              InstructionSet::Avx512};
inline std::string set_name(InstructionSet set) {
  return std::array{"generic", "avx2", "avx512"}[static_cast<size_t>(set)];
}

// Every instruction set of this machine gives the interpreter's bits.
inline void expect_compiled_as_interpreted(const Case& c, const std::string& what) {
  const std::vector<Array> expected = c.interpreted();
  for (const InstructionSet set : kSets) {
    if (set > native_instruction_set()) continue;
    const std::vector<Array> actual = c.compiled(set);
    for (size_t i = 0; i < actual.size(); ++i) {
      expect_same(
          actual[i], expected[i],
          what + " (" + c.program.name + ") " + set_name(set) + " buffer " + std::to_string(i));
    }
  }
}

}  // namespace lamella::tile
