// Finding records by number, and mixing files.
#include "lamella/data/record_files.h"

#include <algorithm>
#include <numeric>

#include "lamella/data/utf8.h"

namespace lamella::data {

namespace {

// Files in random order, the records of each in theirs.
class FileSampler : public Sampler {
 public:
  FileSampler(std::vector<int64_t> first, const SourceOptions& options)
      : first_(std::move(first)), options_(options) {}

  int64_t length(int64_t size) const override { return parts().length(size); }
  std::vector<int64_t> order(int64_t size, RandomStream random) const override {
    std::vector<int64_t> all;
    all.reserve(static_cast<size_t>(size));
    for (int64_t file : random_permutation(static_cast<int64_t>(first_.size()) - 1, random)) {
      const auto at = static_cast<size_t>(file);
      for (int64_t i = first_[at]; i < first_[at + 1]; ++i) all.push_back(i);
    }
    std::vector<int64_t> chosen = parts().order(size, random);
    for (int64_t& place : chosen) place = all[static_cast<size_t>(place)];
    return chosen;
  }

 private:
  // Which places of the order this shard reads.
  DistributedSampler parts() const {
    return DistributedSampler(options_.num_shards.value_or(1), options_.shard_id.value_or(0),
                              Order::AsGiven, options_.num_samples);
  }

  std::vector<int64_t> first_;
  SourceOptions options_;
};

}  // namespace

RecordFiles::File::File(const std::string& name)
    : path(name), map(name), content(utf8_content(map.bytes(), name)) {}

RecordFiles::RecordFiles(const std::vector<std::string>& paths, std::string_view source,
                         Scan scan) {
  if (paths.empty()) fail(ErrorKind::Value, "[{}] the list of files is empty", source);
  for (const std::string& path : paths) {
    File& file = files_.emplace_back(path);
    file.starts = scan(file.content, file.path);
    first_.push_back(first_.back() + static_cast<int64_t>(file.starts.size()));
  }
}

RecordFiles::Record RecordFiles::record(int64_t number) const {
  const auto after = std::upper_bound(first_.begin(), first_.end(), number);
  LAMELLA_CHECK(number >= 0 && after != first_.end());
  const auto index = static_cast<size_t>(after - first_.begin() - 1);
  const File& file = files_[index];
  return {file.path, file.content, file.starts[static_cast<size_t>(number - first_[index])]};
}

SourceOptions RecordFiles::ordered(const SourceOptions& options, ShuffleScope scope,
                                   std::string_view source) const {
  SourceOptions made{.workers = options.workers};
  made.sampler = sampler_of(options, source);
  const bool mixes_files = scope == ShuffleScope::Files && options.shuffle.value_or(true);
  if (mixes_files && !options.sampler) made.sampler = make_ref<FileSampler>(first_, options);
  return made;
}

}  // namespace lamella::data
