// Disjoint parts of a dataset that stay the same in every epoch.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "lamella/data/dataset.h"
#include "lamella/data/sampler.h"

namespace lamella::data {

namespace {

class PartCursor : public Cursor {
 public:
  // Tickets were drawn as of epoch 0, by whose order the parts are told; rows are made as of
  // theirs.
  PartCursor(std::vector<Ticket> tickets, int64_t epoch_shift)
      : tickets_(std::move(tickets)), epoch_shift_(epoch_shift) {}

  bool next(Ticket& ticket) override {
    if (place_ == tickets_.size()) return false;
    ticket = std::move(tickets_[place_++]);
    shift(ticket);
    return true;
  }

 private:
  void shift(Ticket& ticket) const {
    ticket.epoch += epoch_shift_;
    for (Ticket& part : ticket.parts) shift(part);
  }

  std::vector<Ticket> tickets_;
  int64_t epoch_shift_;
  size_t place_ = 0;
};

// Rows [first, first + count) of the order of epoch 0, shuffled once if at random.
class Part : public Operation {
 public:
  Part(Ref<Dataset> child, int64_t first, int64_t count, Order order)
      : Operation(std::move(child)), first_(first), count_(count), order_(order) {}

  std::unique_ptr<Cursor> open(const Epoch& epoch) const override {
    std::vector<Ticket> all(static_cast<size_t>(child().size()));
    const auto tickets = child().open(Epoch{epoch.seed, 0});
    for (Ticket& ticket : all) {
      if (!tickets->next(ticket)) fail(ErrorKind::Value, "[split] the dataset lost rows");
    }
    std::vector<int64_t> places(all.size());
    std::iota(places.begin(), places.end(), 0);
    if (order_ == Order::Random) {
      RandomStream random({.seed = epoch.seed, .operation = depth()});
      places = random_permutation(static_cast<int64_t>(all.size()), random);
    }
    std::vector<Ticket> part;
    part.reserve(static_cast<size_t>(count_));
    for (int64_t i = first_; i < first_ + count_; ++i) {
      part.push_back(std::move(all[static_cast<size_t>(places[static_cast<size_t>(i)])]));
    }
    const int64_t turns = std::max<int64_t>(1, child().repeat_count());
    return std::make_unique<PartCursor>(std::move(part), epoch.number * turns);
  }
  std::optional<int64_t> length() const override { return count_; }

 private:
  int64_t first_, count_;
  Order order_;
};

}  // namespace

std::vector<Ref<Dataset>> Dataset::split(const std::vector<int64_t>& sizes, Order order) {
  if (endless()) fail(ErrorKind::Value, "[split] an endless dataset cannot be split");
  int64_t sum = 0;
  for (int64_t part : sizes) {
    if (part < 1) fail(ErrorKind::Value, "[split] a part must have at least 1 row, got {}", part);
    sum += part;
  }
  if (sizes.empty() || sum != size()) {
    fail(ErrorKind::Value, "[split] the sizes {} add up to {}, but the dataset has {} rows",
         fmt::join(sizes, ", "), sum, size());
  }
  std::vector<Ref<Dataset>> parts;
  int64_t first = 0;
  for (int64_t part : sizes) {
    parts.push_back(make_ref<Part>(Ref<Dataset>(this), first, part, order));
    first += part;
  }
  return parts;
}

std::vector<Ref<Dataset>> Dataset::split(const std::vector<double>& fractions, Order order) {
  double sum = 0;
  for (double fraction : fractions) {
    if (!(fraction > 0.0 && fraction <= 1.0)) {
      fail(ErrorKind::Value, "[split] a fraction must be above 0 and at most 1, got {}", fraction);
    }
    sum += fraction;
  }
  if (fractions.empty() || std::abs(sum - 1.0) > 1e-6) {
    fail(ErrorKind::Value, "[split] the fractions {} add up to {}, not to 1",
         fmt::join(fractions, ", "), sum);
  }
  std::vector<int64_t> sizes;
  for (double fraction : fractions) {
    sizes.push_back(std::lrint(fraction * static_cast<double>(size())));
  }
  const int64_t left = size() - std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  const auto gives =
      std::find_if(sizes.begin(), sizes.end(), [&](int64_t part) { return part + left > 0; });
  if (gives == sizes.end()) {
    fail(ErrorKind::Value, "[split] {} rows are too few for the fractions {}", size(),
         fmt::join(fractions, ", "));
  }
  *gives += left;
  return split(sizes, order);
}

}  // namespace lamella::data
