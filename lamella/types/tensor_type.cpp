// Memory order and text of tensor types.
#include "lamella/types/tensor_type.h"

#include <fmt/format.h>

namespace lamella {

Axes physical_order(Layout layout, int rank) {
  Axes order;
  if (layout == Layout::ChannelsLast && rank >= 3) {
    order.push_back(0);
    for (int i = 2; i < rank; ++i) order.push_back(i);
    order.push_back(1);
    return order;
  }
  for (int i = 0; i < rank; ++i) order.push_back(i);
  return order;
}

InlineVector<Dim, kMaxRank> strides_of(const TensorType& type) {
  InlineVector<Dim, kMaxRank> strides(type.shape.size());
  const Axes order = physical_order(type.layout, rank(type.shape));
  Dim stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const auto axis = static_cast<size_t>(order[i]);
    strides[axis] = stride;
    stride = stride * type.shape[axis];
  }
  return strides;
}

std::string text(const TensorType& type) {
  std::string result = fmt::format("{}{}", short_name(type.dtype), text(type.shape));
  if (type.layout == Layout::ChannelsLast) result += ":channels_last";
  return result;
}

}  // namespace lamella
