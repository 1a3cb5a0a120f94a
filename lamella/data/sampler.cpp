// Orders of samples.
#include "lamella/data/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "lamella/base/error.h"

namespace lamella::data {

namespace {

int64_t at_most(int64_t available, std::optional<int64_t> samples) {
  return samples ? std::min(available, *samples) : available;
}

std::vector<int64_t> counting(int64_t size, int64_t first = 0) {
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), first);
  return order;
}

// The first `count` of a random order.
void shuffle_front(std::vector<int64_t>& order, size_t count, RandomStream& random) {
  for (size_t i = 0; i < count && i + 1 < order.size(); ++i) {
    const int64_t left = static_cast<int64_t>(order.size() - i);
    std::swap(order[i], order[i + static_cast<size_t>(random.below(left))]);
  }
  order.resize(std::min(count, order.size()));
}

}  // namespace

void check_samples(std::string_view sampler, std::optional<int64_t> samples) {
  if (samples && *samples < 1) {
    fail(ErrorKind::Value, "[{}] num_samples must be at least 1, got {}", sampler, *samples);
  }
}

std::vector<int64_t> random_permutation(int64_t size, RandomStream& random) {
  std::vector<int64_t> order = counting(size);
  shuffle_front(order, order.size(), random);
  return order;
}

SequentialSampler::SequentialSampler(int64_t start, std::optional<int64_t> samples)
    : start_(start), samples_(samples) {
  if (start < 0) fail(ErrorKind::Value, "[SequentialSampler] start_index is negative: {}", start);
  check_samples("SequentialSampler", samples);
}

int64_t SequentialSampler::length(int64_t size) const {
  if (start_ > 0 && start_ >= size) {
    fail(ErrorKind::Value, "[SequentialSampler] start_index {} is not below the {} samples", start_,
         size);
  }
  return at_most(size - start_, samples_);
}

std::vector<int64_t> SequentialSampler::order(int64_t size, RandomStream) const {
  return counting(length(size), start_);
}

RandomSampler::RandomSampler(Replacement replacement, std::optional<int64_t> samples)
    : replacement_(replacement), samples_(samples) {
  check_samples("RandomSampler", samples);
}

int64_t RandomSampler::length(int64_t size) const {
  if (replacement_ == Replacement::With) return size == 0 ? 0 : samples_.value_or(size);
  return at_most(size, samples_);
}

std::vector<int64_t> RandomSampler::order(int64_t size, RandomStream random) const {
  const auto count = static_cast<size_t>(length(size));
  if (replacement_ == Replacement::With) {
    std::vector<int64_t> order(count);
    for (int64_t& sample : order) sample = random.below(size);
    return order;
  }
  std::vector<int64_t> order = counting(size);
  shuffle_front(order, count, random);
  return order;
}

SubsetSampler::SubsetSampler(std::vector<int64_t> indices, Order order,
                             std::optional<int64_t> samples)
    : indices_(std::move(indices)), order_(order), samples_(samples) {
  check_samples("SubsetSampler", samples);
}

int64_t SubsetSampler::length(int64_t size) const {
  for (int64_t index : indices_) {
    if (index < 0 || index >= size) {
      fail(ErrorKind::Index, "[SubsetSampler] index {} is out of range for {} samples", index,
           size);
    }
  }
  return at_most(static_cast<int64_t>(indices_.size()), samples_);
}

std::vector<int64_t> SubsetSampler::order(int64_t size, RandomStream random) const {
  const auto count = static_cast<size_t>(length(size));
  std::vector<int64_t> order = indices_;
  if (order_ == Order::Random) shuffle_front(order, count, random);
  order.resize(count);
  return order;
}

WeightedRandomSampler::WeightedRandomSampler(std::vector<double> weights,
                                             std::optional<int64_t> samples,
                                             Replacement replacement)
    : weights_(std::move(weights)), samples_(samples), replacement_(replacement) {
  check_samples("WeightedRandomSampler", samples);
  double sum = 0;
  for (double weight : weights_) {
    if (!(weight >= 0) || !std::isfinite(weight)) {
      fail(ErrorKind::Value, "[WeightedRandomSampler] a weight is negative or not finite: {}",
           weight);
    }
    sum += weight;
  }
  if (!(sum > 0) || !std::isfinite(sum)) {
    fail(ErrorKind::Value, "[WeightedRandomSampler] the weights must have a positive, finite sum");
  }
}

int64_t WeightedRandomSampler::length(int64_t size) const {
  if (size != static_cast<int64_t>(weights_.size())) {
    fail(ErrorKind::Value, "[WeightedRandomSampler] {} weights were given for {} samples",
         weights_.size(), size);
  }
  if (replacement_ == Replacement::With) return samples_.value_or(size);
  // A sample of weight 0 is never drawn.
  return at_most(std::count_if(weights_.begin(), weights_.end(), [](double w) { return w > 0; }),
                 samples_);
}

std::vector<int64_t> WeightedRandomSampler::order(int64_t size, RandomStream random) const {
  const auto count = static_cast<size_t>(length(size));
  // A uniform number with 53 bits.
  const auto uniform = [&] { return static_cast<double>(random.wide_word() >> 11) * 0x1p-53; };
  std::vector<int64_t> order;
  if (replacement_ == Replacement::With) {
    std::vector<double> sums(weights_.size());
    std::partial_sum(weights_.begin(), weights_.end(), sums.begin());
    for (size_t i = 0; i < count; ++i) {
      const auto at = std::upper_bound(sums.begin(), sums.end(), uniform() * sums.back());
      order.push_back(std::min<int64_t>(at - sums.begin(), size - 1));
    }
    return order;
  }
  // Efraimidis and Spirakis, "Weighted random sampling with a reservoir" (2006): the samples with
  // the largest log(u) / w are a weighted draw without replacement.
  std::vector<std::pair<double, int64_t>> keys;
  for (int64_t i = 0; i < size; ++i) {
    const double draw = uniform();
    const double weight = weights_[static_cast<size_t>(i)];
    if (weight > 0) keys.emplace_back(-std::log1p(-draw) / weight, i);
  }
  std::sort(keys.begin(), keys.end());
  for (size_t i = 0; i < count; ++i) order.push_back(keys[i].second);
  return order;
}

DistributedSampler::DistributedSampler(int64_t shards, int64_t shard, Order order,
                                       std::optional<int64_t> samples)
    : shards_(shards), shard_(shard), order_(order), samples_(samples) {
  check_samples("DistributedSampler", samples);
  if (shards < 1 || shard < 0 || shard >= shards) {
    fail(ErrorKind::Value,
         "[DistributedSampler] shard_id must be from 0 to num_shards - 1, got {} of {}", shard,
         shards);
  }
}

int64_t DistributedSampler::length(int64_t size) const {
  return at_most((size + shards_ - 1) / shards_, samples_);
}

std::vector<int64_t> DistributedSampler::order(int64_t size, RandomStream random) const {
  const std::vector<int64_t> all =
      order_ == Order::Random ? random_permutation(size, random) : counting(size);
  std::vector<int64_t> order(static_cast<size_t>(length(size)));
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t place = i * static_cast<size_t>(shards_) + static_cast<size_t>(shard_);
    order[i] = all[place % all.size()];
  }
  return order;
}

}  // namespace lamella::data
