// Rows made one by one, put together to a batch.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lamella/base/function_ref.h"
#include "lamella/data/array.h"
#include "lamella/data/ticket.h"

namespace lamella::data {

using MakeRow = FunctionRef<std::vector<Array>(const Ticket&)>;

// For each of `count` columns, its array in every row.
std::vector<std::vector<Array>> columns_of_rows(std::span<const Ticket> tickets, size_t count,
                                                MakeRow make);

// Each column's arrays along a new first axis. Throws Value, in the name of `operation` and with
// the column's name, if they differ in dtype or sizes or there are none.
std::vector<Array> stack_columns(const std::vector<std::vector<Array>>& columns,
                                 const std::vector<std::string>& names, std::string_view operation);

// Both: the batch of the rows of `tickets`.
std::vector<Array> stack_rows(std::span<const Ticket> tickets,
                              const std::vector<std::string>& names, std::string_view operation,
                              MakeRow make);

}  // namespace lamella::data
