// Element types and their properties.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "lamella/base/api.h"

namespace lamella {

// In order of promotion within a kind. The last five are names only: operators refuse them.
enum class DType : uint8_t {
  Bool,
  Int8,
  UInt8,
  Int16,
  Int32,
  Int64,
  Float16,
  BFloat16,
  Float32,
  Float64,
  UInt16,
  UInt32,
  UInt64,
  Complex64,
  Complex128,
};

inline constexpr int kDTypeCount = 15;

// The dtypes kernels compute with.
inline constexpr std::array kComputeDTypes = {
    DType::Bool,  DType::Int8,    DType::UInt8,    DType::Int16,   DType::Int32,
    DType::Int64, DType::Float16, DType::BFloat16, DType::Float32, DType::Float64};

enum class DTypeKind : uint8_t { Bool, SignedInteger, UnsignedInteger, Float, Complex };

struct DTypeInfo {
  std::string_view name;        // "float32"
  std::string_view short_name;  // "f32", as in text forms
  uint8_t size;                 // bytes an element
  DTypeKind kind;
};

inline constexpr std::array<DTypeInfo, kDTypeCount> kDTypeTable = {{
    {"bool", "bool", 1, DTypeKind::Bool},
    {"int8", "i8", 1, DTypeKind::SignedInteger},
    {"uint8", "u8", 1, DTypeKind::UnsignedInteger},
    {"int16", "i16", 2, DTypeKind::SignedInteger},
    {"int32", "i32", 4, DTypeKind::SignedInteger},
    {"int64", "i64", 8, DTypeKind::SignedInteger},
    {"float16", "f16", 2, DTypeKind::Float},
    {"bfloat16", "bf16", 2, DTypeKind::Float},
    {"float32", "f32", 4, DTypeKind::Float},
    {"float64", "f64", 8, DTypeKind::Float},
    {"uint16", "u16", 2, DTypeKind::UnsignedInteger},
    {"uint32", "u32", 4, DTypeKind::UnsignedInteger},
    {"uint64", "u64", 8, DTypeKind::UnsignedInteger},
    {"complex64", "c64", 8, DTypeKind::Complex},
    {"complex128", "c128", 16, DTypeKind::Complex},
}};

constexpr const DTypeInfo& info(DType dtype) {
  return kDTypeTable[static_cast<size_t>(dtype)];
}

constexpr std::string_view name(DType dtype) {
  return info(dtype).name;
}
constexpr std::string_view short_name(DType dtype) {
  return info(dtype).short_name;
}
constexpr int64_t size_of(DType dtype) {
  return info(dtype).size;
}
constexpr bool is_float(DType dtype) {
  return info(dtype).kind == DTypeKind::Float;
}
constexpr bool is_integer(DType dtype) {
  return info(dtype).kind == DTypeKind::SignedInteger ||
         info(dtype).kind == DTypeKind::UnsignedInteger;
}
constexpr bool is_unsigned(DType dtype) {
  return info(dtype).kind == DTypeKind::UnsignedInteger || dtype == DType::Bool;
}
constexpr bool is_low_precision(DType dtype) {
  return dtype == DType::Float16 || dtype == DType::BFloat16;
}
constexpr bool is_computable(DType dtype) {
  return dtype <= DType::Float64;
}

// The dtype in which reductions and composites over `dtype` compute: float32 for the 16-bit floats.
constexpr DType compute_dtype(DType dtype) {
  return is_low_precision(dtype) ? DType::Float32 : dtype;
}

// Finds a dtype by its name or its short name.
LAMELLA_API std::optional<DType> dtype_from_name(std::string_view name);

}  // namespace lamella
