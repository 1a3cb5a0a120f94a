// Datasets: where rows come from and what is done to them, as a description that iterators run.
//
//   auto train = make_ref<FashionMnistDataset>(folder, SourceOptions{}, Usage::Train)
//                    ->map({make_ref<Rescale>(1 / 255.0f, 0.0f), make_ref<HWC2CHW>()},
//                          {.inputs = {"image"}})
//                    ->batch(64);
//   auto rows = train->iterate({.epochs = 10});
//   while (auto row = rows->next()) use((*row)["image"], (*row)["label"]);
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lamella/base/api.h"
#include "lamella/base/ref.h"
#include "lamella/data/array.h"
#include "lamella/data/pad.h"
#include "lamella/data/process_group.h"
#include "lamella/data/row.h"
#include "lamella/data/ticket.h"
#include "lamella/data/transforms/transform.h"

namespace lamella::data {

class Iterator;

// The columns a transform or function reads and writes.
struct ColumnOptions {
  std::vector<std::string> inputs = {};   // empty: the first column
  std::vector<std::string> outputs = {};  // empty: as the inputs
  // Threads or processes; the process's setting if not given. One worker calls functions in the
  // order of rows.
  std::optional<int> workers = {};
};

// What a function over a batch is told: the epoch and the number of the batch in it, from 0.
struct BatchInfo {
  int64_t epoch = 0;
  int64_t batch = 0;
};

enum class Remainder : uint8_t { Keep, Drop };

enum class Order : uint8_t { AsGiven, Random };

// Users' functions in a pipeline. All their randomness comes from the stream, which is the row's or
// the batch's own.
using Predicate = std::function<bool(std::span<const Array>, RandomStream&)>;
using BatchSize = std::function<int64_t(BatchInfo, RandomStream&)>;
// For each input column its rows; gives the same for the output columns.
using BatchFunction = std::function<std::vector<std::vector<Array>>(std::vector<std::vector<Array>>,
                                                                    BatchInfo, RandomStream&)>;

struct BatchOptions {
  Remainder remainder = Remainder::Keep;
  BatchFunction per_batch = {};     // applied before rows are padded and stacked
  ColumnOptions columns = {};       // of per_batch; `inputs` empty: all columns
  std::optional<PadInfo> pad = {};  // not given: rows must have equal sizes
  // Starts the processes that run per_batch, if they do.
  std::function<std::shared_ptr<ProcessGroup>(int workers)> start_processes = {};
};

struct IteratorOptions {
  int64_t epochs = -1;                    // -1: without end
  std::vector<std::string> columns = {};  // empty: all of the dataset
  std::optional<int> workers = {};        // instead of what the operations say
};

// Reference counted and immutable: every operation gives a new dataset that holds this one.
class LAMELLA_API Dataset : public RefCounted<Dataset> {
 public:
  virtual ~Dataset();

  const std::vector<std::string>& columns() const { return *names_; }
  // The same list, shared.
  const Row::Names& names() const { return names_; }
  // Rows of one epoch; an endless repeat counts as one turn. Where only a pass can tell (an
  // iterable source, a filter), one is made, once.
  int64_t size() const;
  // dtype and sizes of every column, found by making the first row. Throws Value without rows.
  std::vector<ArrayType> types() const;
  // Rows of a batch (the last operation `batch` below, 1 without) and turns of all repeats; of two
  // datasets, those of the first.
  virtual int64_t batch_size() const { return 1; }
  virtual int64_t repeat_count() const { return 1; }

  // Applies `transforms` in turn to the input columns. With as many outputs as inputs, they take
  // the inputs' places; else the outputs come first, then the columns that are no inputs.
  Ref<Dataset> map(const std::vector<Ref<Transform>>& transforms,
                   const ColumnOptions& options = {});
  // Keeps the rows whose input columns `predicate` accepts.
  Ref<Dataset> filter(Predicate predicate, std::vector<std::string> inputs = {});
  // Stacks `size` rows along a new first axis.
  Ref<Dataset> batch(int64_t size, BatchOptions options = {});
  // As above with a size for each batch.
  Ref<Dataset> batch(BatchSize size, BatchOptions options = {});
  // Gives rows out of a buffer of `buffer_size` (at least 2) in random order; a buffer as large as
  // the dataset gives every order with equal probability.
  Ref<Dataset> shuffle(int64_t buffer_size);
  // `count` epochs as one, each shuffled and augmented anew; -1: without end.
  Ref<Dataset> repeat(int64_t count = -1);
  // The first `count` rows (-1: all), and the rows after the first `count`.
  Ref<Dataset> take(int64_t count = -1);
  Ref<Dataset> skip(int64_t count);
  // Rows of both side by side, as many as the shorter has; no column name may occur twice.
  Ref<Dataset> zip(Ref<Dataset> other);
  // The rows of this, then those of `other`, which must have the same columns.
  Ref<Dataset> concat(Ref<Dataset> other);
  // Disjoint parts of these sizes, which must add up to size(), or of these fractions, which must
  // add up to 1: each is rounded to rows (a half to even), what is then left over goes to the first
  // part, and what is missing comes from the first part that keeps a row. A part has the same
  // samples, in the same order, in every epoch (shuffle it for other orders); its rows are
  // augmented anew in each.
  std::vector<Ref<Dataset>> split(const std::vector<int64_t>& sizes, Order order = Order::Random);
  std::vector<Ref<Dataset>> split(const std::vector<double>& fractions,
                                  Order order = Order::Random);
  // Columns chosen and ordered; columns under other names.
  Ref<Dataset> project(std::vector<std::string> columns);
  Ref<Dataset> rename(const std::vector<std::string>& from, const std::vector<std::string>& to);

  // Begins a pass: epoch 0 at first, and with every further iterator the epoch after the last one
  // read, so that a loop over iterators sees new orders as a loop over one iterator does.
  Ref<Iterator> iterate(IteratorOptions options = {});
  // Lets the next iterator begin at epoch 0 again.
  void reset();

  // ---- How it runs: for subclasses and iterators. ----

  // Starts the processes that make rows of this dataset and of those below it, and adds them to
  // `started`. Called by an iterator in its reader's thread, before any thread of its own runs.
  virtual void start_processes(ProcessGroups& /*started*/) const {}
  // The tickets of an epoch.
  virtual std::unique_ptr<Cursor> open(const Epoch& epoch) const = 0;
  // Makes in `ticket` what must be made in the order of rows. Called in that order, by one thread
  // at a time; most datasets have nothing to do but to pass it on.
  virtual void prepare(Ticket& ticket) const = 0;
  // The row of a ticket. Called by several threads at once.
  std::vector<Array> make(const Ticket& ticket) const;
  // The rows of `tickets`, stacked, if this dataset has a shorter way than making them one by one.
  virtual std::optional<std::vector<Array>> make_batch(std::span<const Ticket> tickets) const;
  // Rows of one epoch, an endless repeat counted as one turn; nothing if only a pass can tell.
  virtual std::optional<int64_t> length() const = 0;
  virtual bool endless() const { return false; }
  // Threads that the operations ask for: the most of any.
  virtual int workers() const = 0;
  // Number of operations below: the operation number in random keys. Putting operations on top of
  // a dataset never changes what it draws.
  uint32_t depth() const { return depth_; }

 protected:
  Dataset(Row::Names names, uint32_t depth) : names_(std::move(names)), depth_(depth) {}
  virtual std::vector<Array> make_row(const Ticket& ticket) const = 0;

 private:
  friend class Iterator;
  // The epoch a new iterator begins with, and a note that `epoch` is being read.
  int64_t first_epoch();
  void note_epoch(int64_t epoch);

  Row::Names names_;
  uint32_t depth_;
  mutable std::atomic<int64_t> counted_{-1};
  std::mutex epoch_mutex_;
  uint64_t seed_generation_ = 0;
  int64_t next_epoch_ = 0;
};

// Base of operations on one dataset. As it stands it passes rows on; a subclass changes their order
// (`open`) or their content (`make_row`).
class LAMELLA_API Operation : public Dataset {
 public:
  void prepare(Ticket& ticket) const override { child_->prepare(ticket); }
  std::optional<std::vector<Array>> make_batch(std::span<const Ticket> tickets) const override {
    return child_->make_batch(tickets);
  }
  std::unique_ptr<Cursor> open(const Epoch& epoch) const override { return child_->open(epoch); }
  std::optional<int64_t> length() const override { return child_->length(); }
  bool endless() const override { return child_->endless(); }
  int workers() const override { return child_->workers(); }
  void start_processes(ProcessGroups& started) const override { child_->start_processes(started); }
  int64_t batch_size() const override { return child_->batch_size(); }
  int64_t repeat_count() const override { return child_->repeat_count(); }

 protected:
  explicit Operation(Ref<Dataset> child);
  Operation(Ref<Dataset> child, std::vector<std::string> names);
  const Dataset& child() const { return *child_; }
  std::vector<Array> make_row(const Ticket& ticket) const override { return child_->make(ticket); }

 private:
  Ref<Dataset> child_;
};

}  // namespace lamella::data
