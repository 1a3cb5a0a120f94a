// Programs as the graph compiler makes them, for tests.
#pragma once

#include "tests/tile/tile_testing.h"

namespace lamella::tile {

// relu(x * scale + y) with a scalar.
inline Program axpy_relu(int outer_rank, VectorStride x_stride = VectorStride::Unit,
                         VectorStride y_stride = VectorStride::Unit) {
  Builder b("axpy_relu", outer_rank);
  const ValueId scale = b.scalar(b.scalar_parameter(DType::Float32));
  const ValueId x = b.load_input(DType::Float32, x_stride);
  const ValueId y = b.load_input(DType::Float32, y_stride);
  const ValueId sum = b.apply(Opcode::Add, b.apply(Opcode::Mul, x, scale), y);
  b.store_output(b.apply(Opcode::Max, sum, b.constant(DType::Float32, 0)));
  return std::move(b).finish();
}

inline Program softmax(DType dtype = DType::Float32, int outer_rank = 1) {
  Builder b("softmax", outer_rank, Reduction::Rows);
  const ValueId x = b.load_input(dtype);
  const ValueId e = b.apply(Opcode::Exp, b.apply(Opcode::Sub, x, b.apply(Opcode::ReduceMax, x)));
  b.store_output(b.apply(Opcode::Div, e, b.apply(Opcode::ReduceSum, e)));
  return std::move(b).finish();
}

// Layer norm of x + residual, which is stored too, with mean and inverse deviation as row results.
inline Program layer_norm() {
  Builder b("layer_norm", 1, Reduction::Rows);
  const DType f = DType::Float32;
  const ValueId inverse_length = b.scalar(b.scalar_parameter(f));
  const ValueId x = b.apply(Opcode::Add, b.load_input(f), b.load_input(f));
  const ValueId gamma = b.load_input(f), beta = b.load_input(f);
  const auto mean_of = [&](ValueId v) {
    return b.apply(Opcode::Mul, b.apply(Opcode::ReduceSum, v), inverse_length);
  };
  const ValueId mean = mean_of(x);
  const ValueId centred = b.apply(Opcode::Sub, x, mean);
  const ValueId variance = mean_of(b.apply(Opcode::Mul, centred, centred));
  const ValueId inverse_deviation =
      b.apply(Opcode::Rsqrt, b.apply(Opcode::Add, variance, b.constant(f, 1e-5)));
  const ValueId normal = b.apply(Opcode::Mul, centred, inverse_deviation);
  b.store_output(x);
  b.store_output(b.apply(Opcode::Add, b.apply(Opcode::Mul, normal, gamma), beta));
  b.store_output(mean, VectorStride::Zero);
  b.store_output(inverse_deviation, VectorStride::Zero);
  return std::move(b).finish();
}

// The sum of squares and the largest value of each row, scaled.
inline Program row_sums() {
  Builder b("row_sums", 1, Reduction::Rows);
  const ValueId x = b.load_input(DType::Float32);
  const ValueId scale = b.load_input(DType::Float32, VectorStride::Zero);
  const ValueId sum = b.apply(Opcode::ReduceSum, b.apply(Opcode::Mul, x, x));
  b.store_output(b.apply(Opcode::Mul, sum, scale), VectorStride::Zero);
  b.store_output(b.apply(Opcode::ReduceMax, x), VectorStride::Zero);
  return std::move(b).finish();
}

// Cross entropy of a row of scores with an int32 label: the loss, and the gradient of the scores.
inline Program cross_entropy() {
  Builder b("cross_entropy", 1, Reduction::Rows);
  const DType f = DType::Float32;
  const ValueId x = b.load_input(f);
  const ValueId label = b.cast(b.load_input(DType::Int32, VectorStride::Zero), DType::Int64);
  const ValueId shifted = b.apply(Opcode::Sub, x, b.apply(Opcode::ReduceMax, x));
  const ValueId e = b.apply(Opcode::Exp, shifted);
  const ValueId sum = b.apply(Opcode::ReduceSum, e);
  const ValueId hit = b.apply(Opcode::Equal, b.iota(1), label);
  const ValueId zero = b.constant(f, 0), one = b.constant(f, 1);
  const ValueId picked = b.apply(Opcode::ReduceSum, b.select(hit, shifted, zero));
  b.store_output(b.apply(Opcode::Sub, b.apply(Opcode::Log, sum), picked), VectorStride::Zero);
  const ValueId probability = b.apply(Opcode::Div, e, sum);
  b.store_output(b.apply(Opcode::Sub, probability, b.select(hit, one, zero)));
  return std::move(b).finish();
}

// Bias gradient and the like: sums over rows of x and of x * y, where y is also scaled and stored.
inline Program column_sums(int outer_rank, int reduced_rank) {
  Builder b("column_sums", outer_rank, Reduction::Columns, reduced_rank);
  const DType f = DType::Float32;
  const ValueId x = b.load_input(f), y = b.load_input(f);
  const ValueId weight = b.load_input(f, VectorStride::Zero);
  const ValueId scaled = b.apply(Opcode::Mul, y, weight);
  b.store_output(scaled);
  b.store_output(b.apply(Opcode::ReduceSum, x));
  const ValueId product = b.apply(Opcode::ReduceSum, b.apply(Opcode::Mul, x, scaled));
  b.store_output(b.apply(Opcode::Sqrt, b.apply(Opcode::Abs, product)));
  return std::move(b).finish();
}

inline uint64_t float_word(float value) {
  return std::bit_cast<uint32_t>(value);
}

}  // namespace lamella::tile
