// Rows that the user's code makes.
#pragma once

#include <functional>
#include <memory>

#include "lamella/data/source.h"

namespace lamella::data {

// A user's source that gives any sample by its number. A Python object is adapted by a subclass
// that takes the interpreter's lock.
class LAMELLA_API RandomAccessSource : public RefCounted<RandomAccessSource> {
 public:
  virtual ~RandomAccessSource() = default;
  virtual int64_t size() const = 0;
  // The columns of sample `index`. `random` is the sample's own stream in this epoch, for sources
  // that draw; with more than one worker, called by several threads at once.
  virtual std::vector<Array> get(int64_t index, RandomStream& random) const = 0;
  // Starts `workers` processes that `get` asks, if it asks processes.
  virtual std::shared_ptr<ProcessGroup> start_processes(int /*workers*/) const { return nullptr; }
};

// One pass over a user's iterable source, used by one thread at a time.
class LAMELLA_API SourcePass {
 public:
  virtual ~SourcePass() = default;
  // Puts the columns of the next row into `columns`; false at the end. `random` is the row's own.
  virtual bool next(std::vector<Array>& columns, RandomStream& random) = 0;
};

// A user's source that can only be run through.
class LAMELLA_API IterableSource : public RefCounted<IterableSource> {
 public:
  virtual ~IterableSource() = default;
  // `random` is for what is drawn before the first row.
  virtual std::unique_ptr<SourcePass> begin(int64_t epoch, RandomStream& random) const = 0;
};

class LAMELLA_API GeneratorDataset : public IndexedSource {
 public:
  // With one worker (unless `options` say more), the source is called in the order of rows, by one
  // thread at a time.
  GeneratorDataset(Ref<RandomAccessSource> source, std::vector<std::string> names,
                   const SourceOptions& options = {.workers = 1});

  int64_t sample_count() const override { return source_->size(); }
  void prepare(Ticket& ticket) const override;
  void start_processes(ProcessGroups& started) const override;

 protected:
  std::vector<Array> make_row(const Ticket& ticket) const override;

 private:
  Ref<RandomAccessSource> source_;
};

// The rows of an iterable source in its own order. Of the options, num_samples, num_shards (rows
// are dealt out in turn) and shard_id hold; shuffle and sampler are errors, as is a restart in the
// middle of an epoch that the source cannot be run through again.
class LAMELLA_API IterableDataset : public Dataset {
 public:
  IterableDataset(Ref<IterableSource> source, std::vector<std::string> names,
                  const SourceOptions& options = {});

  std::unique_ptr<Cursor> open(const Epoch& epoch) const override;
  void prepare(Ticket&) const override {}
  std::optional<int64_t> length() const override { return std::nullopt; }
  int workers() const override { return 1; }

 protected:
  std::vector<Array> make_row(const Ticket& ticket) const override;

 private:
  Ref<IterableSource> source_;
  int64_t shards_, shard_;
  std::optional<int64_t> num_samples_;
};

}  // namespace lamella::data
