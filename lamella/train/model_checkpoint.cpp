// When checkpoints are saved, under which names, and which of them stay.
#include "lamella/train/model_checkpoint.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "lamella/base/logging.h"
#include "lamella/data/config.h"

namespace lamella::train {

namespace {

constexpr std::string_view kSuffix = ".ckpt";

// A file named "prefix-epoch_step.ckpt".
struct SavedFile {
  std::string path;
  int64_t epoch, step;
};

std::optional<SavedFile> named_for(const std::filesystem::path& path, const std::string& prefix) {
  const std::string name = path.filename().string();
  if (!name.starts_with(prefix + "-") || !name.ends_with(kSuffix)) return {};
  SavedFile file{.path = path.string(), .epoch = 0, .step = 0};
  const char* const end = name.data() + name.size() - kSuffix.size();
  const auto epoch = std::from_chars(name.data() + prefix.size() + 1, end, file.epoch);
  if (epoch.ec != std::errc() || epoch.ptr == end || *epoch.ptr != '_') return {};
  const auto step = std::from_chars(epoch.ptr + 1, end, file.step);
  if (step.ec != std::errc() || step.ptr != end) return {};
  return file;
}

// The checkpoints of a prefix, the oldest first.
std::vector<SavedFile> files_of(const std::string& directory, const std::string& prefix) {
  std::vector<SavedFile> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (auto file = named_for(entry.path(), prefix)) files.push_back(std::move(*file));
  }
  std::sort(files.begin(), files.end(), [](const SavedFile& a, const SavedFile& b) {
    return std::tie(a.epoch, a.step) < std::tie(b.epoch, b.step);
  });
  return files;
}

// Grows with every write to what a checkpoint of the cell holds.
uint64_t versions_of(nn::Cell& cell) {
  uint64_t sum = 1;
  for (const Ref<nn::Parameter>& parameter : cell.get_parameters()) {
    sum += parameter->tensor().storage()->version();
  }
  return sum;
}

}  // namespace

ModelCheckpoint::ModelCheckpoint(std::string prefix, std::string directory,
                                 const CheckpointConfig& config)
    : prefix_(std::move(prefix)), directory_(std::move(directory)), config_(config) {
  if (prefix_.empty() || prefix_.find('/') != std::string::npos) {
    fail(ErrorKind::Value, "[ModelCheckpoint] prefix must be a file name without '/', got '{}'",
         prefix_);
  }
  if (config.save_checkpoint_steps < 0 || config.save_checkpoint_seconds < 0 ||
      config.keep_checkpoint_max < 0) {
    fail(ErrorKind::Value,
         "[CheckpointConfig] steps, seconds and keep_checkpoint_max must not be "
         "negative");
  }
}

void ModelCheckpoint::begin(RunContext& context) {
  std::error_code error;
  std::filesystem::create_directories(directory_, error);
  if (error) {
    fail(ErrorKind::Io, "[ModelCheckpoint] cannot make the folder {}: {}", directory_,
         error.message());
  }
  saved_.clear();
  if (context.original_args().resumed) {
    if (run_prefix_.empty()) run_prefix_ = prefix_;
    for (const SavedFile& file : files_of(directory_, run_prefix_)) saved_.push_back(file.path);
  } else {
    run_prefix_ = prefix_;
    for (int number = 1; !files_of(directory_, run_prefix_).empty(); ++number) {
      run_prefix_ = fmt::format("{}_{}", prefix_, number);
    }
  }
  saved_step_ = context.original_args().cur_step_num;
  saved_at_ = settled_seconds();
}

void ModelCheckpoint::step_end(RunContext& context) {
  const CallbackParams& params = context.original_args();
  const int64_t steps = config_.save_checkpoint_steps, seconds = config_.save_checkpoint_seconds;
  const bool by_steps = steps > 0 && params.cur_step_num >= saved_step_ + steps;
  if (by_steps || (seconds > 0 && settled_seconds() - saved_at_ >= static_cast<double>(seconds))) {
    save(params);
  }
}

void ModelCheckpoint::end(RunContext& context) {
  const CallbackParams& params = context.original_args();
  const bool made_steps = params.cur_step_num > saved_step_;
  // Another callback may have written after the last step, such as the best weights.
  const bool written = saved_versions_ != 0 && versions_of(saved_cell(params)) != saved_versions_;
  if (made_steps || written) save(params);
  finish_writing();
}

void ModelCheckpoint::restore(const std::map<std::string, std::string>& state) {
  const auto prefix = state.find("prefix");
  if (prefix != state.end() && prefix->second.starts_with(prefix_)) run_prefix_ = prefix->second;
}

nn::Cell& ModelCheckpoint::saved_cell(const CallbackParams& params) const {
  return config_.saved_network ? *config_.saved_network : *params.train_network;
}

void ModelCheckpoint::save(const CallbackParams& params) {
  nn::Cell& cell = saved_cell(params);
  const std::filesystem::path path =
      std::filesystem::path(directory_) /
      fmt::format("{}-{}_{}.ckpt", run_prefix_, params.cur_epoch_num, params.step_in_epoch());
  finish_writing();
  CheckpointSnapshot snapshot(cell, run_state(params));
  if (!config_.async_save) snapshot.write(path.string());
  latest_ = path.string();
  saved_step_ = params.cur_step_num;
  saved_versions_ = versions_of(cell);
  saved_at_ = settled_seconds();
  if (!config_.async_save) return note_saved();
  writing_ = std::async(std::launch::async,
                        [snapshot = std::move(snapshot), path = latest_] { snapshot.write(path); });
}

// The file before is whole, or what kept it from being written is thrown.
void ModelCheckpoint::finish_writing() {
  if (!writing_.valid()) return;
  writing_.get();
  note_saved();
}

// The latest file is there: older ones beyond the number to keep go.
void ModelCheckpoint::note_saved() {
  std::erase(saved_, latest_);
  saved_.push_back(latest_);
  const auto most = static_cast<size_t>(config_.keep_checkpoint_max);
  while (most > 0 && saved_.size() > most) {
    std::error_code ignored;  // a file that someone else removed is gone all the same
    std::filesystem::remove(saved_.front(), ignored);
    saved_.erase(saved_.begin());
  }
}

std::optional<std::string> newest_checkpoint(const std::string& path, const std::string& prefix) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    return std::filesystem::exists(path, error) ? std::optional(path) : std::nullopt;
  }
  std::optional<std::string> newest;
  std::tuple<std::filesystem::file_time_type, int64_t> last;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix) || !name.ends_with(kSuffix)) continue;
    try {
      const std::optional<RunState> run = saved_run(entry.path().string());
      if (!run) continue;
      const std::tuple written(entry.last_write_time(), run->step);
      if (newest && written <= last) continue;
      last = written;
      newest = entry.path().string();
    } catch (const Error& unreadable) {
      log().warn("left out: {}", unreadable.message());
    }
  }
  return newest;
}

RunState resume(nn::Cell& train_network, const std::string& path) {
  const Checkpoint checkpoint = load_checkpoint(path);
  if (!checkpoint.run) {
    fail(
        ErrorKind::Value,
        "[resume] {} holds parameters, but not where a run stood: it was not saved during training",
        path);
  }
  load_param_into_net(train_network, checkpoint, Match::Strict);
  set_random_state(checkpoint.run->random);
  data::config::set_seed(checkpoint.run->data_seed);
  return *checkpoint.run;
}

}  // namespace lamella::train
