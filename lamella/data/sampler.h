// Samplers: which samples of a source an epoch reads, in which order.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lamella/base/api.h"
#include "lamella/base/ref.h"
#include "lamella/data/dataset.h"
#include "lamella/data/random_stream.h"

namespace lamella::data {

// Sample numbers of an epoch, out of `size` samples; a sample may occur more than once, and then is
// augmented differently each time. `random` is the epoch's own stream.
class LAMELLA_API Sampler : public RefCounted<Sampler> {
 public:
  virtual ~Sampler() = default;
  // How many samples an epoch reads.
  virtual int64_t length(int64_t size) const = 0;
  virtual std::vector<int64_t> order(int64_t size, RandomStream random) const = 0;
};

// Throws Value, in the name of the sampler or source, if fewer than 1 sample is asked for.
LAMELLA_API void check_samples(std::string_view sampler, std::optional<int64_t> samples);

// Numbers 0 to size - 1 in random order, every order with equal probability (Fisher and Yates).
LAMELLA_API std::vector<int64_t> random_permutation(int64_t size, RandomStream& random);

// From `start` on, in order.
class LAMELLA_API SequentialSampler : public Sampler {
 public:
  explicit SequentialSampler(int64_t start = 0, std::optional<int64_t> samples = {});
  int64_t length(int64_t size) const override;
  std::vector<int64_t> order(int64_t size, RandomStream random) const override;

 private:
  int64_t start_;
  std::optional<int64_t> samples_;
};

enum class Replacement : uint8_t { Without, With };

// At random, without replacement at most the whole source, with replacement any number of samples.
class LAMELLA_API RandomSampler : public Sampler {
 public:
  explicit RandomSampler(Replacement replacement = Replacement::Without,
                         std::optional<int64_t> samples = {});
  int64_t length(int64_t size) const override;
  std::vector<int64_t> order(int64_t size, RandomStream random) const override;

 private:
  Replacement replacement_;
  std::optional<int64_t> samples_;
};

// The samples of a list.
class LAMELLA_API SubsetSampler : public Sampler {
 public:
  explicit SubsetSampler(std::vector<int64_t> indices, Order order = Order::AsGiven,
                         std::optional<int64_t> samples = {});
  int64_t length(int64_t size) const override;
  std::vector<int64_t> order(int64_t size, RandomStream random) const override;

 private:
  std::vector<int64_t> indices_;
  Order order_;
  std::optional<int64_t> samples_;
};

// At random, with probability in proportion to `weights`, one for each sample.
class LAMELLA_API WeightedRandomSampler : public Sampler {
 public:
  explicit WeightedRandomSampler(std::vector<double> weights, std::optional<int64_t> samples = {},
                                 Replacement replacement = Replacement::With);
  int64_t length(int64_t size) const override;
  std::vector<int64_t> order(int64_t size, RandomStream random) const override;

 private:
  std::vector<double> weights_;
  std::optional<int64_t> samples_;
  Replacement replacement_;
};

// Shard `shard` of `shards`: every shards-th sample of an order that all shards share. All shards
// are equally long; where the source does not divide, the last ones begin again at the front.
class LAMELLA_API DistributedSampler : public Sampler {
 public:
  DistributedSampler(int64_t shards, int64_t shard, Order order = Order::Random,
                     std::optional<int64_t> samples = {});
  int64_t length(int64_t size) const override;
  std::vector<int64_t> order(int64_t size, RandomStream random) const override;

 private:
  int64_t shards_, shard_;
  Order order_;
  std::optional<int64_t> samples_;
};

}  // namespace lamella::data
