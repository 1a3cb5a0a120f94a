// Columns by name.
#include "lamella/data/row.h"

#include <algorithm>

namespace lamella::data {

Row::Row(Names names, std::vector<Array> columns)
    : names_(std::move(names)), columns_(std::move(columns)) {
  LAMELLA_CHECK(names_ && names_->size() == columns_.size());
}

const Array& Row::operator[](std::string_view name) const {
  return columns_[column_index(names(), name, "Row")];
}

size_t column_index(const std::vector<std::string>& names, std::string_view name,
                    std::string_view operation) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    fail(ErrorKind::Value, "[{}] there is no column '{}'; the columns are: {}", operation, name,
         fmt::join(names, ", "));
  }
  return static_cast<size_t>(found - names.begin());
}

}  // namespace lamella::data
