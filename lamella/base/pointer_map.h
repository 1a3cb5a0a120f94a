// A map from pointers for the bookkeeping of one pass over a window: open addressing in one piece
// of memory, nothing is ever taken out.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace lamella {

template <typename T, typename V>
class PointerMap {
 public:
  // Room for `expected` entries before the first growth.
  explicit PointerMap(size_t expected = 8) : entries_(std::bit_ceil(2 * expected + 2)) {}

  size_t size() const { return size_; }
  bool contains(const T* key) const { return find(key) != nullptr; }
  const V* find(const T* key) const {
    const Entry& entry = entries_[place(key)];
    return entry.key == nullptr ? nullptr : &entry.value;
  }
  V* find(const T* key) { return const_cast<V*>(std::as_const(*this).find(key)); }

  // The value of `key`, which must not be null, and whether it was put in by this call. The
  // reference holds until the next one is put in.
  std::pair<V&, bool> insert(const T* key, V value = V()) {
    size_t at = place(key);
    if (entries_[at].key != nullptr) return {entries_[at].value, false};
    if (2 * ++size_ > entries_.size()) {
      grow();
      at = place(key);
    }
    entries_[at] = {key, std::move(value)};
    return {entries_[at].value, true};
  }
  V& operator[](const T* key) { return insert(key).first; }

 private:
  struct Entry {
    const T* key = nullptr;
    V value = V();
  };

  // Where the key is, or would be put. At least half of the places are empty, so the walk ends.
  size_t place(const T* key) const {
    const size_t mask = entries_.size() - 1;
    size_t at = (reinterpret_cast<uintptr_t>(key) * 0x9E3779B97F4A7C15u >> 32) & mask;
    while (entries_[at].key != nullptr && entries_[at].key != key) at = (at + 1) & mask;
    return at;
  }
  void grow() {
    std::vector<Entry> old = std::exchange(entries_, std::vector<Entry>(2 * entries_.size()));
    for (Entry& entry : old) {
      if (entry.key != nullptr) entries_[place(entry.key)] = std::move(entry);
    }
  }

  std::vector<Entry> entries_;
  size_t size_ = 0;
};

}  // namespace lamella
