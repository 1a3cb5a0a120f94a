// The dtypes of the safetensors format.
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "lamella/types/dtype.h"

namespace lamella::io {

inline constexpr std::array<std::pair<std::string_view, DType>, 13> kSafetensorsDTypes = {{
    {"BOOL", DType::Bool},
    {"I8", DType::Int8},
    {"U8", DType::UInt8},
    {"I16", DType::Int16},
    {"U16", DType::UInt16},
    {"I32", DType::Int32},
    {"U32", DType::UInt32},
    {"I64", DType::Int64},
    {"U64", DType::UInt64},
    {"F16", DType::Float16},
    {"BF16", DType::BFloat16},
    {"F32", DType::Float32},
    {"F64", DType::Float64},
}};

inline constexpr std::string_view kMetadataKey = "__metadata__";

}  // namespace lamella::io
