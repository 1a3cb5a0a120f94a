// What a value is before it has data: dtype, shape, and the order its elements lie in memory.
#pragma once

#include <string>

#include "lamella/types/dtype.h"
#include "lamella/types/shape.h"

namespace lamella {

// The memory order of a dense tensor. A layout is chosen when a node is made, by its operator.
enum class Layout : uint8_t {
  RowMajor,      // the last axis is adjacent
  ChannelsLast,  // axis 1 is adjacent, then the last axis, ... (N,C,H,W lies as N,H,W,C); rank >= 3
};

struct TensorType {
  DType dtype = DType::Float32;
  Layout layout = Layout::RowMajor;
  Shape shape;

  friend bool operator==(const TensorType&, const TensorType&) = default;
};

// Logical axes from the outermost in memory to the innermost.
LAMELLA_API Axes physical_order(Layout layout, int rank);
// Strides in elements for each logical axis, of a dense tensor.
LAMELLA_API InlineVector<Dim, kMaxRank> strides_of(const TensorType& type);
// "f32[8,4,32,32]"; a layout other than row-major is appended: "f32[8,4,32,32]:channels_last".
LAMELLA_API std::string text(const TensorType& type);

}  // namespace lamella
