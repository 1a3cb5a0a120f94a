// Sources whose samples are records of CSV files.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "lamella/data/record_files.h"

namespace lamella::data {

// The value of an empty field; its type is the column's.
using CsvDefault = std::variant<std::string, int32_t, int64_t, float, double>;

struct CsvOptions {
  char delimiter = ',';
  // One for each column; none: every column is text.
  std::vector<CsvDefault> defaults = {};
  // None: the first record of every file names the columns, all alike.
  std::vector<std::string> names = {};
};

// The records of CSV files (csv.h). Every record must have a field for each column: throws Io,
// naming file and line, where one has more or fewer, and when a row is read, for a field that is no
// number of its column's type.
class LAMELLA_API CsvDataset : public IndexedSource {
 public:
  explicit CsvDataset(const std::vector<std::string>& files, const CsvOptions& csv = {},
                      const SourceOptions& options = {},
                      ShuffleScope scope = ShuffleScope::Records);

  int64_t sample_count() const override { return files_->count(); }

 protected:
  std::vector<Array> make_row(const Ticket& ticket) const override;

 private:
  struct Index {
    std::vector<std::string> names;
    std::shared_ptr<const RecordFiles> files;
  };
  static Index index(const std::vector<std::string>& files, const CsvOptions& csv);
  CsvDataset(Index index, const CsvOptions& csv, const SourceOptions& options, ShuffleScope scope);

  std::shared_ptr<const RecordFiles> files_;
  CsvOptions csv_;
};

}  // namespace lamella::data
