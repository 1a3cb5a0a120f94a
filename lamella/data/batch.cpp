// Rows stacked along a new first axis.
#include <algorithm>

#include "lamella/data/column_plan.h"
#include "lamella/data/config.h"
#include "lamella/data/dataset.h"
#include "lamella/data/stack_rows.h"

namespace lamella::data {

namespace {

// What is drawn for a batch.
constexpr uint32_t kFunctionStep = 0;
constexpr uint32_t kSizeStep = 1;

class BatchCursor : public Cursor {
 public:
  BatchCursor(std::unique_ptr<Cursor> tickets, const BatchSize& size, Remainder remainder,
              const Epoch& epoch, uint32_t operation)
      : tickets_(std::move(tickets)),
        size_(size),
        remainder_(remainder),
        epoch_(epoch),
        operation_(operation) {}

  bool next(Ticket& ticket) override {
    RandomStream random({.seed = epoch_.seed,
                         .operation = operation_,
                         .step = kSizeStep,
                         .epoch = epoch_.number,
                         .sample = static_cast<uint64_t>(number_)});
    const int64_t size = size_({epoch_.number, number_}, random);
    if (size < 1) {
      fail(ErrorKind::Value, "[batch] the size of batch {} must be at least 1, got {}", number_,
           size);
    }
    std::vector<Ticket> rows;
    rows.reserve(static_cast<size_t>(std::min<int64_t>(size, 1 << 16)));
    for (int64_t i = 0; i < size; ++i) {
      if (!tickets_->next(rows.emplace_back())) {
        rows.pop_back();
        break;
      }
    }
    const bool whole = static_cast<int64_t>(rows.size()) == size;
    if (rows.empty() || (!whole && remainder_ == Remainder::Drop)) return false;
    ticket.sample = number_;
    ticket.draw = static_cast<uint64_t>(number_);
    ticket.epoch = epoch_.number;
    ticket.seed = epoch_.seed;
    ticket.parts = std::move(rows);
    ++number_;
    return true;
  }

 private:
  std::unique_ptr<Cursor> tickets_;
  const BatchSize& size_;
  Remainder remainder_;
  Epoch epoch_;
  uint32_t operation_;
  int64_t number_ = 0;
};

class Batch : public Operation {
 public:
  Batch(Ref<Dataset> child, ColumnPlan plan, BatchSize size, std::optional<int64_t> fixed_size,
        BatchOptions options)
      : Operation(std::move(child), plan.names()),
        plan_(std::move(plan)),
        size_(std::move(size)),
        fixed_size_(fixed_size),
        options_(std::move(options)) {
    if (options_.pad) padding_.emplace(*options_.pad, columns());
  }

  std::unique_ptr<Cursor> open(const Epoch& epoch) const override {
    return std::make_unique<BatchCursor>(child().open(epoch), size_, options_.remainder, epoch,
                                         depth());
  }
  void prepare(Ticket& ticket) const override {
    for (Ticket& row : ticket.parts) child().prepare(row);
  }
  std::optional<std::vector<Array>> make_batch(std::span<const Ticket>) const override {
    return std::nullopt;
  }
  std::optional<int64_t> length() const override {
    const std::optional<int64_t> rows = child().length();
    if (!rows || !fixed_size_) return std::nullopt;
    const bool part = options_.remainder == Remainder::Keep && *rows % *fixed_size_ != 0;
    return *rows / *fixed_size_ + (part ? 1 : 0);
  }
  int64_t batch_size() const override { return fixed_size_.value_or(-1); }
  int workers() const override { return std::max(child().workers(), own_workers()); }
  void start_processes(ProcessGroups& started) const override {
    child().start_processes(started);
    if (!options_.start_processes) return;
    if (auto group = options_.start_processes(own_workers())) started.push_back(std::move(group));
  }

 protected:
  std::vector<Array> make_row(const Ticket& ticket) const override {
    const auto make = [&](const Ticket& part) { return child().make(part); };
    if (!options_.per_batch && !padding_) {
      if (auto batch = child().make_batch(ticket.parts)) return std::move(*batch);
      return stack_rows(ticket.parts, columns(), "batch", make);
    }
    auto rows = columns_of_rows(ticket.parts, child().columns().size(), make);
    if (options_.per_batch) {
      RandomStream random({.seed = ticket.seed,
                           .operation = depth(),
                           .step = kFunctionStep,
                           .epoch = ticket.epoch,
                           .sample = ticket.draw});
      auto results = options_.per_batch(plan_.pick(rows), {ticket.epoch, ticket.sample}, random);
      rows = plan_.place(std::move(rows), std::move(results));
    }
    if (padding_) padding_->apply(rows, columns());
    return stack_columns(rows, columns(), "batch");
  }

 private:
  int own_workers() const {
    return options_.columns.workers.value_or(config::num_parallel_workers());
  }

  ColumnPlan plan_;
  BatchSize size_;
  std::optional<int64_t> fixed_size_;
  BatchOptions options_;
  std::optional<RowPadding> padding_;
};

Ref<Dataset> make_batches(Ref<Dataset> child, BatchSize size, std::optional<int64_t> fixed_size,
                          BatchOptions options) {
  ColumnPlan plan(child->columns(), options.columns, child->columns(), "batch");
  return make_ref<Batch>(std::move(child), std::move(plan), std::move(size), fixed_size,
                         std::move(options));
}

}  // namespace

Ref<Dataset> Dataset::batch(int64_t size, BatchOptions options) {
  if (size < 1) fail(ErrorKind::Value, "[batch] batch_size must be at least 1, got {}", size);
  return make_batches(
      Ref<Dataset>(this), [size](BatchInfo, RandomStream&) { return size; }, size,
      std::move(options));
}

Ref<Dataset> Dataset::batch(BatchSize size, BatchOptions options) {
  if (!size) fail(ErrorKind::Type, "[batch] the function of the batch size is empty");
  return make_batches(Ref<Dataset>(this), std::move(size), std::nullopt, std::move(options));
}

}  // namespace lamella::data
