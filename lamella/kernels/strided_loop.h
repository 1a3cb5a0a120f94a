// The iteration space of strided operands of equal sizes, simplified: axes in a common memory
// order, neighbours merged where every operand allows it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "lamella/types/shape.h"

namespace lamella::kernels {

template <int Operands>
struct StridedLoop {
  using Strides = std::array<int64_t, Operands>;

  Axes sizes;  // outermost first
  InlineVector<Strides, kMaxRank> strides;

  StridedLoop() = default;
  // Axes of size 1 vanish. The others are sorted by the strides of operand 0, widest first, and
  // merged. With an axis of size 0 the loop has that one axis.
  StridedLoop(const Axes& all_sizes, const std::array<const Axes*, Operands>& all_strides) {
    add_axes(all_sizes, all_strides, [](const Strides& a, const Strides& b) {
      for (size_t i = 0; i < Operands; ++i) {
        if (std::abs(a[i]) != std::abs(b[i])) return std::abs(a[i]) > std::abs(b[i]);
      }
      return false;
    });
  }

  // The same without sorting: points come in row-major order.
  static StridedLoop in_order(const Axes& all_sizes,
                              const std::array<const Axes*, Operands>& all_strides) {
    StridedLoop loop;
    loop.add_axes(all_sizes, all_strides, [](const Strides&, const Strides&) { return false; });
    return loop;
  }

  int rank() const { return static_cast<int>(sizes.size()); }
  int64_t count() const {
    int64_t count = 1;
    for (int64_t size : sizes) count *= size;
    return count;
  }

  // Takes one axis out of the loop.
  void erase(uint32_t axis) {
    sizes.erase(axis);
    strides.erase(axis);
  }

  // Calls body(offsets) for the points [begin, end) in order; offsets are in elements.
  template <typename Body>
  void walk(int64_t begin, int64_t end, Body&& body) const {
    Axes position(sizes.size(), 0);
    Strides offsets{};
    int64_t rest = begin;
    for (uint32_t axis = sizes.size(); axis-- > 0;) {
      position[axis] = rest % sizes[axis];
      rest /= sizes[axis];
      for (size_t i = 0; i < Operands; ++i) offsets[i] += position[axis] * strides[axis][i];
    }
    const Strides step = sizes.empty() ? Strides{} : strides.back();
    for (int64_t point = begin; point < end;) {
      const int64_t run = sizes.empty() ? 1 : std::min(end - point, sizes.back() - position.back());
      Strides at = offsets;
      for (int64_t i = 0; i < run; ++i) {
        body(static_cast<const Strides&>(at));
        for (size_t j = 0; j < Operands; ++j) at[j] += step[j];
      }
      point += run;
      if (point < end) advance(run, position, offsets);
    }
  }

 private:
  // Moves by `run` along the innermost axis, which ends there.
  void advance(int64_t run, Axes& position, Strides& offsets) const {
    int64_t count = run;
    for (uint32_t axis = sizes.size(); axis-- > 0; count = 1) {
      for (size_t i = 0; i < Operands; ++i) offsets[i] += count * strides[axis][i];
      position[axis] += count;
      if (position[axis] < sizes[axis]) return;
      position[axis] = 0;
      for (size_t i = 0; i < Operands; ++i) offsets[i] -= sizes[axis] * strides[axis][i];
    }
  }

  template <typename Before>
  void add_axes(const Axes& all_sizes, const std::array<const Axes*, Operands>& all_strides,
                Before before) {
    for (uint32_t axis = 0; axis < all_sizes.size(); ++axis) {
      Strides here{};
      for (size_t i = 0; i < Operands; ++i) here[i] = (*all_strides[i])[axis];
      if (all_sizes[axis] == 0) {
        sizes = Axes{0};
        strides = InlineVector<Strides, kMaxRank>{here};
        return;
      }
      if (all_sizes[axis] == 1) continue;
      uint32_t at = sizes.size();
      while (at > 0 && before(here, strides[at - 1])) --at;
      sizes.insert(at, all_sizes[axis]);
      strides.insert(at, here);
    }
    merge();
  }

  void merge() {
    for (uint32_t axis = sizes.size(); axis-- > 1;) {
      bool joined = true;
      for (size_t i = 0; i < Operands; ++i) {
        joined &= strides[axis - 1][i] == sizes[axis] * strides[axis][i];
      }
      if (!joined) continue;
      sizes[axis] *= sizes[axis - 1];
      erase(axis - 1);
    }
  }
};

}  // namespace lamella::kernels
