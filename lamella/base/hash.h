// A 128-bit hash that is fed word by word; used for cache keys, where equality is confirmed apart.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string_view>

namespace lamella {

struct Hash128 {
  uint64_t low = 0;
  uint64_t high = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
};

// Two lanes of multiply-and-fold mixing (the construction of wyhash), with different constants.
class Hasher {
 public:
  void add(uint64_t word) {
    low_ = fold(low_ ^ word, 0x9E3779B97F4A7C15ull);
    high_ = fold(high_ ^ std::rotl(word, 32), 0xD6E8FEB86659FD93ull);
  }
  void add(std::string_view text) {
    add(text.size());
    for (size_t i = 0; i < text.size(); i += 8) {
      uint64_t word = 0;
      std::memcpy(&word, text.data() + i, std::min<size_t>(8, text.size() - i));
      add(word);
    }
  }
  void add(const Hash128& hash) {
    add(hash.low);
    add(hash.high);
  }
  Hash128 digest() const { return {fold(low_, high_ | 1), fold(high_, low_ | 1)}; }

 private:
  static uint64_t fold(uint64_t a, uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64) ^ a;
  }

  uint64_t low_ = 0x243F6A8885A308D3ull;
  uint64_t high_ = 0x13198A2E03707344ull;
};

}  // namespace lamella

template <>
struct std::hash<lamella::Hash128> {
  size_t operator()(const lamella::Hash128& digest) const noexcept { return digest.low; }
};
