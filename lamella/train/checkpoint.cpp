// Saving and loading.
#include "lamella/train/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

#include "lamella/io/safetensors.h"
#include "lamella/ir/window.h"
#include "lamella/ops/functions.h"

namespace lamella::train {

namespace {

// Metadata keys of a run's state; others are the user's.
constexpr const char* kKind = "lamella.checkpoint";
constexpr int kVersion = 1;

io::Metadata metadata_of(const std::optional<RunState>& run,
                         const std::map<std::string, std::string>& extra) {
  io::Metadata metadata(extra.begin(), extra.end());
  metadata[kKind] = std::to_string(kVersion);
  if (run) {
    metadata["lamella.epoch"] = std::to_string(run->epoch);
    metadata["lamella.step"] = std::to_string(run->step);
    metadata["lamella.random_seed"] = std::to_string(run->random.seed);
    metadata["lamella.random_offset"] = std::to_string(run->random.offset);
    metadata["lamella.data_epoch"] = std::to_string(run->data.epoch);
    metadata["lamella.data_batch"] = std::to_string(run->data.batch);
  }
  return metadata;
}

template <typename Number>
Number number_at(const io::Metadata& metadata, const std::string& key, const std::string& path) {
  const auto found = metadata.find(key);
  Number number{};
  const bool given = found != metadata.end();
  const char* end = given ? found->second.data() + found->second.size() : nullptr;
  if (!given || std::from_chars(found->second.data(), end, number).ptr != end) {
    fail(ErrorKind::Io, "[load_checkpoint] {}: '{}' is {}", path, key,
         given ? "no number: '" + found->second + "'" : "missing");
  }
  return number;
}

std::optional<RunState> run_of(const io::Metadata& metadata, const std::string& path) {
  if (!metadata.contains("lamella.step")) return {};
  return RunState{
      .epoch = number_at<int64_t>(metadata, "lamella.epoch", path),
      .step = number_at<int64_t>(metadata, "lamella.step", path),
      .random = {.seed = number_at<uint64_t>(metadata, "lamella.random_seed", path),
                 .offset = number_at<uint64_t>(metadata, "lamella.random_offset", path)},
      .data = {.epoch = number_at<int64_t>(metadata, "lamella.data_epoch", path),
               .batch = number_at<int64_t>(metadata, "lamella.data_batch", path)},
  };
}

Axes sizes_of(const Shape& shape) {
  Axes sizes;
  for (Dim size : shape) sizes.push_back(size.value());
  return sizes;
}

}  // namespace

const Tensor* Checkpoint::find(std::string_view name) const {
  const auto found = std::find_if(parameters.begin(), parameters.end(),
                                  [&](const auto& entry) { return entry.first == name; });
  return found == parameters.end() ? nullptr : &found->second;
}

void save_checkpoint(const NamedTensors& parameters, const std::string& path,
                     const std::optional<RunState>& run,
                     const std::map<std::string, std::string>& extra) {
  std::vector<Buffer> held;  // keeps the memory that the arrays point to
  std::vector<io::NamedArray> arrays;
  for (const auto& [name, tensor] : parameters) {
    held.push_back(tensor.data());
    const Buffer& elements = held.back();
    arrays.push_back({.name = name,
                      .dtype = tensor.dtype(),
                      .sizes = sizes_of(tensor.shape()),
                      .data = {static_cast<const std::byte*>(elements.data()),
                               static_cast<size_t>(elements.size)}});
  }
  io::save_tensors(path, arrays, metadata_of(run, extra));
}

void save_checkpoint(nn::Cell& cell, const std::string& path, const std::optional<RunState>& run,
                     const std::map<std::string, std::string>& extra) {
  cell.check_names();
  NamedTensors parameters;
  for (const Ref<nn::Parameter>& parameter : cell.get_parameters()) {
    parameters.emplace_back(parameter->name(), parameter->tensor());
  }
  for (auto& buffer : cell.persistent_buffers()) parameters.push_back(std::move(buffer));
  save_checkpoint(parameters, path, run, extra);
}

Checkpoint load_checkpoint(const std::string& path) {
  const io::TensorFile file(path);
  Checkpoint checkpoint{.parameters = {}, .run = run_of(file.metadata(), path), .extra = {}};
  for (const io::NamedArray& array : file.tensors()) {
    Shape shape;
    for (int64_t size : array.sizes) shape.push_back(size);
    checkpoint.parameters.emplace_back(array.name,
                                       Tensor::from_data(array.dtype, shape, array.data.data()));
  }
  for (const auto& [key, value] : file.metadata()) {
    if (!key.starts_with("lamella.")) checkpoint.extra[key] = value;
  }
  return checkpoint;
}

NotLoaded load_param_into_net(nn::Cell& network, const Checkpoint& checkpoint, Match match) {
  NotLoaded not_loaded;
  std::string faults;
  std::set<std::string, std::less<>> names;
  std::vector<std::pair<Tensor, const Tensor*>> writes;
  const auto match_one = [&](const std::string& name, const Tensor& tensor) {
    names.insert(name);
    const Tensor* value = checkpoint.find(name);
    if (value == nullptr) {
      not_loaded.parameters.push_back(name);
      if (match == Match::Strict) {
        faults += fmt::format("\n  {}: {} in the network, missing in the checkpoint", name,
                              text(tensor.type()));
      }
      return;
    }
    const bool other_dtype = value->dtype() != tensor.dtype();
    if (value->shape() != tensor.shape() || (other_dtype && match == Match::Strict)) {
      faults += fmt::format("\n  {}: {} in the network, {} in the checkpoint", name,
                            text(TensorType{tensor.dtype(), Layout::RowMajor, tensor.shape()}),
                            text(value->type()));
    }
    writes.emplace_back(tensor, value);
  };
  for (const Ref<nn::Parameter>& parameter : network.get_parameters()) {
    match_one(parameter->name(), parameter->tensor());
  }
  for (const auto& [name, tensor] : network.persistent_buffers()) match_one(name, tensor);
  for (const auto& [name, tensor] : checkpoint.parameters) {
    if (names.contains(name)) continue;
    not_loaded.checkpoint.push_back(name);
    if (match == Match::Strict) {
      faults += fmt::format("\n  {}: {} in the checkpoint, missing in the network", name,
                            text(tensor.type()));
    }
  }
  if (!faults.empty()) {
    fail(ErrorKind::Value, "[load_param_into_net] network and checkpoint do not match:{}", faults);
  }
  for (const auto& [tensor, value] : writes) {
    tensor.assign(value->dtype() == tensor.dtype() ? *value : ops::cast(*value, tensor.dtype()));
  }
  Window::of_thread().flush();
  return not_loaded;
}

RunState run_state(const CallbackParams& params) {
  const bool epoch_done = params.batch_num > 0 && params.cur_step_num % params.batch_num == 0;
  return {.epoch = epoch_done ? params.cur_epoch_num : params.cur_epoch_num - 1,
          .step = params.cur_step_num,
          .random = random_state(),
          .data = params.iterator ? params.iterator->position() : data::Position{}};
}

// ---- ModelCheckpoint ----

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

void ModelCheckpoint::begin(RunContext&) {
  std::error_code error;
  std::filesystem::create_directories(directory_, error);
  if (error) {
    fail(ErrorKind::Io, "[ModelCheckpoint] cannot make the folder {}: {}", directory_,
         error.message());
  }
  const auto taken = [&](const std::string& prefix) {
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with(prefix + "-") && name.ends_with(".ckpt")) return true;
    }
    return false;
  };
  run_prefix_ = prefix_;
  for (int number = 1; taken(run_prefix_); ++number) {
    run_prefix_ = fmt::format("{}_{}", prefix_, number);
  }
  saved_.clear();
  saved_step_ = 0;
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
}

void ModelCheckpoint::save(const CallbackParams& params) {
  const Ref<nn::Cell>& cell = config_.saved_network ? config_.saved_network : params.train_network;
  const std::filesystem::path path =
      std::filesystem::path(directory_) /
      fmt::format("{}-{}_{}.ckpt", run_prefix_, params.cur_epoch_num, params.step_in_epoch());
  save_checkpoint(*cell, path.string(), run_state(params));
  latest_ = path.string();
  saved_step_ = params.cur_step_num;
  saved_at_ = settled_seconds();
  std::erase(saved_, latest_);
  saved_.push_back(latest_);
  const auto most = static_cast<size_t>(config_.keep_checkpoint_max);
  while (most > 0 && saved_.size() > most) {
    std::error_code ignored;  // a file that someone else removed is gone all the same
    std::filesystem::remove(saved_.front(), ignored);
    saved_.erase(saved_.begin());
  }
}

}  // namespace lamella::train
