// Operators and short names for tensors, for formulas that read like formulas.
#pragma once

#include "lamella/ops/functions.h"

namespace lamella {

// The caller's line is that of the second operand, which is converted at the call.
inline Tensor operator+(const Tensor& x, const Operand& y) {
  return ops::add(Operand(x).at(y.location()), y);
}
inline Tensor operator-(const Tensor& x, const Operand& y) {
  return ops::sub(Operand(x).at(y.location()), y);
}
inline Tensor operator*(const Tensor& x, const Operand& y) {
  return ops::mul(Operand(x).at(y.location()), y);
}
inline Tensor operator/(const Tensor& x, const Operand& y) {
  return ops::div(Operand(x).at(y.location()), y);
}
inline Tensor operator+(double x, const Operand& y) {
  return ops::add(Operand(x).at(y.location()), y);
}
inline Tensor operator-(double x, const Operand& y) {
  return ops::sub(Operand(x).at(y.location()), y);
}
inline Tensor operator*(double x, const Operand& y) {
  return ops::mul(Operand(x).at(y.location()), y);
}
inline Tensor operator/(double x, const Operand& y) {
  return ops::div(Operand(x).at(y.location()), y);
}
inline Tensor operator-(const Operand& x) {
  return ops::neg(x);
}

namespace ops {

// The number of elements along `axes` as a number of `dtype`, known at launch if sizes are
// symbolic.
LAMELLA_API Tensor size_as(DType dtype, const Shape& shape, const Axes& axes);
// Zeros of a type, without a buffer: they fold into what uses them.
LAMELLA_API Tensor zeros_of(const TensorType& type);

}  // namespace ops

}  // namespace lamella
