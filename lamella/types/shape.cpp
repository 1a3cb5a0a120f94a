// Shape arithmetic: counts, broadcasting, axis normalisation.
#include "lamella/types/shape.h"

#include <algorithm>

#include <fmt/format.h>

#include "lamella/base/error.h"

namespace lamella {

Dim element_count(const Shape& shape) {
  Dim count = 1;
  for (Dim dim : shape) count = count * dim;
  return count;
}

bool all_known(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](Dim dim) { return dim.known(); });
}

std::string text(const Shape& shape) {
  std::string text = "[";
  for (Dim dim : shape) {
    if (text.size() > 1) text += ",";
    text += dim.text();
  }
  return text + "]";
}

Shape broadcast_shapes(const Shape& a, const Shape& b, std::string_view operation) {
  if (a == b) return a;
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  const uint32_t shift = longer.size() - shorter.size();
  for (uint32_t i = 0; i < shorter.size(); ++i) {
    Dim& out = result[i + shift];
    if (out == shorter[i] || shorter[i].is(1)) continue;
    if (!out.is(1)) {
      fail(ErrorKind::Value,
           "[{}] shapes {} and {} do not broadcast: axis {} from the end has sizes {} and {}",
           operation, text(a), text(b), shorter.size() - i,
           (&longer == &a ? out : shorter[i]).text(), (&longer == &a ? shorter[i] : out).text());
    }
    out = shorter[i];
  }
  return result;
}

int normalize_axis(int64_t axis, int rank, std::string_view operation) {
  if (axis < -rank || axis >= rank) {
    fail(ErrorKind::Value,
         "[{}] axis {} is out of range for a tensor of {} axes (accepted: {} to {})", operation,
         axis, rank, -rank, rank - 1);
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Axes normalize_axes(const Axes& axes, int rank, std::string_view operation) {
  Axes result;
  if (axes.empty()) {
    for (int i = 0; i < rank; ++i) result.push_back(i);
    return result;
  }
  for (int64_t axis : axes) result.push_back(normalize_axis(axis, rank, operation));
  std::sort(result.begin(), result.end());
  const auto repeat = std::adjacent_find(result.begin(), result.end());
  if (repeat != result.end())
    fail(ErrorKind::Value, "[{}] axis {} is given twice", operation, *repeat);
  return result;
}

}  // namespace lamella
