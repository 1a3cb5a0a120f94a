// Which columns an operation reads, and where it puts what it makes.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lamella/data/dataset.h"

namespace lamella::data {

class ColumnPlan {
 public:
  // `columns` are those the operation meets; `default_inputs` those it reads if `options` do not
  // say. Throws Value, in the name of `operation`, if a column does not exist or would occur twice.
  ColumnPlan(const std::vector<std::string>& columns, const ColumnOptions& options,
             const std::vector<std::string>& default_inputs, std::string_view operation);

  // The columns after the operation. As many outputs as inputs take the inputs' places; otherwise
  // the outputs come first, then the columns that are no inputs.
  const std::vector<std::string>& names() const { return names_; }
  // Where the outputs stand among them.
  const std::vector<size_t>& outputs() const { return outputs_; }

  // T is what stands for a column: an Array, or the rows of a batch.
  template <typename T>
  std::vector<T> pick(const std::vector<T>& columns) const {
    std::vector<T> picked;
    picked.reserve(inputs_.size());
    for (size_t input : inputs_) picked.push_back(columns[input]);
    return picked;
  }
  template <typename T>
  std::vector<T> place(std::vector<T> columns, std::vector<T> results) const {
    check_results(results.size());
    if (outputs_.size() == inputs_.size()) {
      for (size_t i = 0; i < inputs_.size(); ++i) columns[inputs_[i]] = std::move(results[i]);
      return columns;
    }
    for (size_t i = 0; i < columns.size(); ++i) {
      if (std::find(inputs_.begin(), inputs_.end(), i) == inputs_.end()) {
        results.push_back(std::move(columns[i]));
      }
    }
    return results;
  }

 private:
  void check_results(size_t count) const;

  std::string operation_;
  std::vector<size_t> inputs_;
  std::vector<size_t> outputs_;
  std::vector<std::string> names_;
};

// Throws Value, in the name of `operation`, if a name occurs twice.
void check_distinct(const std::vector<std::string>& names, std::string_view operation);

}  // namespace lamella::data
