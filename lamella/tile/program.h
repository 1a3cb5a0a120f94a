// Tile programs: what a fused kernel computes, independent of the device that runs it.
//
// A program runs over a domain of `outer_rank` outer axes and one vector axis (the last). Its body
// is a list of instructions in static single assignment; an instruction's value lives at a Place:
// uniform, one a row (outer index), one an element, or one a column. A reducing program reduces
// along the vector axis (Rows: softmax, layer norm) or over its last `reduced_rank` outer axes
// (Columns: bias gradients, batch norm). Sizes, strides and scalars are run-time arguments, so one
// compiled program serves every batch size.
//
// Bit contract: every instruction rounds its result to its dtype; 16-bit floats compute in float32
// and round once; nothing is reassociated or contracted. Reductions use one tree per length:
//  * Rows: chunks of 4096 elements; within a chunk 64 interleaved lanes (lane = index mod 64, each
//    summed in order), the lanes combined pairwise (lane i with lane i+32, then i+16, ...); chunk
//    results combined pairwise (halves of the index range, the left half the larger power of two).
//  * Columns: blocks of 64 consecutive rows combined in order, block results pairwise likewise.
// A missing lane or row does not take part. Sums of float16/bfloat16 values accumulate in float32.
// Where several NaNs meet, the sign and payload of the result may be any one's.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lamella/base/api.h"
#include "lamella/base/hash.h"
#include "lamella/types/dtype.h"

namespace lamella::tile {

enum class Opcode : uint8_t {
  // Sources.
  Load,      // the element of buffer `index` at the current domain point
  Scalar,    // run-time scalar `index`
  Constant,  // `immediate`, converted to the dtype
  Iota,      // int64: the position along domain axis `index` (outer_rank is the vector axis)
  Random,    // int32: word `index` (0..3) of Philox4x32-10; operands: seed, offset, element (int64)
  // One operand, same dtype.
  Neg,
  Abs,
  Sign,
  Not,  // Not: logical for bool, bitwise for integers
  Floor,
  Ceil,
  Round,
  Trunc,  // Round: halves to even
  Sqrt,
  Rsqrt,
  Reciprocal,
  Exp,
  Expm1,
  Log,
  Log1p,
  Log2,
  Sin,
  Cos,
  Tan,
  Asin,
  Acos,
  Atan,
  Sinh,
  Cosh,
  Tanh,
  Erf,
  Erfc,
  Gaussian,  // exp(-x^2)
  Sigmoid,
  Softplus,
  IsNan,
  IsInf,
  IsFinite,  // give bool
  // Two operands of one dtype.
  Add,
  Sub,
  Mul,
  Div,  // Div: true division of floats; truncating division of integers
  FloorDiv,
  Mod,  // Python's: towards minus infinity, the sign of the divisor
  Pow,
  Atan2,
  Min,
  Max,  // NaN if either is NaN
  And,
  Or,
  Xor,  // logical for bool, bitwise for integers
  Equal,
  NotEqual,
  Less,
  LessEqual,
  Greater,
  GreaterEqual,  // give bool
  // Three operands.
  Select,  // operand 0 (bool) ? operand 1 : operand 2
  Fma,     // operand 0 * operand 1 + operand 2, rounded once (floats)
  // Changes of dtype.
  Cast,     // float to integer truncates and saturates, NaN gives 0; to bool is "not equal to 0"
  Bitcast,  // same size
  // Reductions: give a value a row or a column. Min and Max: NaN if any is NaN.
  ReduceSum,
  ReduceProd,
  ReduceMin,
  ReduceMax,
  // Effect: writes operand 0 to buffer `index`.
  Store,
};

struct Instruction {
  Opcode opcode = Opcode::Constant;
  DType dtype = DType::Float32;                    // of the result; for Store of the buffer
  std::array<int32_t, 3> operands = {-1, -1, -1};  // indices of earlier instructions
  int32_t index = 0;                               // buffer, scalar, axis or word number
  double immediate = 0;                            // Constant of a float dtype
  int64_t immediate_integer = 0;                   // Constant of bool and the integers

  // Immediates compare by their bits, so that NaN equals itself and -0 is not +0.
  friend bool operator==(const Instruction& a, const Instruction& b) {
    return a.opcode == b.opcode && a.dtype == b.dtype && a.operands == b.operands &&
           a.index == b.index && a.immediate_integer == b.immediate_integer &&
           std::bit_cast<uint64_t>(a.immediate) == std::bit_cast<uint64_t>(b.immediate);
  }
};

// How a buffer moves along the vector axis; all other strides are free at run time.
enum class VectorStride : uint8_t {
  Zero,  // one element a row (a broadcast operand, a row result)
  Unit,  // adjacent
  Any,   // a run-time stride: gathers and scatters
};

enum class Access : uint8_t { Read, Write };

struct BufferParameter {
  DType dtype = DType::Float32;
  Access access = Access::Read;
  VectorStride vector_stride = VectorStride::Unit;
  // A hint for a written Unit buffer: past the caches, because none would hold the results until
  // they are read. The launch's rows of it begin at multiples of 64 bytes.
  bool streamed = false;

  friend bool operator==(const BufferParameter&, const BufferParameter&) = default;
};

enum class Reduction : uint8_t { None, Rows, Columns };

struct Program {
  std::string name;  // for people: not part of equality or the key
  Reduction reduction = Reduction::None;
  int outer_rank = 0;
  int reduced_rank = 0;  // Columns: how many of the last outer axes are reduced (at least 1)
  std::vector<BufferParameter> buffers;
  std::vector<DType> scalars;
  std::vector<Instruction> body;

  friend bool operator==(const Program& a, const Program& b) {
    return a.reduction == b.reduction && a.outer_rank == b.outer_rank &&
           a.reduced_rank == b.reduced_rank && a.buffers == b.buffers && a.scalars == b.scalars &&
           a.body == b.body;
  }
};

// A digest of everything but the name.
LAMELLA_API Hash128 key(const Program& program);

// Where a value lives, in order of growing extent.
enum class Place : uint8_t { Uniform, Row, Column, Element };

// The place of each instruction's value. Uniform: constants and scalars. Rows: values of
// Zero-stride loads, Iota of an outer axis and row reductions are Row. Columns: results of
// reductions are Column; arithmetic takes the largest place of its operands, but Column values only
// meet Uniform and Column ones.
LAMELLA_API std::vector<Place> places(const Program& program);

// Throws Internal with the instruction's number and the rule it breaks.
LAMELLA_API void verify(const Program& program);

// The text form, one instruction a line; parse(print(p)) == p, and the name is kept. parse verifies
// what it read and throws Value, naming the line or the instruction.
LAMELLA_API std::string print(const Program& program);
LAMELLA_API Program parse(std::string_view text);

// Run-time arguments of one launch. Two buffers may overlap only if they are identical in data and
// strides (an update in place); the program then loads before it stores, point by point.
struct Launch {
  std::vector<int64_t> extents;  // outer_rank + 1 sizes, outermost first; any may be 0
  struct Buffer {
    void* data = nullptr;
    std::vector<int64_t> strides;  // outer_rank + 1, in elements; Unit and Zero hold 1 and 0 last
  };
  std::vector<Buffer> buffers;
  std::vector<uint64_t> scalars;  // the value's bits in the low bytes
};

// How many elements of a buffer a launch reads or writes; what repeats counts once.
LAMELLA_API int64_t elements_touched(const Launch& launch, size_t buffer);

}  // namespace lamella::tile
