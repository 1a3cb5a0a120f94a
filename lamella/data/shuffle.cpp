// Shuffling through a buffer.
#include <algorithm>

#include "lamella/data/dataset.h"

namespace lamella::data {

namespace {

class ShuffleCursor : public Cursor {
 public:
  ShuffleCursor(std::unique_ptr<Cursor> tickets, size_t size, RandomStream random)
      : tickets_(std::move(tickets)), size_(size), random_(random) {}

  bool next(Ticket& ticket) override {
    fill();
    if (buffer_.empty()) return false;
    const auto chosen = static_cast<size_t>(random_.below(static_cast<int64_t>(buffer_.size())));
    std::swap(buffer_[chosen], buffer_.back());
    ticket = std::move(buffer_.back());
    buffer_.pop_back();
    return true;
  }

 private:
  void fill() {
    while (!ended_ && buffer_.size() < size_) {
      Ticket ticket;
      ended_ = !tickets_->next(ticket);
      if (!ended_) buffer_.push_back(std::move(ticket));
    }
  }

  std::unique_ptr<Cursor> tickets_;
  size_t size_;
  RandomStream random_;
  std::vector<Ticket> buffer_;
  bool ended_ = false;
};

class Shuffle : public Operation {
 public:
  Shuffle(Ref<Dataset> child, int64_t size)
      : Operation(std::move(child)), size_(static_cast<size_t>(size)) {}

  std::unique_ptr<Cursor> open(const Epoch& epoch) const override {
    const RandomStream random({.seed = epoch.seed, .operation = depth(), .epoch = epoch.number});
    return std::make_unique<ShuffleCursor>(child().open(epoch), size_, random);
  }

 private:
  size_t size_;
};

}  // namespace

Ref<Dataset> Dataset::shuffle(int64_t buffer_size) {
  if (buffer_size < 2) {
    fail(ErrorKind::Value, "[shuffle] buffer_size must be at least 2, got {}", buffer_size);
  }
  return make_ref<Shuffle>(Ref<Dataset>(this), buffer_size);
}

}  // namespace lamella::data
