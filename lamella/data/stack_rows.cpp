// Stacking the columns of rows.
#include "lamella/data/stack_rows.h"

namespace lamella::data {

std::vector<std::vector<Array>> columns_of_rows(std::span<const Ticket> tickets, size_t count,
                                                MakeRow make) {
  std::vector<std::vector<Array>> columns(count);
  for (auto& column : columns) column.reserve(tickets.size());
  for (const Ticket& ticket : tickets) {
    std::vector<Array> row = make(ticket);
    LAMELLA_CHECK(row.size() == count);
    for (size_t i = 0; i < count; ++i) columns[i].push_back(std::move(row[i]));
  }
  return columns;
}

std::vector<Array> stack_columns(const std::vector<std::vector<Array>>& columns,
                                 const std::vector<std::string>& names,
                                 std::string_view operation) {
  std::vector<Array> batch;
  batch.reserve(columns.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].empty()) {
      fail(ErrorKind::Value, "[{}] there are no rows for column '{}'", operation, names[i]);
    }
    batch.push_back(stack(columns[i], operation, names[i]));
  }
  return batch;
}

std::vector<Array> stack_rows(std::span<const Ticket> tickets,
                              const std::vector<std::string>& names, std::string_view operation,
                              MakeRow make) {
  return stack_columns(columns_of_rows(tickets, names.size(), make), names, operation);
}

}  // namespace lamella::data
