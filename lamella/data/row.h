// One row of a dataset, or one batch: arrays under their column names.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lamella/data/array.h"

namespace lamella::data {

class LAMELLA_API Row {
 public:
  using Names = std::shared_ptr<const std::vector<std::string>>;

  Row() = default;
  // As many names as columns.
  Row(Names names, std::vector<Array> columns);

  size_t size() const { return columns_.size(); }
  const std::vector<std::string>& names() const { return *names_; }
  const std::vector<Array>& columns() const { return columns_; }

  const Array& operator[](size_t index) const { return columns_.at(index); }
  // Throws Value, listing the columns there are, if there is none of that name.
  const Array& operator[](std::string_view name) const;

 private:
  Names names_;
  std::vector<Array> columns_;
};

// Where `name` stands among `names`; throws Value in the name of `operation` if it does not.
LAMELLA_API size_t column_index(const std::vector<std::string>& names, std::string_view name,
                                std::string_view operation);

}  // namespace lamella::data
