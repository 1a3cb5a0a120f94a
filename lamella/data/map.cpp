// Transforms applied to columns, row by row or to a whole batch at once.
#include <algorithm>

#include "lamella/data/byte_table.h"
#include "lamella/data/column_plan.h"
#include "lamella/data/config.h"
#include "lamella/data/dataset.h"
#include "lamella/data/stack_rows.h"

namespace lamella::data {

namespace {

std::vector<Ref<Transform>> flattened(const std::vector<Ref<Transform>>& transforms) {
  std::vector<Ref<Transform>> flat;
  for (const auto& transform : transforms) {
    if (!transform) fail(ErrorKind::Type, "[map] a transform of the list is null");
    for (auto& part : transform->parts()) flat.push_back(std::move(part));
  }
  if (flat.empty()) fail(ErrorKind::Value, "[map] the list of transforms is empty");
  return flat;
}

class Map : public Operation {
 public:
  Map(Ref<Dataset> child, ColumnPlan plan, std::vector<Ref<Transform>> transforms,
      std::optional<int> workers)
      : Operation(std::move(child), plan.names()),
        plan_(std::move(plan)),
        transforms_(std::move(transforms)),
        row_steps_(transforms_.size()),
        workers_(workers),
        in_order_(workers == 1 && !std::all_of(transforms_.begin(), transforms_.end(),
                                               [](const auto& t) { return t->pure(); })) {
    while (row_steps_ > 0 && transforms_[row_steps_ - 1]->batched()) --row_steps_;
    for (size_t step = row_steps_; step < transforms_.size(); ++step) {
      batch_steps_.push_back(transforms_[step]->batched());
    }
    table_.emplace(batch_steps_);
  }

  void prepare(Ticket& ticket) const override {
    child().prepare(ticket);
    if (!in_order_) return;
    ticket.columns = make_row(ticket);
    ticket.maker = this;
  }
  std::optional<std::vector<Array>> make_batch(std::span<const Ticket> tickets) const override;
  int workers() const override { return std::max(child().workers(), own_workers()); }
  void start_processes(ProcessGroups& started) const override {
    child().start_processes(started);
    for (const auto& transform : transforms_) {
      if (auto group = transform->start_processes(own_workers()))
        started.push_back(std::move(group));
    }
  }

 protected:
  std::vector<Array> make_row(const Ticket& ticket) const override {
    return make_steps(ticket, transforms_.size());
  }

 private:
  int own_workers() const { return workers_.value_or(config::num_parallel_workers()); }
  // One row after the first `steps` transforms.
  std::vector<Array> make_steps(const Ticket& ticket, size_t steps) const;

  ColumnPlan plan_;
  std::vector<Ref<Transform>> transforms_;
  // The transforms up to the last one that needs single rows; those after it take batches too.
  size_t row_steps_;
  std::vector<const BatchTransform*> batch_steps_;
  std::optional<ByteTable> table_;  // of the batch steps
  std::optional<int> workers_;
  bool in_order_;
};

std::vector<Array> Map::make_steps(const Ticket& ticket, size_t steps) const {
  std::vector<Array> columns = child().make(ticket);
  std::vector<Array> values = plan_.pick(columns);
  for (size_t step = 0; step < steps; ++step) {
    RandomStream random({.seed = ticket.seed,
                         .operation = depth(),
                         .step = static_cast<uint32_t>(step),
                         .epoch = ticket.epoch,
                         .sample = ticket.draw});
    values = transforms_[step]->apply(std::move(values), random);
  }
  return plan_.place(std::move(columns), std::move(values));
}

std::optional<std::vector<Array>> Map::make_batch(std::span<const Ticket> tickets) const {
  if (batch_steps_.empty() || in_order_) return std::nullopt;
  std::optional<std::vector<Array>> columns;
  if (row_steps_ == 0) columns = child().make_batch(tickets);
  if (columns) {
    std::vector<Array> values = plan_.pick(*columns);
    columns = plan_.place(std::move(*columns), std::move(values));
  } else {
    columns = stack_rows(tickets, this->columns(), "batch",
                         [&](const Ticket& ticket) { return make_steps(ticket, row_steps_); });
  }
  for (size_t output : plan_.outputs()) {
    Array& value = (*columns)[output];
    batch_steps_.front()->require_numbers(value);
    if (auto looked_up = table_->apply(value)) {
      value = std::move(*looked_up);
    } else {
      for (const BatchTransform* transform : batch_steps_) value = transform->apply_batch(value);
    }
  }
  return columns;
}

}  // namespace

Ref<Dataset> Dataset::map(const std::vector<Ref<Transform>>& transforms,
                          const ColumnOptions& options) {
  ColumnPlan plan(columns(), options, {columns().front()}, "map");
  return make_ref<Map>(Ref<Dataset>(this), std::move(plan), flattened(transforms), options.workers);
}

}  // namespace lamella::data
