// Several epochs as one.
#include "lamella/data/dataset.h"

namespace lamella::data {

namespace {

class RepeatCursor : public Cursor {
 public:
  // `turns` is -1 for no end; `first` is the child's first epoch.
  RepeatCursor(const Dataset& child, const Epoch& first, int64_t turns)
      : child_(child), epoch_(first), turns_(turns) {}

  bool next(Ticket& ticket) override {
    for (;;) {
      if (!tickets_) {
        if (turns_ == 0) return false;
        tickets_ = child_.open(epoch_);
        ++epoch_.number;
        if (turns_ > 0) --turns_;
        rows_ = 0;
      }
      if (tickets_->next(ticket)) {
        ++rows_;
        return true;
      }
      tickets_.reset();
      // Without rows, an endless repeat would look for one for ever.
      if (turns_ < 0 && rows_ == 0) return false;
    }
  }

 private:
  const Dataset& child_;
  Epoch epoch_;
  int64_t turns_;
  std::unique_ptr<Cursor> tickets_;
  int64_t rows_ = 0;
};

class Repeat : public Operation {
 public:
  Repeat(Ref<Dataset> child, int64_t count) : Operation(std::move(child)), count_(count) {}

  std::unique_ptr<Cursor> open(const Epoch& epoch) const override {
    // The epochs of an endless repeat are counted from a multiple of 2^32, so that none meets those
    // of the next pass.
    Epoch first = epoch;
    first.number = count_ > 0 ? epoch.number * count_ : epoch.number << 32;
    return std::make_unique<RepeatCursor>(child(), first, count_);
  }
  std::optional<int64_t> length() const override {
    const std::optional<int64_t> rows = child().length();
    return rows && count_ > 0 ? *rows * count_ : rows;
  }
  bool endless() const override { return count_ < 0 || child().endless(); }
  int64_t repeat_count() const override {
    return count_ > 0 ? child().repeat_count() * count_ : count_;
  }

 private:
  int64_t count_;
};

}  // namespace

Ref<Dataset> Dataset::repeat(int64_t count) {
  if (count == 0 || count < -1) {
    fail(ErrorKind::Value, "[repeat] count must be positive, or -1 for no end, got {}", count);
  }
  return make_ref<Repeat>(Ref<Dataset>(this), count);
}

}  // namespace lamella::data
