// CSV files as samples: columns, their types, values.
#include "lamella/data/csv_file.h"

#include <charconv>
#include <cmath>

#include "lamella/data/csv.h"
#include "lamella/data/utf8.h"

namespace lamella::data {

namespace {

const char* const kName = "CSVDataset";

std::string place_of(std::string_view path, std::string_view content, size_t offset) {
  return fmt::format("{}:{}", path, line_at(content, offset));
}

std::string_view trimmed(std::string_view field) {
  const size_t first = field.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return field.substr(first, field.find_last_not_of(" \t") - first + 1);
}

template <typename T>
constexpr const char* kind_of() {
  return std::is_integral_v<T> ? "whole number" : "number";
}

template <typename T>
Array parsed(std::string_view field) {
  std::string_view digits = field;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  // A float is read as a double and rounded once more, so that its range is what is checked.
  std::conditional_t<std::is_integral_v<T>, T, double> value{};
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (failure == std::errc::invalid_argument || end != digits.data() + digits.size() ||
      digits.starts_with('+') || (digits.size() < field.size() && digits.starts_with('-'))) {
    fail(ErrorKind::Io, "'{}' is no {}", field, kind_of<T>());
  }
  const T result = static_cast<T>(value);
  const bool too_large =
      std::isfinite(static_cast<double>(value)) && !std::isfinite(static_cast<double>(result));
  if (failure != std::errc() || too_large) {
    fail(ErrorKind::Io, "'{}' is out of the range of {}", field, name(dtype_of<T>()));
  }
  return Array::scalar<T>(result);
}

// A field as a value of the default's type; the default for an empty one.
Array value_of(const std::string& field, const CsvDefault& empty) {
  return std::visit(
      [&]<typename T>(const T& value) {
        if constexpr (std::is_same_v<T, std::string>) {
          return Array::text(field.empty() ? value : field);
        } else {
          const std::string_view number = trimmed(field);
          return number.empty() ? Array::scalar<T>(value) : parsed<T>(number);
        }
      },
      empty);
}

}  // namespace

CsvDataset::Index CsvDataset::index(const std::vector<std::string>& files, const CsvOptions& csv) {
  if (csv.delimiter == '"' || csv.delimiter == '\n' || csv.delimiter == '\r') {
    fail(ErrorKind::Value, "[{}] field_delim cannot be a quote or a line end", kName);
  }
  Index index{.names = csv.names, .files = nullptr};
  const auto scan = [&](std::string_view content, const std::string& path) {
    std::vector<size_t> starts;
    CsvReader reader(content, csv.delimiter, path);
    std::vector<std::string> fields;
    if (csv.names.empty()) {
      if (!reader.next(fields)) {
        fail(ErrorKind::Io,
             "{}:1: there is no line with the names of the columns; give them as column_names",
             path);
      }
      if (index.names.empty()) index.names = fields;
      if (fields != index.names) {
        fail(ErrorKind::Io, "{}: the columns are {}, those of '{}' are {}",
             place_of(path, content, reader.record_start()), fmt::join(fields, ", "), files[0],
             fmt::join(index.names, ", "));
      }
    }
    while (reader.next(fields)) {
      if (fields.size() != index.names.size()) {
        fail(ErrorKind::Io, "{}: {} fields, where there are {} columns: {}",
             place_of(path, content, reader.record_start()), fields.size(), index.names.size(),
             fmt::join(index.names, ", "));
      }
      starts.push_back(reader.record_start());
    }
    return starts;
  };
  index.files = std::make_shared<const RecordFiles>(files, kName, scan);
  return index;
}

CsvDataset::CsvDataset(const std::vector<std::string>& files, const CsvOptions& csv,
                       const SourceOptions& options, ShuffleScope scope)
    : CsvDataset(index(files, csv), csv, options, scope) {}

CsvDataset::CsvDataset(Index index, const CsvOptions& csv, const SourceOptions& options,
                       ShuffleScope scope)
    : IndexedSource(std::move(index.names), index.files->ordered(options, scope, kName), kName),
      files_(std::move(index.files)),
      csv_(csv) {
  for (const std::string& name : columns()) {
    if (name.empty()) fail(ErrorKind::Value, "[{}] a column has an empty name", kName);
  }
  if (csv_.defaults.empty()) csv_.defaults.resize(columns().size());
  if (csv_.defaults.size() != columns().size()) {
    fail(ErrorKind::Value, "[{}] column_defaults has {} values for {} columns: {}", kName,
         csv_.defaults.size(), columns().size(), fmt::join(columns(), ", "));
  }
}

std::vector<Array> CsvDataset::make_row(const Ticket& ticket) const {
  const RecordFiles::Record record = files_->record(ticket.sample);
  CsvReader reader(record.content, csv_.delimiter, record.path, record.start);
  std::vector<std::string> fields;
  LAMELLA_CHECK(reader.next(fields) && fields.size() == columns().size());
  std::vector<Array> row;
  row.reserve(fields.size());
  for (size_t i = 0; i < fields.size(); ++i) {
    try {
      row.push_back(value_of(fields[i], csv_.defaults[i]));
    } catch (const Error& error) {
      // The line is only counted for the message.
      fail(error.kind(), "{}: column '{}': {}", place_of(record.path, record.content, record.start),
           columns()[i], error.message());
    }
  }
  return row;
}

}  // namespace lamella::data
