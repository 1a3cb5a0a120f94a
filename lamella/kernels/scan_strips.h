// The lines along an axis in strips of neighbours, which advance side by side: neighbours in memory
// make vectors, lines far apart hide each other's latency.
#pragma once

#include <algorithm>

#include "lamella/base/parallel.h"
#include "lamella/kernels/scan.h"
#include "lamella/kernels/strided_loop.h"

namespace lamella::kernels {

inline constexpr int64_t kStripWidth = 64;  // of lines whose elements are adjacent
inline constexpr int64_t kFewLines = 8;     // of others

// Operands views with the same sizes.
template <int Operands>
struct Strips {
  using Steps = std::array<int64_t, Operands>;

  StridedLoop<Operands> outer;  // over groups of neighbouring lines
  int64_t lines = 1;            // in a group
  Steps across{};               // from a line to its neighbour
  Steps along{};                // from an element to the next of the scan
  Steps first{};                // from a line's origin to where the scan begins
  int64_t length;
  bool adjacent = true;
  int64_t width;

  Strips(const std::array<const TensorView*, Operands>& views, const ScanOptions& options) {
    const auto axis = static_cast<uint32_t>(options.axis);
    length = views[0]->sizes[axis];
    Axes sizes = views[0]->sizes;
    sizes.erase(axis);
    std::array<Axes, Operands> strides;
    std::array<const Axes*, Operands> pointers;
    for (size_t i = 0; i < Operands; ++i) {
      strides[i] = views[i]->strides;
      along[i] = strides[i][axis];
      if (options.direction == ScanDirection::Backward) {
        first[i] = (length - 1) * along[i];
        along[i] = -along[i];
      }
      strides[i].erase(axis);
      pointers[i] = &strides[i];
    }
    outer = StridedLoop<Operands>(sizes, pointers);
    if (outer.rank() > 0) {
      lines = outer.sizes.back();
      across = outer.strides.back();
      outer.erase(outer.sizes.size() - 1);
    }
    for (int64_t step : across) adjacent = adjacent && (step == 1 || lines == 1);
    width = adjacent && lines > 1 ? kStripWidth : kFewLines;
  }

  int64_t per_group() const { return (lines + width - 1) / width; }
  int64_t count() const { return outer.count() * per_group(); }

  // Calls body(offsets of the strip's first line, how many lines it has) for strip `number`.
  template <typename Body>
  void at(int64_t number, Body&& body) const {
    const int64_t group = number / per_group(), line = number % per_group() * width;
    outer.walk(group, group + 1, [&](const auto& origin) {
      Steps start = origin;
      for (size_t i = 0; i < Operands; ++i) start[i] += first[i] + line * across[i];
      body(start, std::min(width, lines - line));
    });
  }

  template <typename Body>
  void for_each(Body&& body) const {
    const int64_t work = length * std::min(width, lines);
    parallel_for(count(), std::max<int64_t>(1, 16384 / std::max<int64_t>(1, work)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t strip = begin; strip < end; ++strip) at(strip, body);
                 });
  }
};

// Calls body(number along the scan, line, offsets) for the elements [begin, end) of a strip's
// lines: all lines' first elements, then all second ones.
template <int Operands, typename Body>
void advance_strip(const Strips<Operands>& strips, const std::array<int64_t, Operands>& start,
                   int64_t lines, int64_t begin, int64_t end, Body&& body) {
  for (int64_t i = begin; i < end; ++i) {
    std::array<int64_t, Operands> at = start;
    for (size_t o = 0; o < Operands; ++o) at[o] += i * strips.along[o];
    if (strips.adjacent) {
      for (int64_t line = 0; line < lines; ++line) {
        std::array<int64_t, Operands> here = at;
        for (size_t o = 0; o < Operands; ++o) here[o] += line;
        body(i, line, here);
      }
    } else {
      for (int64_t line = 0; line < lines; ++line) {
        std::array<int64_t, Operands> here = at;
        for (size_t o = 0; o < Operands; ++o) here[o] += line * strips.across[o];
        body(i, line, here);
      }
    }
  }
}

}  // namespace lamella::kernels
