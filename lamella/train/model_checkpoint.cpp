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
  run_prefix_ = prefix_;
  if (context.original_args().resumed) {
    for (const SavedFile& file : files_of(directory_, prefix_)) saved_.push_back(file.path);
  } else {
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
  if (params.cur_step_num > saved_step_) save(params);
  finish_writing();
}

void ModelCheckpoint::save(const CallbackParams& params) {
  const Ref<nn::Cell>& cell = config_.saved_network ? config_.saved_network : params.train_network;
  const std::filesystem::path path =
      std::filesystem::path(directory_) /
      fmt::format("{}-{}_{}.ckpt", run_prefix_, params.cur_epoch_num, params.step_in_epoch());
  finish_writing();
  CheckpointSnapshot snapshot(*cell, run_state(params));
  latest_ = path.string();
  saved_step_ = params.cur_step_num;
  saved_at_ = settled_seconds();
  std::erase(saved_, latest_);
  saved_.push_back(latest_);
  writing_ = std::async(config_.async_save ? std::launch::async : std::launch::deferred,
                        [snapshot = std::move(snapshot), path = latest_] { snapshot.write(path); });
  if (!config_.async_save) finish_writing();
}

// The file before is whole, or what kept it from being written is thrown.
void ModelCheckpoint::finish_writing() {
  if (!writing_.valid()) return;
  writing_.get();
  remove_surplus();
}

void ModelCheckpoint::remove_surplus() {
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
  int64_t most_steps = -1;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix) || !name.ends_with(kSuffix)) continue;
    try {
      const std::optional<RunState> run = saved_run(entry.path().string());
      if (!run || run->step <= most_steps) continue;
      most_steps = run->step;
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
