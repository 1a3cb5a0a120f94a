// Sources in user code.
#include "lamella/data/generator.h"

#include "lamella/data/column_plan.h"

namespace lamella::data {

namespace {

void check_columns(size_t given, size_t named) {
  if (given != named) {
    fail(ErrorKind::Value, "[GeneratorDataset] the source gave {} columns, but {} names were given",
         given, named);
  }
}

const char* const kNullSource = "[GeneratorDataset] the source is null";

// What a source draws for; step 0 is the order of samples.
constexpr uint32_t kRowStep = 1;
constexpr uint32_t kBeginStep = 2;

class IterableCursor : public Cursor {
 public:
  IterableCursor(std::unique_ptr<SourcePass> pass, const Dataset& maker, const Epoch& epoch,
                 int64_t shards, int64_t shard, int64_t samples)
      : pass_(std::move(pass)),
        maker_(maker),
        epoch_(epoch),
        shards_(shards),
        shard_(shard),
        left_(samples) {}

  bool next(Ticket& ticket) override {
    if (left_ == 0) return false;
    for (;; ++row_) {
      std::vector<Array> columns;
      RandomStream random({.seed = epoch_.seed,
                           .step = kRowStep,
                           .epoch = epoch_.number,
                           .sample = static_cast<uint64_t>(row_)});
      if (!pass_->next(columns, random)) return false;
      if (row_ % shards_ != shard_) continue;
      check_columns(columns.size(), maker_.columns().size());
      ticket.sample = row_;
      ticket.draw = static_cast<uint64_t>(row_);
      ticket.epoch = epoch_.number;
      ticket.seed = epoch_.seed;
      ticket.columns = std::move(columns);
      ticket.maker = &maker_;
      ++row_;
      --left_;
      return true;
    }
  }

 private:
  std::unique_ptr<SourcePass> pass_;
  const Dataset& maker_;
  Epoch epoch_;
  int64_t shards_, shard_, left_;
  int64_t row_ = 0;
};

}  // namespace

GeneratorDataset::GeneratorDataset(Ref<RandomAccessSource> source, std::vector<std::string> names,
                                   const SourceOptions& options)
    : IndexedSource(std::move(names), options, "GeneratorDataset"), source_(std::move(source)) {
  if (!source_) fail(ErrorKind::Type, "{}", kNullSource);
  if (columns().empty()) fail(ErrorKind::Value, "[GeneratorDataset] column_names is empty");
}

void GeneratorDataset::start_processes(ProcessGroups& started) const {
  if (auto group = source_->start_processes(workers())) started.push_back(std::move(group));
}

void GeneratorDataset::prepare(Ticket& ticket) const {
  if (workers() > 1) return;
  ticket.columns = make_row(ticket);
  ticket.maker = this;
}

std::vector<Array> GeneratorDataset::make_row(const Ticket& ticket) const {
  RandomStream random({.seed = ticket.seed,
                       .operation = depth(),
                       .step = kRowStep,
                       .epoch = ticket.epoch,
                       .sample = ticket.draw});
  std::vector<Array> row = source_->get(ticket.sample, random);
  check_columns(row.size(), columns().size());
  return row;
}

IterableDataset::IterableDataset(Ref<IterableSource> source, std::vector<std::string> names,
                                 const SourceOptions& options)
    : Dataset(std::make_shared<const std::vector<std::string>>(std::move(names)), 0),
      source_(std::move(source)),
      shards_(options.num_shards.value_or(1)),
      shard_(options.shard_id.value_or(0)),
      num_samples_(options.num_samples) {
  if (!source_) fail(ErrorKind::Type, "{}", kNullSource);
  if (columns().empty()) fail(ErrorKind::Value, "[GeneratorDataset] column_names is empty");
  check_distinct(columns(), "GeneratorDataset");
  if (options.shuffle.value_or(false) || options.sampler) {
    fail(
        ErrorKind::Value,
        "[GeneratorDataset] an iterable source cannot be read in another order: give a source with "
        "__getitem__ and __len__, or call shuffle on the dataset");
  }
  sampler_of(
      {.num_samples = num_samples_, .num_shards = options.num_shards, .shard_id = options.shard_id},
      "GeneratorDataset");  // for its checks
}

std::unique_ptr<Cursor> IterableDataset::open(const Epoch& epoch) const {
  RandomStream random({.seed = epoch.seed, .step = kBeginStep, .epoch = epoch.number});
  return std::make_unique<IterableCursor>(source_->begin(epoch.number, random), *this, epoch,
                                          shards_, shard_, num_samples_.value_or(-1));
}

std::vector<Array> IterableDataset::make_row(const Ticket&) const {
  fail(ErrorKind::Internal, "a row of an iterable source is made when its ticket is drawn");
}

}  // namespace lamella::data
