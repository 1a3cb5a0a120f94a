// A vector of at most N trivially copyable elements that never allocates.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "lamella/base/error.h"

namespace lamella {

template <typename T, uint32_t N>
class InlineVector {
 public:
  using value_type = T;

  constexpr InlineVector() = default;
  constexpr InlineVector(std::initializer_list<T> items) { assign(items.begin(), items.end()); }
  constexpr explicit InlineVector(uint32_t size, T value = T()) { resize(size, value); }
  template <typename It>
  constexpr InlineVector(It first, It last) {
    assign(first, last);
  }

  constexpr uint32_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  static constexpr uint32_t capacity() { return N; }
  constexpr T* begin() { return items_; }
  constexpr T* end() { return items_ + size_; }
  constexpr const T* begin() const { return items_; }
  constexpr const T* end() const { return items_ + size_; }
  constexpr T* data() { return items_; }
  constexpr const T* data() const { return items_; }
  constexpr T& operator[](size_t i) { return items_[i]; }
  constexpr const T& operator[](size_t i) const { return items_[i]; }
  constexpr T& back() { return items_[size_ - 1]; }
  constexpr const T& back() const { return items_[size_ - 1]; }
  constexpr T& front() { return items_[0]; }
  constexpr const T& front() const { return items_[0]; }

  constexpr void push_back(T item) {
    require_room(size_ + 1);
    items_[size_++] = item;
  }
  constexpr void pop_back() { --size_; }
  constexpr void clear() { size_ = 0; }
  constexpr void resize(uint32_t size, T value = T()) {
    require_room(size);
    for (uint32_t i = size_; i < size; ++i) items_[i] = value;
    size_ = size;
  }
  constexpr void insert(uint32_t at, T item) {
    require_room(size_ + 1);
    for (uint32_t i = size_; i > at; --i) items_[i] = items_[i - 1];
    items_[at] = item;
    ++size_;
  }
  constexpr void erase(uint32_t at) {
    for (uint32_t i = at + 1; i < size_; ++i) items_[i - 1] = items_[i];
    --size_;
  }
  template <typename It>
  constexpr void assign(It first, It last) {
    size_ = 0;
    for (; first != last; ++first) push_back(static_cast<T>(*first));
  }

  friend constexpr bool operator==(const InlineVector& a, const InlineVector& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  static constexpr void require_room(uint32_t size) {
    if (size > N) fail(ErrorKind::Value, "at most {} axes are supported, got {}", N, size);
  }

  uint32_t size_ = 0;
  T items_[N] = {};
};

}  // namespace lamella
