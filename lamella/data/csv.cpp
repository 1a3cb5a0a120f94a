// A reader of records, field by field.
#include "lamella/data/csv.h"

#include <algorithm>

#include "lamella/base/error.h"
#include "lamella/data/utf8.h"

namespace lamella::data {

bool CsvReader::at_line_end() const {
  return place_ == content_.size() || content_[place_] == '\n' ||
         (content_[place_] == '\r' && place_ + 1 < content_.size() && content_[place_ + 1] == '\n');
}

void CsvReader::skip_line_end() {
  if (place_ == content_.size()) return;
  place_ += content_[place_] == '\r' ? 2 : 1;
}

bool CsvReader::next(std::vector<std::string>& fields) {
  while (place_ < content_.size() && at_line_end()) skip_line_end();
  if (place_ == content_.size()) return false;
  record_start_ = place_;
  size_t count = 0;
  for (;;) {
    if (count == fields.size()) fields.emplace_back();
    std::string& field = fields[count++];
    field.clear();
    if (place_ < content_.size() && content_[place_] == '"') {
      read_quoted(field);
    } else {
      read_plain(field);
    }
    if (at_line_end()) break;
    ++place_;  // the delimiter
  }
  skip_line_end();
  fields.resize(count);
  return true;
}

void CsvReader::read_plain(std::string& field) {
  const size_t start = place_;
  while (!at_line_end() && content_[place_] != delimiter_) ++place_;
  field = content_.substr(start, place_ - start);
}

void CsvReader::read_quoted(std::string& field) {
  const size_t opening = place_++;
  for (;;) {
    const size_t quote = content_.find('"', place_);
    if (quote == std::string_view::npos) {
      fail(ErrorKind::Io, "{}:{}: the quote that opens field {} is never closed", path_,
           line_at(content_, opening), std::string(content_.substr(opening, 20)));
    }
    field += content_.substr(place_, quote - place_);
    place_ = quote + 1;
    if (place_ == content_.size() || content_[place_] != '"') break;
    field += '"';
    ++place_;
  }
  if (!at_line_end() && content_[place_] != delimiter_) {
    fail(ErrorKind::Io,
         "{}:{}: '{}' follows the closing quote of a field; a quote inside a field is doubled",
         path_, line_at(content_, place_), content_.substr(place_, 1));
  }
}

}  // namespace lamella::data
