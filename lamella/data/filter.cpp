// Rows that a predicate accepts.
#include "lamella/data/column_plan.h"
#include "lamella/data/dataset.h"

namespace lamella::data {

namespace {

class FilterCursor : public Cursor {
 public:
  FilterCursor(const Dataset& child, const Dataset& filter, std::unique_ptr<Cursor> tickets,
               const Predicate& accepts, const ColumnPlan& plan)
      : child_(child),
        filter_(filter),
        tickets_(std::move(tickets)),
        accepts_(accepts),
        plan_(plan) {}

  // Which rows follow depends on their content, so they are made here, in order.
  bool next(Ticket& ticket) override {
    for (; tickets_->next(ticket); ticket = {}) {
      child_.prepare(ticket);
      std::vector<Array> columns = child_.make(ticket);
      RandomStream random({.seed = ticket.seed,
                           .operation = filter_.depth(),
                           .epoch = ticket.epoch,
                           .sample = ticket.draw});
      if (!accepts_(plan_.pick(columns), random)) continue;
      ticket.columns = std::move(columns);
      ticket.maker = &filter_;
      return true;
    }
    return false;
  }

 private:
  const Dataset& child_;
  const Dataset& filter_;
  std::unique_ptr<Cursor> tickets_;
  const Predicate& accepts_;
  const ColumnPlan& plan_;
};

class Filter : public Operation {
 public:
  Filter(Ref<Dataset> child, Predicate accepts, ColumnPlan plan)
      : Operation(std::move(child)), accepts_(std::move(accepts)), plan_(std::move(plan)) {}

  std::unique_ptr<Cursor> open(const Epoch& epoch) const override {
    return std::make_unique<FilterCursor>(child(), *this, child().open(epoch), accepts_, plan_);
  }
  void prepare(Ticket&) const override {}
  std::optional<std::vector<Array>> make_batch(std::span<const Ticket>) const override {
    return std::nullopt;
  }
  std::optional<int64_t> length() const override { return std::nullopt; }

 private:
  Predicate accepts_;
  ColumnPlan plan_;
};

}  // namespace

Ref<Dataset> Dataset::filter(Predicate predicate, std::vector<std::string> inputs) {
  if (!predicate) fail(ErrorKind::Type, "[filter] the predicate is empty");
  ColumnPlan plan(columns(), {.inputs = std::move(inputs)}, columns(), "filter");
  return make_ref<Filter>(Ref<Dataset>(this), std::move(predicate), std::move(plan));
}

}  // namespace lamella::data
