// Random numbers: the process's generator, and draws from it.
//
// Every draw is a pure function of (seed, offset, element number): Philox4x32-10 with the seed as
// key and (element number, offset) as counter, see lamella/base/philox.h. A draw takes its offset
// when it is made, in program order, so the same program draws the same numbers in any mode, on any
// number of threads and machines. Of the four words of an element:
//   uniform   float32: the low 24 bits of word 0, times 2^-24; float64: those, plus the low 24 bits
//             of word 1 times 2^-48; float16 and bfloat16: the low 11 and 8 bits of word 0
//   normal    sqrt(-2 log(1 - u)) cos(2 pi v), u and v as above from words 0 and 1 (float64: u from
//             words 0 and 1, v from words 2 and 3); 16-bit floats round the float32 number
//   bernoulli whether the float32 uniform is below p
//   integers  low + floor(u (high - low)), u the float64 uniform
#pragma once

#include "lamella/ops/function_types.h"

namespace lamella {

// Where a generator stands. Saved and restored, it draws the same numbers again.
struct RandomState {
  uint64_t seed = 0;
  uint64_t offset = 0;  // of the next draw

  friend bool operator==(const RandomState&, const RandomState&) = default;
};

// The process's generator; safe to call from any thread.
LAMELLA_API void set_seed(uint64_t seed);  // and the offset becomes 0
LAMELLA_API RandomState random_state();
LAMELLA_API void set_random_state(RandomState state);
// The seed and offset of one draw; the generator moves on.
LAMELLA_API RandomState next_draw();

// Draws from the process's generator. Bounds and probabilities may be numbers, which never make a
// new graph, or tensors that broadcast to the shape.
namespace ops {

// Numbers in [low, high).
LAMELLA_API Tensor uniform(const Shape& shape, const Operand& low = 0.0, const Operand& high = 1.0,
                           DType dtype = DType::Float32);
LAMELLA_API Tensor normal(const Shape& shape, const Operand& mean = 0.0, const Operand& sigma = 1.0,
                          DType dtype = DType::Float32);
// 1 with probability p, else 0.
LAMELLA_API Tensor bernoulli(const Shape& shape, const Operand& p, DType dtype = DType::Float32);
// Whole numbers in [low, high).
LAMELLA_API Tensor integers(const Shape& shape, const Operand& low, const Operand& high,
                            DType dtype = DType::Int64);
// x with elements set to 0 with probability p, the others divided by 1 - p.
LAMELLA_API Tensor dropout(const Operand& x, const Operand& p = 0.5);
// The numbers 0 ... n-1 in random order.
LAMELLA_API Tensor permutation(int64_t n, DType dtype = DType::Int64);

}  // namespace ops

}  // namespace lamella
