// Sources whose samples are read by number: what they share, and the source that holds arrays.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lamella/data/dataset.h"
#include "lamella/data/sampler.h"

namespace lamella::data {

// Which samples a source gives. A sampler excludes `shuffle` and shards; shards need both numbers.
struct SourceOptions {
  std::optional<int64_t> num_samples = {};  // the first so many of the order
  std::optional<bool> shuffle = {};         // not given: at random
  Ref<Sampler> sampler = {};
  std::optional<int64_t> num_shards = {};
  std::optional<int64_t> shard_id = {};
  std::optional<int> workers = {};  // the process's setting if not given
};

// The sampler that `options` describe. Throws Value, in the name of `source`, where they contradict
// each other.
LAMELLA_API Ref<Sampler> sampler_of(const SourceOptions& options, std::string_view source);

// A source of `sample_count()` samples, of which each epoch reads those its sampler gives.
class LAMELLA_API IndexedSource : public Dataset {
 public:
  std::unique_ptr<Cursor> open(const Epoch& epoch) const override;
  void prepare(Ticket&) const override {}
  std::optional<int64_t> length() const override { return sampler_->length(sample_count()); }
  int workers() const override;

  virtual int64_t sample_count() const = 0;

 protected:
  IndexedSource(std::vector<std::string> names, const SourceOptions& options,
                std::string_view source);

 private:
  Ref<Sampler> sampler_;
  std::optional<int> workers_;
};

// Arrays in memory, sliced along their first axes. Their rows are views; batches are gathered
// without making rows.
class LAMELLA_API NumpySlicesDataset : public IndexedSource {
 public:
  // Arrays of equal first size, as many as names; Value otherwise.
  NumpySlicesDataset(std::vector<Array> arrays, std::vector<std::string> names,
                     const SourceOptions& options = {})
      : NumpySlicesDataset(std::move(arrays), std::move(names), options, "NumpySlicesDataset") {}

  int64_t sample_count() const override { return count_; }
  std::optional<std::vector<Array>> make_batch(std::span<const Ticket> tickets) const override;

 protected:
  NumpySlicesDataset(std::vector<Array> arrays, std::vector<std::string> names,
                     const SourceOptions& options, std::string_view source);
  std::vector<Array> make_row(const Ticket& ticket) const override;

 private:
  std::vector<Array> arrays_;
  int64_t count_ = 0;
};

}  // namespace lamella::data
