// A pass over a dataset: rows are loaded ahead by threads and given in order.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "lamella/data/dataset.h"

namespace lamella::data {

// What an iterator gives next: all there is to save to go on in the middle of an epoch.
struct Position {
  int64_t epoch = 0;
  int64_t batch = 0;  // rows of the epoch given so far; a row is a batch if the dataset batches
  friend bool operator==(const Position&, const Position&) = default;
};

// No thread and no process is started before the first `next`; the iterator may be destroyed at any
// time, which waits for the rows that are being made. Threads that share one take turns, a call
// each; who waits for a turn or a row hears the user's wish to stop, and throws what the host does.
// A process forked while an iterator runs gets an error from it, not a hang.
class LAMELLA_API Iterator : public RefCounted<Iterator> {
 public:
  Iterator(Ref<Dataset> dataset, IteratorOptions options);
  ~Iterator();

  // The next row, or nothing at the end of an epoch; the call after that begins the next epoch.
  // After the last epoch there is nothing more. What a worker threw is thrown here, in the row's
  // turn, and again by every later call.
  std::optional<Row> next();

  // The position of the row that `next` gives next. After the end of an epoch it is the beginning
  // of the next one.
  Position position();
  // Goes to a position saved before, under the same seed. Rows on the way are not loaded (an
  // iterable source has to run over them). Throws Value if the epoch has not that many rows.
  void seek(Position position);

  // Ends threads and processes, from any thread but those that make its rows. A `next` that waits
  // for its row, and whatever else is asked of the iterator from now on but its position, throws
  // Value. If this stops waiting for its turn, they end with the turn that it waited for.
  void close();

  const std::vector<std::string>& columns() const { return *names_; }

 private:
  class Loader;
  class Turn;

  // Whether this process was forked while the iterator ran.
  bool runs_elsewhere() const;
  // Whether this thread is inside a call, as a handler of signals may be.
  bool in_own_call() const { return caller_ == std::this_thread::get_id(); }
  // Ends threads and processes.
  void stop();

  Ref<Dataset> dataset_;
  IteratorOptions options_;
  Row::Names names_;
  std::vector<size_t> selection_;  // empty: all columns in order
  uint64_t seed_;
  int64_t end_epoch_;  // the first epoch that is not read

  std::atomic<bool> closed_{false};
  std::atomic<int64_t> process_{0};  // the one it runs in; 0 before the first `next` and at the end
  std::mutex turns_;                 // guards who is the next caller
  std::condition_variable turn_ended_;
  std::atomic<std::thread::id> caller_;  // whose turn it is; what follows is the caller's
  Position position_;
  int64_t loading_since_ = 0;  // the epoch the loader began with
  std::exception_ptr failure_;
  ProcessGroups processes_;         // from the first `next` to the end of the last epoch
  std::unique_ptr<Loader> loader_;  // made by the first `next` after the beginning or a seek
};

}  // namespace lamella::data
