// Columns chosen, ordered and renamed.
#include "lamella/data/column_plan.h"
#include "lamella/data/dataset.h"

namespace lamella::data {

namespace {

class Project : public Operation {
 public:
  Project(Ref<Dataset> child, std::vector<std::string> names, std::vector<size_t> chosen)
      : Operation(std::move(child), std::move(names)), chosen_(std::move(chosen)) {}

  std::optional<std::vector<Array>> make_batch(std::span<const Ticket> tickets) const override {
    auto batch = child().make_batch(tickets);
    if (batch) *batch = choose(*batch);
    return batch;
  }

 protected:
  std::vector<Array> make_row(const Ticket& ticket) const override {
    return choose(child().make(ticket));
  }

 private:
  std::vector<Array> choose(const std::vector<Array>& all) const {
    std::vector<Array> columns;
    for (size_t index : chosen_) columns.push_back(all[index]);
    return columns;
  }

  std::vector<size_t> chosen_;
};

class Rename : public Operation {
 public:
  Rename(Ref<Dataset> child, std::vector<std::string> names)
      : Operation(std::move(child), std::move(names)) {}
};

}  // namespace

Ref<Dataset> Dataset::project(std::vector<std::string> columns) {
  if (columns.empty()) fail(ErrorKind::Value, "[project] the list of columns is empty");
  check_distinct(columns, "project");
  std::vector<size_t> chosen;
  for (const std::string& column : columns) {
    chosen.push_back(column_index(this->columns(), column, "project"));
  }
  return make_ref<Project>(Ref<Dataset>(this), std::move(columns), std::move(chosen));
}

Ref<Dataset> Dataset::rename(const std::vector<std::string>& from,
                             const std::vector<std::string>& to) {
  if (from.size() != to.size()) {
    fail(ErrorKind::Value, "[rename] {} input columns were given for {} output columns",
         from.size(), to.size());
  }
  std::vector<std::string> names = columns();
  for (size_t i = 0; i < from.size(); ++i) {
    names[column_index(columns(), from[i], "rename")] = to[i];
  }
  check_distinct(names, "rename");
  return make_ref<Rename>(Ref<Dataset>(this), std::move(names));
}

}  // namespace lamella::data
