// Sources whose samples are lines of text files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lamella/data/record_files.h"

namespace lamella::data {

// The lines of UTF-8 files, without their ends (LF or CRLF); empty lines are no samples. Column
// "text". Throws Io for a file that is missing or no UTF-8.
class LAMELLA_API TextFileDataset : public IndexedSource {
 public:
  explicit TextFileDataset(const std::vector<std::string>& files, const SourceOptions& options = {},
                           ShuffleScope scope = ShuffleScope::Records);

  int64_t sample_count() const override { return files_->count(); }

 protected:
  std::vector<Array> make_row(const Ticket& ticket) const override;

 private:
  TextFileDataset(std::shared_ptr<const RecordFiles> files, const SourceOptions& options,
                  ShuffleScope scope);

  std::shared_ptr<const RecordFiles> files_;
};

}  // namespace lamella::data
