// The first rows of an epoch, and the rows after them.
#include <algorithm>
#include <limits>

#include "lamella/data/dataset.h"

namespace lamella::data {

namespace {

class RangeCursor : public Cursor {
 public:
  RangeCursor(std::unique_ptr<Cursor> tickets, int64_t skipped, int64_t taken)
      : tickets_(std::move(tickets)), skipped_(skipped), taken_(taken) {}

  bool next(Ticket& ticket) override {
    for (; skipped_ > 0; --skipped_) {
      Ticket passed;
      if (!tickets_->next(passed)) {
        taken_ = 0;
        break;
      }
    }
    if (taken_ == 0) return false;
    --taken_;
    return tickets_->next(ticket);
  }

 private:
  std::unique_ptr<Cursor> tickets_;
  int64_t skipped_, taken_;
};

// Rows [first, first + count) of each epoch.
class Range : public Operation {
 public:
  static constexpr int64_t kAll = std::numeric_limits<int64_t>::max();

  Range(Ref<Dataset> child, int64_t first, int64_t count)
      : Operation(std::move(child)), first_(first), count_(count) {}

  std::unique_ptr<Cursor> open(const Epoch& epoch) const override {
    return std::make_unique<RangeCursor>(child().open(epoch), first_, count_);
  }
  std::optional<int64_t> length() const override {
    if (child().endless() && count_ != kAll) return count_;
    const std::optional<int64_t> rows = child().length();
    return rows ? std::optional(std::clamp<int64_t>(*rows - first_, 0, count_)) : rows;
  }
  bool endless() const override { return count_ == kAll && child().endless(); }

 private:
  int64_t first_, count_;
};

}  // namespace

Ref<Dataset> Dataset::take(int64_t count) {
  if (count == 0 || count < -1) {
    fail(ErrorKind::Value, "[take] count must be positive, or -1 for all, got {}", count);
  }
  return make_ref<Range>(Ref<Dataset>(this), 0, count < 0 ? Range::kAll : count);
}

Ref<Dataset> Dataset::skip(int64_t count) {
  if (count < 0) fail(ErrorKind::Value, "[skip] count must not be negative, got {}", count);
  return make_ref<Range>(Ref<Dataset>(this), count, Range::kAll);
}

}  // namespace lamella::data
