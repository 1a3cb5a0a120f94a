// Records of comma-separated values (RFC 4180): fields between delimiters, one record a line.
//
// A field in double quotes may hold delimiters, line ends and, doubled, quotes. Lines end with LF
// or CRLF; the last one need not. Empty lines are no records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lamella/base/api.h"

namespace lamella::data {

class LAMELLA_API CsvReader {
 public:
  // Reads `content` from `start`, where a record begins. `path` names it in errors.
  CsvReader(std::string_view content, char delimiter, std::string_view path, size_t start = 0)
      : content_(content), delimiter_(delimiter), path_(path), place_(start) {}

  // Puts the next record's fields into `fields`; false at the end. Throws Io, naming file and line,
  // for a quote that is not closed or is followed by more of its field.
  bool next(std::vector<std::string>& fields);
  // Where the last record began.
  size_t record_start() const { return record_start_; }

 private:
  void read_plain(std::string& field);
  void read_quoted(std::string& field);
  bool at_line_end() const;
  void skip_line_end();

  std::string_view content_;
  char delimiter_;
  std::string_view path_;
  size_t place_;
  size_t record_start_ = 0;
};

}  // namespace lamella::data
