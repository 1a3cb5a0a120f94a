// The threads behind an iterator: one at a time draws a ticket, all make rows, one ring keeps
// order.
#include "lamella/data/iterator.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <thread>

#include "lamella/base/activity.h"
#include "lamella/base/host.h"
#include "lamella/base/system/process.h"
#include "lamella/data/config.h"

namespace lamella::data {

namespace {

constexpr std::chrono::milliseconds kPollPause(50);
constexpr int64_t kNoEnd = std::numeric_limits<int64_t>::max();

// The failure of a row, with its place added to Lamella's own errors. Others pass as they are.
std::exception_ptr failure_at(const Position& position) {
  try {
    throw;
  } catch (const Error& error) {
    return std::make_exception_ptr(
        Error(error.kind(),
              fmt::format("{} (loading row {} of epoch {})", error.message(), position.batch,
                          position.epoch),
              error.location()));
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace

class Iterator::Loader {
 public:
  struct Item {
    std::optional<std::vector<Array>> columns;  // nothing: the end of an epoch
    std::exception_ptr failure;
  };
  struct Plan {
    uint64_t seed;
    Position start;
    int64_t end_epoch;    // the first epoch that is never opened
    int64_t ahead_until;  // the first epoch that is not opened before it is asked for
    int workers;
    int capacity;
  };

  Loader(const Dataset& dataset, const Plan& plan)
      : dataset_(dataset),
        plan_(plan),
        place_(plan.start),
        allowed_until_(plan.ahead_until),
        ring_(static_cast<size_t>(plan.capacity)) {
    try {
      for (int i = 0; i < plan.workers; ++i) threads_.emplace_back([this] { work(); });
    } catch (...) {
      stop();
      throw;
    }
  }
  ~Loader() { stop(); }

  // Nothing if the iterator was closed before the item came.
  std::optional<Item> next(const std::atomic<bool>& closed) {
    std::unique_lock lock(ring_mutex_);
    Slot& slot = ring_[static_cast<size_t>(given_) % ring_.size()];
    // A row may take long; meanwhile the user may ask to stop.
    while (!ready_.wait_for(lock, kPollPause, [&] { return slot.full; })) {
      lock.unlock();
      poll_host();
      if (closed) return std::nullopt;
      lock.lock();
    }
    Item item = std::move(slot.item);
    slot = {};
    ++given_;
    lock.unlock();
    room_.notify_one();
    return item;
  }

  // Lets workers open any epoch: the reader has come to a second one and will want more.
  void allow_all_epochs() {
    {
      std::lock_guard lock(ring_mutex_);
      allowed_until_ = kNoEnd;
    }
    room_.notify_all();
  }

 private:
  struct Slot {
    bool full = false;
    Item item;
  };

  void stop() {
    {
      std::lock_guard lock(ring_mutex_);
      stopping_ = true;
    }
    room_.notify_all();
    // A worker may be in a function of the host, and need its lock to come to an end.
    const HostReleased released;
    for (std::thread& thread : threads_) thread.join();
  }

  void work() {
    for (;;) {
      Ticket ticket;
      Item item;
      int64_t number = 0;
      Position place;
      bool has_row = false;
      {
        std::lock_guard order(order_mutex_);
        if (exhausted_ || !wait_for_room()) return;
        number = number_++;
        place = place_;
        try {
          has_row = draw(ticket);
        } catch (...) {
          item.failure = failure_at(place);
          exhausted_ = true;
        }
      }
      if (has_row) {
        const ActivityScope busy(Activity::DataLoad, place.batch);
        try {
          item.columns = dataset_.make(ticket);
        } catch (...) {
          item.failure = failure_at(place);
        }
      }
      {
        std::lock_guard lock(ring_mutex_);
        ring_[static_cast<size_t>(number) % ring_.size()] = {true, std::move(item)};
      }
      ready_.notify_one();
    }
  }

  // Waits until item `number_` has a place in the ring and its epoch may be opened; false to stop.
  bool wait_for_room() {
    std::unique_lock lock(ring_mutex_);
    room_.wait(lock, [&] {
      return stopping_ || (number_ - given_ < static_cast<int64_t>(ring_.size()) &&
                           place_.epoch < allowed_until_);
    });
    return !stopping_;
  }

  // The ticket of the next row; false at the end of an epoch.
  bool draw(Ticket& ticket) {
    if (!cursor_) open();
    if (cursor_->next(ticket)) {
      dataset_.prepare(ticket);
      ++place_.batch;
      return true;
    }
    cursor_.reset();
    place_ = {place_.epoch + 1, 0};
    exhausted_ = place_.epoch >= plan_.end_epoch;
    return false;
  }

  void open() {
    cursor_ = dataset_.open(Epoch{plan_.seed, place_.epoch});
    for (int64_t passed = 0; passed < place_.batch; ++passed) {
      Ticket ticket;
      if (!cursor_->next(ticket)) {
        fail(ErrorKind::Value, "[Iterator] cannot go to row {} of epoch {}, which has only {} rows",
             place_.batch, place_.epoch, passed);
      }
    }
  }

  const Dataset& dataset_;
  const Plan plan_;

  std::mutex order_mutex_;  // taken before ring_mutex_
  std::unique_ptr<Cursor> cursor_;
  Position place_;  // of the next ticket
  int64_t number_ = 0;
  bool exhausted_ = false;

  std::mutex ring_mutex_;
  std::condition_variable room_, ready_;
  int64_t given_ = 0;
  int64_t allowed_until_;
  bool stopping_ = false;
  std::vector<Slot> ring_;

  std::vector<std::thread> threads_;
};

namespace {

[[noreturn]] void fail_closed() {
  fail(ErrorKind::Value, "[Iterator] it was closed; make a new one");
}

}  // namespace

// A thread's turn to use the iterator. Throws Value if it never comes, and what the host throws
// when the user wants to stop before it does. If the iterator is closed, it ends with the turn.
class Iterator::Turn {
 public:
  explicit Turn(Iterator& iterator) : iterator_(iterator) {
    if (iterator.runs_elsewhere()) {
      fail(ErrorKind::Value,
           "[Iterator] this iterator runs in the process that forked this one; make a new one "
           "here");
    }
    if (iterator.in_own_call()) {
      fail(ErrorKind::Value, "[Iterator] it is used while the same thread waits for its row");
    }
    std::unique_lock lock(iterator.turns_);
    const auto is_free = [&] { return iterator.caller_ == std::thread::id(); };
    while (!iterator.turn_ended_.wait_for(lock, kPollPause, is_free)) {
      lock.unlock();
      poll_host();
      lock.lock();
    }
    iterator.caller_ = std::this_thread::get_id();
  }
  ~Turn() {
    if (iterator_.closed_) iterator_.stop();
    {
      std::lock_guard lock(iterator_.turns_);
      iterator_.caller_ = std::thread::id();
    }
    iterator_.turn_ended_.notify_one();
  }
  Turn(const Turn&) = delete;

 private:
  Iterator& iterator_;
};

Iterator::Iterator(Ref<Dataset> dataset, IteratorOptions options)
    : dataset_(std::move(dataset)),
      options_(std::move(options)),
      names_(dataset_->names()),
      seed_(static_cast<uint64_t>(config::seed())) {
  if (options_.epochs == 0 || options_.epochs < -1) {
    fail(ErrorKind::Value, "[Iterator] the number of epochs must be positive, or -1, got {}",
         options_.epochs);
  }
  if (options_.workers && *options_.workers < 1) {
    fail(ErrorKind::Value, "[Iterator] the number of workers must be at least 1, got {}",
         *options_.workers);
  }
  if (!options_.columns.empty()) {
    for (const std::string& column : options_.columns) {
      selection_.push_back(column_index(*names_, column, "Iterator"));
    }
    names_ = std::make_shared<const std::vector<std::string>>(options_.columns);
  }
  position_.epoch = dataset_->first_epoch();
  end_epoch_ = options_.epochs < 0 ? kNoEnd : position_.epoch + options_.epochs;
}

Iterator::~Iterator() {
  // In a forked child the threads do not exist and the locks may be held for ever.
  if (runs_elsewhere()) std::ignore = loader_.release();
  stop();
}

bool Iterator::runs_elsewhere() const {
  return process_ != 0 && process_ != process_id();
}

void Iterator::stop() {
  // The processes first: threads need not wait for rows that nobody reads.
  for (const auto& group : processes_) group->stop();
  loader_.reset();
  processes_.clear();
  process_ = 0;
}

void Iterator::close() {
  closed_ = true;
  if (in_own_call() || runs_elsewhere()) return;
  const Turn turn(*this);
}

Position Iterator::position() {
  if (in_own_call() || runs_elsewhere()) return position_;
  const Turn turn(*this);
  return position_;
}

std::optional<Row> Iterator::next() {
  const Turn turn(*this);
  if (closed_) fail_closed();
  if (failure_) std::rethrow_exception(failure_);
  if (position_.epoch >= end_epoch_) return std::nullopt;
  if (!loader_) {
    process_ = process_id();
    if (processes_.empty()) dataset_->start_processes(processes_);
    const int workers = options_.workers.value_or(dataset_->workers());
    loader_ = std::make_unique<Loader>(
        *dataset_,
        Loader::Plan{.seed = seed_,
                     .start = position_,
                     .end_epoch = end_epoch_,
                     .ahead_until = options_.epochs < 0 ? position_.epoch + 1 : end_epoch_,
                     .workers = workers,
                     .capacity = std::max(config::prefetch_size(), workers)});
    loading_since_ = position_.epoch;
  } else if (position_.batch == 0 && position_.epoch > loading_since_) {
    loader_->allow_all_epochs();
  }
  std::optional<Loader::Item> item = [&] {
    const ActivityScope busy(Activity::DataWait);
    return loader_->next(closed_);
  }();
  if (!item) fail_closed();
  if (item->failure) {
    failure_ = item->failure;
    stop();
    std::rethrow_exception(failure_);
  }
  dataset_->note_epoch(position_.epoch);
  if (!item->columns) {
    position_ = {position_.epoch + 1, 0};
    if (position_.epoch >= end_epoch_) stop();
    return std::nullopt;
  }
  ++position_.batch;
  if (selection_.empty()) return Row(names_, std::move(*item->columns));
  std::vector<Array> chosen;
  for (size_t column : selection_) chosen.push_back((*item->columns)[column]);
  return Row(names_, std::move(chosen));
}

void Iterator::seek(Position position) {
  const Turn turn(*this);
  if (closed_) fail_closed();
  if (position.epoch < 0 || position.batch < 0 || position.epoch >= end_epoch_) {
    fail(ErrorKind::Value, "[Iterator] cannot go to row {} of epoch {}; the last epoch is {}",
         position.batch, position.epoch, end_epoch_ - 1);
  }
  const std::optional<int64_t> length = dataset_->endless() ? std::nullopt : dataset_->length();
  if (length && position.batch > *length) {
    fail(ErrorKind::Value, "[Iterator] cannot go to row {} of epoch {}, which has only {} rows",
         position.batch, position.epoch, *length);
  }
  loader_.reset();
  failure_ = nullptr;
  position_ = position;
}

}  // namespace lamella::data
