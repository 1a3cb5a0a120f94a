// Lines of text files.
#include "lamella/data/text_file.h"

#include "lamella/data/text_lines.h"

namespace lamella::data {

namespace {

const char* const kName = "TextFileDataset";

}  // namespace

TextFileDataset::TextFileDataset(const std::vector<std::string>& files,
                                 const SourceOptions& options, ShuffleScope scope)
    : TextFileDataset(
          std::make_shared<const RecordFiles>(
              files, kName,
              [](std::string_view content, const std::string&) { return find_lines(content); }),
          options, scope) {}

TextFileDataset::TextFileDataset(std::shared_ptr<const RecordFiles> files,
                                 const SourceOptions& options, ShuffleScope scope)
    : IndexedSource({"text"}, files->ordered(options, scope, kName), kName),
      files_(std::move(files)) {}

std::vector<Array> TextFileDataset::make_row(const Ticket& ticket) const {
  const RecordFiles::Record record = files_->record(ticket.sample);
  return {Array::text(line_from(record.content, record.start))};
}

}  // namespace lamella::data
