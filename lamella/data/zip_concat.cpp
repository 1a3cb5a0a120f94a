// Two datasets side by side, and one after the other.
#include <algorithm>

#include "lamella/data/dataset.h"

namespace lamella::data {

namespace {

// The seed of a further branch; the first keeps its own, so that a dataset draws the same with and
// without a second one at its side.
Epoch branch(const Epoch& epoch, uint32_t number) {
  if (number == 0) return epoch;
  const PhiloxCounter mixed =
      philox4x32({number, 0x6272616E, 0, 0},
                 {static_cast<uint32_t>(epoch.seed), static_cast<uint32_t>(epoch.seed >> 32)});
  return {static_cast<uint64_t>(mixed[1]) << 32 | mixed[0], epoch.number};
}

class Pair : public Dataset {
 public:
  int workers() const override { return std::max(first_->workers(), second_->workers()); }
  void start_processes(ProcessGroups& started) const override {
    first_->start_processes(started);
    second_->start_processes(started);
  }
  int64_t batch_size() const override { return first_->batch_size(); }
  int64_t repeat_count() const override { return first_->repeat_count(); }

 protected:
  Pair(Ref<Dataset> first, Ref<Dataset> second, std::vector<std::string> names)
      : Dataset(std::make_shared<const std::vector<std::string>>(std::move(names)),
                std::max(first->depth(), second->depth()) + 1),
        first_(std::move(first)),
        second_(std::move(second)) {}

  Ref<Dataset> first_, second_;
};

class ZipCursor : public Cursor {
 public:
  ZipCursor(std::unique_ptr<Cursor> first, std::unique_ptr<Cursor> second)
      : first_(std::move(first)), second_(std::move(second)) {}

  bool next(Ticket& ticket) override {
    std::vector<Ticket> parts(2);
    if (!first_->next(parts[0]) || !second_->next(parts[1])) return false;
    ticket.sample = parts[0].sample;
    ticket.epoch = parts[0].epoch;
    ticket.seed = parts[0].seed;
    ticket.draw = parts[0].draw;
    ticket.parts = std::move(parts);
    return true;
  }

 private:
  std::unique_ptr<Cursor> first_, second_;
};

class Zip : public Pair {
 public:
  Zip(Ref<Dataset> first, Ref<Dataset> second, std::vector<std::string> names)
      : Pair(std::move(first), std::move(second), std::move(names)) {}

  std::unique_ptr<Cursor> open(const Epoch& epoch) const override {
    return std::make_unique<ZipCursor>(first_->open(branch(epoch, 0)),
                                       second_->open(branch(epoch, 1)));
  }
  void prepare(Ticket& ticket) const override {
    first_->prepare(ticket.parts[0]);
    second_->prepare(ticket.parts[1]);
  }
  std::optional<int64_t> length() const override {
    const auto first = first_->length(), second = second_->length();
    if (first_->endless() && !second_->endless()) return second;
    if (second_->endless() && !first_->endless()) return first;
    return first && second ? std::optional(std::min(*first, *second)) : std::nullopt;
  }
  bool endless() const override { return first_->endless() && second_->endless(); }

 protected:
  std::vector<Array> make_row(const Ticket& ticket) const override {
    std::vector<Array> row = first_->make(ticket.parts[0]);
    for (Array& column : second_->make(ticket.parts[1])) row.push_back(std::move(column));
    return row;
  }
};

class ConcatCursor : public Cursor {
 public:
  ConcatCursor(const Dataset& first, const Dataset& second, const Epoch& epoch)
      : second_(second), epoch_(epoch), tickets_(first.open(branch(epoch, 0))) {}

  bool next(Ticket& ticket) override {
    if (branch_ == 0) {
      if (tickets_->next(ticket)) return wrap(ticket);
      // Opened only now: it may be a pass over a user's generator.
      branch_ = 1;
      tickets_ = second_.open(branch(epoch_, 1));
    }
    return tickets_->next(ticket) && wrap(ticket);
  }

 private:
  // The part keeps what the datasets below know of it, among it which side of another concat.
  bool wrap(Ticket& ticket) const {
    Ticket outer;
    outer.sample = ticket.sample;
    outer.epoch = ticket.epoch;
    outer.seed = ticket.seed;
    outer.draw = ticket.draw;
    outer.branch = branch_;
    outer.parts.push_back(std::move(ticket));
    ticket = std::move(outer);
    return true;
  }

  const Dataset& second_;
  Epoch epoch_;
  std::unique_ptr<Cursor> tickets_;
  int32_t branch_ = 0;
};

class Concat : public Pair {
 public:
  Concat(const Ref<Dataset>& first, Ref<Dataset> second)
      : Pair(first, std::move(second), first->columns()) {}

  std::unique_ptr<Cursor> open(const Epoch& epoch) const override {
    return std::make_unique<ConcatCursor>(*first_, *second_, epoch);
  }
  void prepare(Ticket& ticket) const override { side(ticket).prepare(ticket.parts[0]); }
  std::optional<int64_t> length() const override {
    const auto first = first_->length(), second = second_->length();
    return first && second ? std::optional(*first + *second) : std::nullopt;
  }
  bool endless() const override { return first_->endless() || second_->endless(); }

 protected:
  std::vector<Array> make_row(const Ticket& ticket) const override {
    return side(ticket).make(ticket.parts[0]);
  }

 private:
  const Dataset& side(const Ticket& ticket) const {
    return ticket.branch == 0 ? *first_ : *second_;
  }
};

}  // namespace

Ref<Dataset> Dataset::zip(Ref<Dataset> other) {
  if (!other) fail(ErrorKind::Type, "[zip] the other dataset is null");
  std::vector<std::string> names = columns();
  for (const std::string& name : other->columns()) {
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      fail(ErrorKind::Value, "[zip] both datasets have a column '{}'; rename one of them", name);
    }
    names.push_back(name);
  }
  return make_ref<Zip>(Ref<Dataset>(this), std::move(other), std::move(names));
}

Ref<Dataset> Dataset::concat(Ref<Dataset> other) {
  if (!other) fail(ErrorKind::Type, "[concat] the other dataset is null");
  if (columns() != other->columns()) {
    fail(ErrorKind::Value, "[concat] the datasets differ in their columns: {} and {}",
         fmt::join(columns(), ", "), fmt::join(other->columns(), ", "));
  }
  return make_ref<Concat>(Ref<Dataset>(this), std::move(other));
}

}  // namespace lamella::data
