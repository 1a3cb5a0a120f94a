// Text files whose records are samples, and orders that mix files or records.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lamella/base/function_ref.h"
#include "lamella/base/system/mapped_file.h"
#include "lamella/data/sampler.h"
#include "lamella/data/source.h"

namespace lamella::data {

// What a random order mixes: all records, or whole files, whose records stay in order.
enum class ShuffleScope : uint8_t { Records, Files };

// The files are mapped, not loaded; only the place of each record is held in memory.
class RecordFiles {
 public:
  struct Record {
    std::string_view path;
    std::string_view content;  // of the whole file
    size_t start;              // of the record in it
  };
  // Where each record of a file begins.
  using Scan = FunctionRef<std::vector<size_t>(std::string_view content, const std::string& path)>;

  // Throws Value, in the name of `source`, without files; Io, naming the file and where it can the
  // line, for files that are missing or no UTF-8, and for what `scan` finds.
  RecordFiles(const std::vector<std::string>& paths, std::string_view source, Scan scan);

  int64_t count() const { return first_.back(); }
  Record record(int64_t number) const;

  // `options` with the sampler of the order they ask for.
  SourceOptions ordered(const SourceOptions& options, ShuffleScope scope,
                        std::string_view source) const;

 private:
  struct File {
    explicit File(const std::string& name);
    std::string path;
    MappedFile map;
    std::string_view content;
    std::vector<size_t> starts;
  };
  std::deque<File> files_;
  std::vector<int64_t> first_ = {0};  // the number of each file's first record, and the count
};

}  // namespace lamella::data
