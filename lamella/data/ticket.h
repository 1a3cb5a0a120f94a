// Tickets: how rows are named before they are made.
//
// The order of a pipeline is worked out on tickets, which hold no data, by one thread at a time;
// any number of threads then makes the rows. So order and augmentation cannot depend on the number
// of workers, and going to a position in the middle of an epoch loads nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "lamella/data/array.h"

namespace lamella::data {

class Dataset;

// One epoch of a dataset. Branches of zip and concat get different numbers, so that equal
// operations in them draw differently.
struct Epoch {
  uint64_t seed = 0;
  int64_t number = 0;
};

// Names one row. What the fields mean is up to the dataset that gave the ticket and makes the row;
// an operation that passes rows on, passes tickets on.
struct Ticket {
  int64_t sample = 0;  // the sample of a source; the number of a batch within its epoch
  int64_t epoch = 0;   // the epoch of the source; each turn of a repeat is one
  uint64_t seed = 0;   // of the branch
  uint64_t draw = 0;   // the `sample` of a RandomKey: the sample, told apart from its repetitions
  int32_t branch = 0;  // concat: which of its datasets
  std::vector<Ticket> parts;  // batch: its rows; zip: one of each dataset

  // Where the row, or an earlier stage of it, had to be made in order: by whom, and its columns.
  const Dataset* maker = nullptr;
  std::vector<Array> columns;
};

// The tickets of one epoch in order. Used by one thread at a time.
class LAMELLA_API Cursor {
 public:
  virtual ~Cursor() = default;
  // False at the end of the epoch.
  virtual bool next(Ticket& ticket) = 0;
};

}  // namespace lamella::data
