// A pass over a dataset: rows are loaded ahead by threads and given in order.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lamella/data/dataset.h"

namespace lamella::data {

// What an iterator gives next: all there is to save to go on in the middle of an epoch.
struct Position {
  int64_t epoch = 0;
  int64_t batch = 0;  // rows of the epoch given so far; a row is a batch if the dataset batches
  friend bool operator==(const Position&, const Position&) = default;
};

// Used by one thread. No thread and no process is started before the first `next`; the iterator may
// be destroyed at any time, which waits for the rows that are being made. A process forked while an
// iterator runs gets an error from it, not a hang.
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
  Position position() const { return position_; }
  // Goes to a position saved before, under the same seed. Rows on the way are not loaded (an
  // iterable source has to run over them). Throws Value if the epoch has not that many rows.
  void seek(Position position);

  const std::vector<std::string>& columns() const { return *names_; }

 private:
  class Loader;

  // Throws Value in a process that was forked while the iterator ran.
  void check_process() const;
  // Ends threads and processes.
  void stop();

  Ref<Dataset> dataset_;
  IteratorOptions options_;
  Row::Names names_;
  std::vector<size_t> selection_;  // empty: all columns in order
  uint64_t seed_;
  int64_t end_epoch_;  // the first epoch that is not read
  Position position_;
  int64_t loading_since_ = 0;  // the epoch the loader began with
  std::exception_ptr failure_;
  ProcessGroups processes_;         // from the first `next` to the end of the last epoch
  std::unique_ptr<Loader> loader_;  // made by the first `next` after the beginning or a seek
};

}  // namespace lamella::data
