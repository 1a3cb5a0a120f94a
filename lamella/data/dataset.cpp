// What all datasets share: names, sizes, epochs begun.
#include "lamella/data/dataset.h"

#include "lamella/data/config.h"
#include "lamella/data/iterator.h"

namespace lamella::data {

Dataset::~Dataset() = default;

int64_t Dataset::size() const {
  if (const std::optional<int64_t> known = length()) return *known;
  if (counted_ < 0) {
    int64_t count = 0;
    const auto cursor = open(Epoch{static_cast<uint64_t>(config::seed()), 0});
    for (Ticket ticket; cursor->next(ticket); ticket = {}) ++count;
    counted_ = count;
  }
  return counted_;
}

std::vector<ArrayType> Dataset::types() const {
  Ticket ticket;
  const auto cursor = open(Epoch{static_cast<uint64_t>(config::seed()), 0});
  if (!cursor->next(ticket)) {
    fail(ErrorKind::Value, "[dataset] types and shapes are not known: the dataset has no row");
  }
  prepare(ticket);
  std::vector<ArrayType> types;
  for (const Array& column : make(ticket)) types.push_back(column.type());
  return types;
}

std::vector<Array> Dataset::make(const Ticket& ticket) const {
  return ticket.maker == this ? ticket.columns : make_row(ticket);
}

std::optional<std::vector<Array>> Dataset::make_batch(std::span<const Ticket>) const {
  return std::nullopt;
}

Ref<Iterator> Dataset::iterate(IteratorOptions options) {
  return make_ref<Iterator>(Ref<Dataset>(this), std::move(options));
}

void Dataset::reset() {
  std::lock_guard lock(epoch_mutex_);
  next_epoch_ = 0;
}

int64_t Dataset::first_epoch() {
  std::lock_guard lock(epoch_mutex_);
  if (seed_generation_ != config::seed_generation()) {
    seed_generation_ = config::seed_generation();
    next_epoch_ = 0;
  }
  return next_epoch_;
}

void Dataset::note_epoch(int64_t epoch) {
  std::lock_guard lock(epoch_mutex_);
  // An iterator made before the last set_seed says nothing about the epochs since.
  if (seed_generation_ == config::seed_generation()) next_epoch_ = epoch + 1;
}

Operation::Operation(Ref<Dataset> child)
    : Dataset(child->names(), child->depth() + 1), child_(std::move(child)) {}

Operation::Operation(Ref<Dataset> child, std::vector<std::string> names)
    : Dataset(std::make_shared<const std::vector<std::string>>(std::move(names)),
              child->depth() + 1),
      child_(std::move(child)) {}

}  // namespace lamella::data
