// Random numbers of a data pipeline: a function of (seed, operation, epoch, sample) and nothing
// else, so that no number of workers and no interruption changes a draw.
#pragma once

#include <cstdint>

#include "lamella/base/philox.h"

namespace lamella::data {

// Whose numbers a stream gives. `step` is the place of a transform in its list; `sample` tells
// apart what is drawn for within the epoch (a sample of a source, a batch).
struct RandomKey {
  uint64_t seed = 0;
  uint32_t operation = 0;
  uint32_t step = 0;
  int64_t epoch = 0;
  uint64_t sample = 0;
};

// Words of Philox4x32-10. The generator's key is the first half of the block at counter
// (operation, step, epoch) under the seed; its counter is (sample, number of the block, 0).
class RandomStream {
 public:
  explicit RandomStream(const RandomKey& key) : key_(key) {}

  uint32_t word() {
    if (used_ == 4) refill();
    return block_[used_++];
  }
  uint64_t wide_word() {
    const uint64_t low = word();
    return low | static_cast<uint64_t>(word()) << 32;
  }
  // Uniform in [0, 1), with 24 bits.
  float uniform() { return uniform_from_bits(word()); }
  // Uniform in [0, count): the high half of the product with a 64-bit word; the bias is below
  // count / 2^64.
  int64_t below(int64_t count) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<int64_t>(static_cast<Wide>(wide_word()) * static_cast<uint64_t>(count) >>
                                64);
  }

 private:
  void refill() {
    if (blocks_ == 0) {
      const uint64_t epoch = static_cast<uint64_t>(key_.epoch);
      const PhiloxCounter derived =
          philox4x32({key_.operation, key_.step, static_cast<uint32_t>(epoch),
                      static_cast<uint32_t>(epoch >> 32)},
                     {static_cast<uint32_t>(key_.seed), static_cast<uint32_t>(key_.seed >> 32)});
      philox_key_ = {derived[0], derived[1]};
    }
    block_ = philox4x32({static_cast<uint32_t>(key_.sample),
                         static_cast<uint32_t>(key_.sample >> 32), blocks_++, 0},
                        philox_key_);
    used_ = 0;
  }

  RandomKey key_;
  PhiloxKey philox_key_{};
  PhiloxCounter block_{};
  uint32_t blocks_ = 0;
  size_t used_ = 4;
};

}  // namespace lamella::data
