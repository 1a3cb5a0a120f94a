// Result dtypes of operators over mixed operands.
#pragma once

#include <optional>

#include "lamella/types/dtype.h"

namespace lamella {

// The common dtype of two tensors: the wider of a kind; a float beside an integer wins; float16
// with bfloat16 gives float32, uint8 with int8 gives int16. Nothing if they do not mix (the
// unsigned integers above 8 bits and complex numbers with anything but themselves).
constexpr std::optional<DType> promote(DType a, DType b) {
  using enum DType;
  if (a == b) return a;
  if (!is_computable(a) || !is_computable(b)) return std::nullopt;
  constexpr auto kRows = [] {
    constexpr int n = 10;  // Bool .. Float64, in the order of DType
    std::array<std::array<DType, n>, n> table{};
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) {
        const DType low = static_cast<DType>(i < j ? i : j);
        const DType high = static_cast<DType>(i < j ? j : i);
        DType result = high;  // the enum lists dtypes so that the later one usually wins
        if (low == Int8 && high == UInt8) result = Int16;
        if (low == Float16 && high == BFloat16) result = Float32;
        table[static_cast<size_t>(i)][static_cast<size_t>(j)] = result;
      }
    }
    return table;
  }();
  return kRows[static_cast<size_t>(a)][static_cast<size_t>(b)];
}

// A plain number beside a tensor never raises the tensor's dtype within its kind: a float number
// turns an integer or bool tensor into float32, an integer number turns a bool tensor into int64.
constexpr DType promote_with_number(DType tensor, DTypeKind number) {
  if (number == DTypeKind::Float && !is_float(tensor)) return DType::Float32;
  if (number == DTypeKind::SignedInteger && tensor == DType::Bool) return DType::Int64;
  return tensor;
}

// The dtype of a true division or of mathematics such as sqrt: float32 for integers and bool.
constexpr DType float_result(DType dtype) {
  return is_float(dtype) ? dtype : DType::Float32;
}

}  // namespace lamella
