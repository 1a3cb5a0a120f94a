// Sampling from sources that are read by number.
#include "lamella/data/source.h"

#include <algorithm>

#include "lamella/data/column_plan.h"
#include "lamella/data/config.h"

namespace lamella::data {

namespace {

class SampledCursor : public Cursor {
 public:
  SampledCursor(std::vector<int64_t> order, int64_t size, const Epoch& epoch)
      : order_(std::move(order)), seen_(static_cast<size_t>(size)), size_(size), epoch_(epoch) {}

  bool next(Ticket& ticket) override {
    if (place_ == order_.size()) return false;
    const int64_t sample = order_[place_++];
    if (sample < 0 || sample >= size_) {
      fail(ErrorKind::Index, "[Sampler] index {} is out of range for {} samples", sample, size_);
    }
    const uint32_t times = seen_[static_cast<size_t>(sample)]++;
    ticket.sample = sample;
    ticket.epoch = epoch_.number;
    ticket.seed = epoch_.seed;
    ticket.draw = static_cast<uint64_t>(sample) + times * static_cast<uint64_t>(size_);
    return true;
  }

 private:
  std::vector<int64_t> order_;
  std::vector<uint32_t> seen_;  // how often each sample came in this epoch
  int64_t size_;
  Epoch epoch_;
  size_t place_ = 0;
};

}  // namespace

Ref<Sampler> sampler_of(const SourceOptions& options, std::string_view source) {
  check_samples(source, options.num_samples);
  if (options.num_shards.has_value() != options.shard_id.has_value()) {
    const bool shards = options.num_shards.has_value();
    fail(ErrorKind::Value, "[{}] {} = {} was given without {}: a shard needs both", source,
         shards ? "num_shards" : "shard_id", shards ? *options.num_shards : *options.shard_id,
         shards ? "shard_id" : "num_shards");
  }
  if (options.sampler) {
    if (options.shuffle || options.num_shards || options.num_samples) {
      fail(ErrorKind::Value,
           "[{}] a sampler decides about order and shards itself: shuffle, num_samples, num_shards "
           "and shard_id cannot be given with it",
           source);
    }
    return options.sampler;
  }
  const Order order = options.shuffle.value_or(true) ? Order::Random : Order::AsGiven;
  if (options.num_shards) {
    return make_ref<DistributedSampler>(*options.num_shards, *options.shard_id, order,
                                        options.num_samples);
  }
  if (order == Order::Random) {
    return make_ref<RandomSampler>(Replacement::Without, options.num_samples);
  }
  return make_ref<SequentialSampler>(0, options.num_samples);
}

IndexedSource::IndexedSource(std::vector<std::string> names, const SourceOptions& options,
                             std::string_view source)
    : Dataset(std::make_shared<const std::vector<std::string>>(std::move(names)), 0),
      sampler_(sampler_of(options, source)),
      workers_(options.workers) {
  config::check_workers(workers_, source);
  check_distinct(columns(), source);
}

std::unique_ptr<Cursor> IndexedSource::open(const Epoch& epoch) const {
  const RandomStream random({.seed = epoch.seed, .operation = depth(), .epoch = epoch.number});
  const int64_t size = sample_count();
  return std::make_unique<SampledCursor>(sampler_->order(size, random), size, epoch);
}

int IndexedSource::workers() const {
  return workers_.value_or(config::num_parallel_workers());
}

NumpySlicesDataset::NumpySlicesDataset(std::vector<Array> arrays, std::vector<std::string> names,
                                       const SourceOptions& options, std::string_view source)
    : IndexedSource(std::move(names), options, source), arrays_(std::move(arrays)) {
  if (arrays_.empty() || arrays_.size() != columns().size()) {
    fail(ErrorKind::Value, "[{}] {} arrays were given for {} column names", source, arrays_.size(),
         columns().size());
  }
  for (size_t i = 0; i < arrays_.size(); ++i) {
    if (arrays_[i].rank() < (arrays_[i].type().is_text ? 2 : 1)) {
      fail(ErrorKind::Value, "[{}] column '{}' has no axis to slice: {}", source, columns()[i],
           text(arrays_[i].type()));
    }
    if (arrays_[i].sizes()[0] != arrays_[0].sizes()[0]) {
      fail(ErrorKind::Value, "[{}] column '{}' has {} samples, column '{}' has {}", source,
           columns()[0], arrays_[0].sizes()[0], columns()[i], arrays_[i].sizes()[0]);
    }
  }
  count_ = arrays_[0].sizes()[0];
}

std::vector<Array> NumpySlicesDataset::make_row(const Ticket& ticket) const {
  std::vector<Array> row;
  row.reserve(arrays_.size());
  for (const Array& array : arrays_) row.push_back(array.row(ticket.sample));
  return row;
}

std::optional<std::vector<Array>> NumpySlicesDataset::make_batch(
    std::span<const Ticket> tickets) const {
  std::vector<Array> batch;
  batch.reserve(arrays_.size());
  for (const Array& array : arrays_) {
    Axes sizes = array.sizes();
    sizes[0] = static_cast<int64_t>(tickets.size());
    Array gathered(array.dtype(), sizes);
    if (array.type().is_text) gathered = gathered.as_text();
    const size_t bytes = count_ == 0 ? 0 : array.bytes() / static_cast<size_t>(count_);
    std::byte* to = gathered.writable();
    for (const Ticket& ticket : tickets) {
      std::memcpy(to, array.data() + static_cast<size_t>(ticket.sample) * bytes, bytes);
      to += bytes;
    }
    batch.push_back(std::move(gathered));
  }
  return batch;
}

}  // namespace lamella::data
