// Columns in and out of an operation.
#include "lamella/data/column_plan.h"

#include <numeric>
#include <set>

#include "lamella/data/config.h"

namespace lamella::data {

ColumnPlan::ColumnPlan(const std::vector<std::string>& columns, const ColumnOptions& options,
                       const std::vector<std::string>& default_inputs, std::string_view operation)
    : operation_(operation) {
  config::check_workers(options.workers, operation);
  const std::vector<std::string>& inputs = options.inputs.empty() ? default_inputs : options.inputs;
  check_distinct(inputs, operation);
  for (const std::string& input : inputs) {
    inputs_.push_back(column_index(columns, input, operation));
  }
  const std::vector<std::string>& outputs = options.outputs.empty() ? inputs : options.outputs;
  outputs_ = inputs_;
  if (outputs.size() != inputs_.size()) {
    outputs_.resize(outputs.size());
    std::iota(outputs_.begin(), outputs_.end(), size_t{0});
  }
  names_ = place(columns, outputs);
  check_distinct(names_, operation);
}

void ColumnPlan::check_results(size_t count) const {
  if (count != outputs_.size()) {
    fail(ErrorKind::Value,
         "[{}] the function gave {} columns where {} were expected; name the columns it gives as "
         "output columns",
         operation_, count, outputs_.size());
  }
}

void check_distinct(const std::vector<std::string>& names, std::string_view operation) {
  std::set<std::string_view> seen;
  for (const std::string& name : names) {
    if (!seen.insert(name).second) {
      fail(ErrorKind::Value, "[{}] column '{}' would occur twice", operation, name);
    }
  }
}

}  // namespace lamella::data
