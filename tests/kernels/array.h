// Test tensors: memory that ends at an unmapped page, read and written as double by coordinates.
#pragma once

#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "lamella/base/error.h"
#include "lamella/base/parallel.h"
#include "lamella/device/pool.h"
#include "lamella/kernels/view.h"
#include "lamella/types/half.h"

namespace lamella::kernels {

inline MemoryPool& guarded_pool() {
  static MemoryPool* pool = new MemoryPool({.guard = GuardMode::End});
  return *pool;
}

inline double load_double(const void* element, DType dtype) {
  switch (dtype) {
    case DType::Bool:
    case DType::UInt8:
      return *static_cast<const uint8_t*>(element);
    case DType::Int8:
      return *static_cast<const int8_t*>(element);
    case DType::Int16:
      return *static_cast<const int16_t*>(element);
    case DType::Int32:
      return *static_cast<const int32_t*>(element);
    case DType::Int64:
      return static_cast<double>(*static_cast<const int64_t*>(element));
    case DType::Float16:
      return float_from_float16_bits(*static_cast<const uint16_t*>(element));
    case DType::BFloat16:
      return float_from_bfloat16_bits(*static_cast<const uint16_t*>(element));
    case DType::Float32:
      return *static_cast<const float*>(element);
    default:
      return *static_cast<const double*>(element);
  }
}

template <typename T>
void store_as(void* element, T value) {
  std::memcpy(element, &value, sizeof value);
}

inline void store_double(void* element, DType dtype, double value) {
  switch (dtype) {
    case DType::Bool:
      return store_as(element, static_cast<uint8_t>(value != 0));
    case DType::UInt8:
      return store_as(element, static_cast<uint8_t>(value));
    case DType::Int8:
      return store_as(element, static_cast<int8_t>(value));
    case DType::Int16:
      return store_as(element, static_cast<int16_t>(value));
    case DType::Int32:
      return store_as(element, static_cast<int32_t>(value));
    case DType::Int64:
      return store_as(element, static_cast<int64_t>(value));
    case DType::Float16:
      return store_as(element, float16_bits_from_float(float_round_to_odd(value)));
    case DType::BFloat16:
      return store_as(element, bfloat16_bits_from_float(float_round_to_odd(value)));
    case DType::Float32:
      return store_as(element, static_cast<float>(value));
    default:
      return store_as(element, value);
  }
}

// Between coordinates and the number in row-major order.
inline int64_t ravel(const std::vector<int64_t>& place, const Axes& sizes) {
  int64_t number = 0;
  for (size_t axis = 0; axis < place.size(); ++axis) number = number * sizes[axis] + place[axis];
  return number;
}
inline std::vector<int64_t> unravel(int64_t number, const Axes& sizes) {
  std::vector<int64_t> place(sizes.size());
  for (size_t axis = place.size(); axis-- > 0;) {
    place[axis] = number % sizes[axis];
    number /= sizes[axis];
  }
  return place;
}

class Array {
 public:
  Array(DType dtype, const Axes& sizes) : Array(row_major_view(nullptr, dtype, sizes)) {}
  // `order` lists the axes from the outermost in memory to the innermost.
  static Array ordered(DType dtype, const Axes& sizes, const Axes& order) {
    TensorView view = row_major_view(nullptr, dtype, sizes);
    int64_t stride = 1;
    for (uint32_t i = order.size(); i-- > 0;) {
      view.strides[static_cast<size_t>(order[i])] = stride;
      stride *= std::max<int64_t>(sizes[static_cast<size_t>(order[i])], 1);
    }
    return Array(view);
  }
  Array(DType dtype, const Axes& sizes, const std::vector<double>& values) : Array(dtype, sizes) {
    for (int64_t i = 0; i < count(); ++i) set_flat(i, values[static_cast<size_t>(i)]);
  }

  operator const TensorView&() const { return view_; }
  const TensorView& view() const { return view_; }
  const Axes& sizes() const { return view_.sizes; }
  int64_t count() const { return view_.count(); }

  // Elements by their number in row-major order.
  void* place(int64_t flat) const {
    int64_t offset = 0;
    for (uint32_t axis = view_.sizes.size(); axis-- > 0;) {
      offset += flat % view_.sizes[axis] * view_.strides[axis];
      flat /= view_.sizes[axis];
    }
    return static_cast<char*>(view_.data) + offset * size_of(view_.dtype);
  }
  double flat(int64_t at) const { return load_double(place(at), view_.dtype); }
  void set_flat(int64_t at, double value) { store_double(place(at), view_.dtype, value); }
  double at(const std::vector<int64_t>& position) const { return flat(flat_of(position)); }
  int64_t flat_of(const std::vector<int64_t>& position) const {
    return ravel(position, view_.sizes);
  }

  Array& randomize(uint32_t seed, double low = -1, double high = 1) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> draw(low, high);
    for (int64_t i = 0; i < count(); ++i) {
      const double value = draw(random);
      set_flat(i, is_float(view_.dtype) ? value : std::floor(value));
    }
    return *this;
  }
  Array& fill_with(double value) {
    for (int64_t i = 0; i < count(); ++i) set_flat(i, value);
    return *this;
  }
  std::vector<double> values() const {
    std::vector<double> all;
    all.reserve(static_cast<size_t>(count()));
    for (int64_t i = 0; i < count(); ++i) all.push_back(flat(i));
    return all;
  }
  std::vector<char> bytes() const {
    const auto* first = static_cast<const char*>(view_.data);
    return {first, first + view_.count() * size_of(view_.dtype)};
  }

 private:
  explicit Array(const TensorView& dense) : view_(dense) {
    memory_ = guarded_pool().allocate(byte_count(view_));
    view_.data = memory_->data();
  }

  TensorView view_;
  Ref<Allocation> memory_;
};

inline Axes channels_last_order(int rank) {
  Axes order = {0};
  for (int axis = 2; axis < rank; ++axis) order.push_back(axis);
  order.push_back(1);
  return order;
}

// A bound on the error of a result: that of rounding to `dtype` plus that of a float32 (float64)
// sum of `terms` terms of size about 1.
inline double tolerance(DType dtype, double magnitude, double terms) {
  const double epsilon = dtype == DType::Float64    ? 0x1p-52
                         : dtype == DType::Float32  ? 0x1p-23
                         : dtype == DType::Float16  ? 0x1p-10
                         : dtype == DType::BFloat16 ? 0x1p-7
                                                    : 0;
  const double sum_epsilon = dtype == DType::Float64 ? 0x1p-52 : is_float(dtype) ? 0x1p-23 : 0;
  return epsilon * std::fabs(magnitude) + sum_epsilon * (0.3 * terms + 8);
}

inline void expect_near(const Array& actual, const std::vector<double>& expected, double terms,
                        const std::string& what = "") {
  ASSERT_EQ(actual.count(), static_cast<int64_t>(expected.size()));
  int failures = 0;
  for (int64_t i = 0; i < actual.count() && failures < 5; ++i) {
    const double want = expected[static_cast<size_t>(i)], got = actual.flat(i);
    if (std::isnan(want) && std::isnan(got)) continue;
    if (want == got) continue;
    const double bound = tolerance(actual.view().dtype, want, terms);
    if (!(std::fabs(got - want) <= bound)) {
      ADD_FAILURE() << what << " " << text(actual.view()) << " element " << i << ": " << got
                    << ", expected " << want << " within " << bound;
      ++failures;
    }
  }
}

// Runs the action and returns the Error it throws, checking its kind.
inline std::string message_of(ErrorKind kind, const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

// Runs the action with 1 and with 2 threads and expects the same bytes of `result`.
inline void expect_same_bits_for_any_thread_count(const Array& result,
                                                  const std::function<void()>& action) {
  const int threads = thread_count();
  set_thread_count(1);
  action();
  const std::vector<char> one = result.bytes();
  for (int count : {2, 3}) {
    set_thread_count(count);
    action();
    EXPECT_EQ(result.bytes(), one) << count << " threads";
  }
  set_thread_count(threads);
}

inline constexpr DType kFloats[] = {DType::Float16, DType::BFloat16, DType::Float32,
                                    DType::Float64};

}  // namespace lamella::kernels
