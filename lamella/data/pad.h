// Rows of unequal sizes made equal, so that they can be stacked.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lamella/base/api.h"
#include "lamella/data/array.h"

namespace lamella::data {

// How a column is padded.
struct PadColumn {
  // A size for each axis, or none for the longest of the batch; no list: the longest everywhere.
  std::optional<std::vector<std::optional<int64_t>>> sizes = {};
  double value = 0.0;  // of the elements that are added, at the ends of axes
};

// By column; empty: every column of numbers, by zeros to the longest of the batch.
using PadInfo = std::map<std::string, PadColumn>;

class RowPadding {
 public:
  // Throws Value if a column does not exist or a size is negative.
  RowPadding(PadInfo info, const std::vector<std::string>& columns);

  // Pads the rows of each column. Throws Value, naming the column, where a row has another number
  // of axes or is larger than the size asked for, or the value is none of the column's dtype.
  void apply(std::vector<std::vector<Array>>& columns, const std::vector<std::string>& names) const;

 private:
  PadInfo info_;
};

}  // namespace lamella::data
