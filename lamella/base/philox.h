// The counter-based random generator Philox4x32-10 (Salmon et al., "Parallel random numbers: as
// easy as 1, 2, 3", SC 2011). The same counter gives the same words on every machine and thread
// count.
#pragma once

#include <array>
#include <cstdint>

namespace lamella {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

constexpr PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// The counter of element `index` of the draw at `offset`, under `seed`: the low words hold the
// index, the high words the offset; the key holds the seed.
constexpr PhiloxCounter philox_at(uint64_t seed, uint64_t offset, uint64_t index) {
  return philox4x32({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
                     static_cast<uint32_t>(offset), static_cast<uint32_t>(offset >> 32)},
                    {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
}

// A uniform number in [0, 1): the low 24 bits, spaced as float32 is just below 1. The low bits,
// since a mask takes them in signed arithmetic too.
constexpr float uniform_from_bits(uint32_t word) {
  return static_cast<float>(word & 0xFFFFFFu) * 0x1p-24f;
}

}  // namespace lamella
