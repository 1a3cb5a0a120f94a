// Copying rows into larger arrays.
#include "lamella/data/pad.h"

#include <algorithm>

#include "lamella/data/row.h"
#include "lamella/data/transforms/convert.h"

namespace lamella::data {

namespace {

const char* const kName = "padded_batch";

// One element of the column's dtype.
Array fill_value(double value, DType dtype, const std::string& column) {
  const Array element = convert(Array::scalar(value), dtype, kName);
  const bool whole = is_integer(dtype) || dtype == DType::Bool;
  if (whole && convert(element, DType::Float64, kName).as<double>()[0] != value) {
    fail(ErrorKind::Value, "[{}] column '{}' holds {}, which cannot be padded with {}", kName,
         column, name(dtype), value);
  }
  return element;
}

// Copies the elements of `from` to the front of each axis of `to`, `size` bytes an element.
void copy_block(const std::byte* from, const Axes& from_sizes, std::byte* to, const Axes& to_sizes,
                size_t axis, size_t size) {
  if (axis == from_sizes.size()) {
    std::memcpy(to, from, size);
    return;
  }
  size_t from_stride = size, to_stride = size;
  for (size_t i = axis + 1; i < from_sizes.size(); ++i) {
    from_stride *= static_cast<size_t>(from_sizes[i]);
    to_stride *= static_cast<size_t>(to_sizes[i]);
  }
  const auto count = static_cast<size_t>(from_sizes[axis]);
  if (from_stride == to_stride) {
    if (count * from_stride > 0) std::memcpy(to, from, count * from_stride);
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    copy_block(from + i * from_stride, from_sizes, to + i * to_stride, to_sizes, axis + 1, size);
  }
}

Array padded(const Array& row, const Axes& sizes, const Array& element) {
  if (row.sizes() == sizes) return row;
  Array larger(row.dtype(), sizes);
  const auto size = static_cast<size_t>(size_of(row.dtype()));
  std::byte* to = larger.writable();
  for (size_t i = 0; i < larger.bytes(); i += size) std::memcpy(to + i, element.data(), size);
  copy_block(row.data(), row.sizes(), to, sizes, 0, size);
  return larger;
}

// The sizes that all rows of a column get.
Axes common_sizes(const std::vector<Array>& rows, const PadColumn& how, const std::string& column) {
  Axes sizes = rows[0].sizes();
  for (const Array& row : rows) {
    if (row.sizes().size() != sizes.size() || row.dtype() != rows[0].dtype()) {
      fail(ErrorKind::Value,
           "[{}] rows of column '{}' differ in dtype or number of axes: {} and {}", kName, column,
           text(rows[0].type()), text(row.type()));
    }
    for (size_t axis = 0; axis < sizes.size(); ++axis) {
      sizes[axis] = std::max(sizes[axis], row.sizes()[axis]);
    }
  }
  if (!how.sizes) return sizes;
  if (how.sizes->size() != sizes.size()) {
    fail(ErrorKind::Value,
         "[{}] pad_info has {} sizes for column '{}', whose rows have {} axes: {}", kName,
         how.sizes->size(), column, sizes.size(), text(rows[0].type()));
  }
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    const std::optional<int64_t> size = (*how.sizes)[axis];
    if (!size) continue;
    if (*size < sizes[axis]) {
      fail(
          ErrorKind::Value,
          "[{}] a row of column '{}' has {} elements along axis {}, more than the {} that pad_info "
          "asks for",
          kName, column, sizes[axis], axis, *size);
    }
    sizes[axis] = *size;
  }
  return sizes;
}

}  // namespace

RowPadding::RowPadding(PadInfo info, const std::vector<std::string>& columns)
    : info_(std::move(info)) {
  for (const auto& [column, how] : info_) {
    column_index(columns, column, kName);
    if (!how.sizes) continue;
    for (const std::optional<int64_t>& size : *how.sizes) {
      if (size && *size < 0) {
        fail(ErrorKind::Value, "[{}] pad_info has a negative size for column '{}': {}", kName,
             column, *size);
      }
    }
  }
}

void RowPadding::apply(std::vector<std::vector<Array>>& columns,
                       const std::vector<std::string>& names) const {
  static const PadColumn to_longest;
  for (size_t i = 0; i < columns.size(); ++i) {
    std::vector<Array>& rows = columns[i];
    const auto found = info_.find(names[i]);
    if (rows.empty() || (!info_.empty() && found == info_.end())) continue;
    if (rows[0].type().is_text) {
      if (info_.empty()) continue;  // strings may differ in length as they are
      fail(ErrorKind::Unsupported, "[{}] column '{}' holds text; only numbers are padded", kName,
           names[i]);
    }
    const PadColumn& how = info_.empty() ? to_longest : found->second;
    const Axes sizes = common_sizes(rows, how, names[i]);
    const Array element = fill_value(how.value, rows[0].dtype(), names[i]);
    for (Array& row : rows) row = padded(row, sizes, element);
  }
}

}  // namespace lamella::data
