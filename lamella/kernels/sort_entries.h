// What is sorted: a key with the position it came from, as one word where both fit, and the radix
// sort of long rows of them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "lamella/base/parallel.h"

namespace lamella::kernels {

// Keys of up to 32 bits with 32-bit positions.
struct PackedEntry {
  uint64_t word;

  static PackedEntry of(uint64_t key, int64_t position) {
    return {key << 32 | static_cast<uint64_t>(position)};
  }
  uint64_t key() const { return word >> 32; }
  int64_t position() const { return static_cast<int64_t>(word & 0xFFFFFFFF); }
  friend bool operator<(PackedEntry a, PackedEntry b) { return a.word < b.word; }
};

struct WideEntry {
  uint64_t bits;
  int64_t place;

  static WideEntry of(uint64_t key, int64_t position) { return {key, position}; }
  uint64_t key() const { return bits; }
  int64_t position() const { return place; }
  friend bool operator<(const WideEntry& a, const WideEntry& b) {
    return a.bits != b.bits ? a.bits < b.bits : a.place < b.place;
  }
};

inline constexpr int64_t kRadixFrom = 256;  // shorter rows are compared

// Sorts n entries whose positions ascend, by `key_bytes` bytes of their keys, least significant
// first. `chunks` pieces are counted and moved in parallel. Returns where the sorted entries lie:
// `entries` or `buffer`.
template <typename Entry>
Entry* radix_sort(Entry* entries, Entry* buffer, int64_t n, int key_bytes, int64_t chunks) {
  using Counts = std::array<int64_t, 256>;
  std::vector<Counts> starts(static_cast<size_t>(chunks));
  const auto chunk_begin = [&](int64_t chunk) { return chunk * n / chunks; };
  for (int pass = 0; pass < key_bytes; ++pass) {
    const auto digit = [shift = 8 * pass](const Entry& entry) {
      return static_cast<size_t>(entry.key() >> shift & 0xFF);
    };
    parallel_for(chunks, 1, [&](int64_t first, int64_t last) {
      for (int64_t chunk = first; chunk < last; ++chunk) {
        Counts counts{};
        for (int64_t i = chunk_begin(chunk); i < chunk_begin(chunk + 1); ++i) {
          ++counts[digit(entries[i])];
        }
        starts[static_cast<size_t>(chunk)] = counts;
      }
    });
    int64_t next = 0;
    bool moves = true;
    for (size_t d = 0; d < 256; ++d) {
      const int64_t before = next;
      for (Counts& counts : starts) {
        const int64_t count = counts[d];
        counts[d] = next;
        next += count;
      }
      if (next - before == n) moves = false;  // all have this digit
    }
    if (!moves) continue;
    parallel_for(chunks, 1, [&](int64_t first, int64_t last) {
      for (int64_t chunk = first; chunk < last; ++chunk) {
        Counts places = starts[static_cast<size_t>(chunk)];
        for (int64_t i = chunk_begin(chunk); i < chunk_begin(chunk + 1); ++i) {
          buffer[places[digit(entries[i])]++] = entries[i];
        }
      }
    });
    std::swap(entries, buffer);
  }
  return entries;
}

}  // namespace lamella::kernels
