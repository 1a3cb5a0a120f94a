// Saving and loading.
#include "lamella/train/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "lamella/data/config.h"
#include "lamella/io/safetensors.h"
#include "lamella/ir/window.h"
#include "lamella/ops/functions.h"

namespace lamella::train {

namespace {

// Metadata keys of a run's state; others are the user's.
constexpr const char* kKind = "lamella.checkpoint";
const std::string kCallback = "lamella.callback.";
constexpr int kVersion = 2;  // 1 had no seed of the data

io::Metadata metadata_of(const std::optional<RunState>& run,
                         const std::map<std::string, std::string>& extra) {
  for (const auto& [key, value] : extra) {
    if (key.starts_with("lamella.")) {
      fail(ErrorKind::Value, "[save_checkpoint] '{}': names that begin with 'lamella.' are taken",
           key);
    }
  }
  io::Metadata metadata(extra.begin(), extra.end());
  metadata[kKind] = std::to_string(kVersion);
  if (run) {
    metadata["lamella.epoch"] = std::to_string(run->epoch);
    metadata["lamella.step"] = std::to_string(run->step);
    metadata["lamella.random_seed"] = std::to_string(run->random.seed);
    metadata["lamella.random_offset"] = std::to_string(run->random.offset);
    metadata["lamella.data_epoch"] = std::to_string(run->data.epoch);
    metadata["lamella.data_batch"] = std::to_string(run->data.batch);
    metadata["lamella.data_seed"] = std::to_string(run->data_seed);
    if (run->batches > 0) metadata["lamella.batches"] = std::to_string(run->batches);
    if (run->loss) metadata["lamella.loss"] = fmt::format("{}", *run->loss);
    for (const auto& [key, value] : run->callbacks) metadata[kCallback + key] = value;
  }
  return metadata;
}

template <typename Number>
Number number_at(const io::Metadata& metadata, const std::string& key, const std::string& path) {
  const auto found = metadata.find(key);
  Number number{};
  const bool given = found != metadata.end();
  const char* end = given ? found->second.data() + found->second.size() : nullptr;
  const auto read = given ? std::from_chars(found->second.data(), end, number)
                          : std::from_chars_result{nullptr, std::errc::invalid_argument};
  if (read.ec != std::errc() || read.ptr != end) {
    fail(ErrorKind::Io, "[load_checkpoint] {}: '{}' is {}", path, key,
         given ? "no number: '" + found->second + "'" : "missing");
  }
  return number;
}

std::optional<RunState> run_of(const io::Metadata& metadata, const std::string& path) {
  if (metadata.contains(kKind)) {
    const int version = number_at<int>(metadata, kKind, path);
    if (version > kVersion) {
      fail(ErrorKind::Unsupported,
           "[load_checkpoint] {} is of format {}, which a later Lamella writes; this one reads up "
           "to {}",
           path, version, kVersion);
    }
  }
  if (!metadata.contains("lamella.step")) return {};
  RunState run{
      .epoch = number_at<int64_t>(metadata, "lamella.epoch", path),
      .step = number_at<int64_t>(metadata, "lamella.step", path),
      .random = {.seed = number_at<uint64_t>(metadata, "lamella.random_seed", path),
                 .offset = number_at<uint64_t>(metadata, "lamella.random_offset", path)},
      .data = {.epoch = number_at<int64_t>(metadata, "lamella.data_epoch", path),
               .batch = number_at<int64_t>(metadata, "lamella.data_batch", path)},
      .data_seed = metadata.contains("lamella.data_seed")
                       ? number_at<int64_t>(metadata, "lamella.data_seed", path)
                       : data::config::seed(),
  };
  if (metadata.contains("lamella.batches")) {
    run.batches = number_at<int64_t>(metadata, "lamella.batches", path);
  }
  if (metadata.contains("lamella.loss")) {
    run.loss = number_at<double>(metadata, "lamella.loss", path);
  }
  for (const int64_t number : {run.epoch, run.step, run.data.epoch, run.data.batch}) {
    if (number < 0) {
      fail(ErrorKind::Io, "[load_checkpoint] {}: the state of its run has a negative number: {}",
           path, number);
    }
  }
  for (const auto& [key, value] : metadata) {
    if (key.starts_with(kCallback)) run.callbacks[key.substr(kCallback.size())] = value;
  }
  return run;
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

namespace {

NamedTensors state_of(nn::Cell& cell) {
  cell.check_names();
  NamedTensors parameters;
  for (const Ref<nn::Parameter>& parameter : cell.get_parameters()) {
    parameters.emplace_back(parameter->name(), parameter->tensor());
  }
  for (auto& buffer : cell.persistent_buffers()) parameters.push_back(std::move(buffer));
  return parameters;
}

}  // namespace

CheckpointSnapshot::CheckpointSnapshot(const NamedTensors& parameters,
                                       const std::optional<RunState>& run,
                                       const std::map<std::string, std::string>& extra)
    : metadata_(metadata_of(run, extra)) {
  for (const auto& [name, tensor] : parameters) {
    entries_.push_back({name, tensor.dtype(), sizes_of(tensor.shape()), tensor.data()});
  }
}

CheckpointSnapshot::CheckpointSnapshot(nn::Cell& cell, const std::optional<RunState>& run,
                                       const std::map<std::string, std::string>& extra)
    : CheckpointSnapshot(state_of(cell), run, extra) {}

void CheckpointSnapshot::write(const std::string& path) const {
  std::vector<io::NamedArray> arrays;
  for (const Entry& entry : entries_) {
    arrays.push_back({.name = entry.name,
                      .dtype = entry.dtype,
                      .sizes = entry.sizes,
                      .data = {static_cast<const std::byte*>(entry.elements.data()),
                               static_cast<size_t>(entry.elements.size)}});
  }
  io::save_tensors(path, arrays, metadata_);
}

void save_checkpoint(const NamedTensors& parameters, const std::string& path,
                     const std::optional<RunState>& run,
                     const std::map<std::string, std::string>& extra) {
  CheckpointSnapshot(parameters, run, extra).write(path);
}

void save_checkpoint(nn::Cell& cell, const std::string& path, const std::optional<RunState>& run,
                     const std::map<std::string, std::string>& extra) {
  CheckpointSnapshot(cell, run, extra).write(path);
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

std::optional<RunState> saved_run(const std::string& path) {
  return run_of(io::TensorFile(path).metadata(), path);
}

namespace {

// Whether numbers of one dtype are loaded as another's: floats as floats, whole ones as whole ones.
bool casts_to(DType from, DType to) {
  return from == to || (is_float(from) && is_float(to)) || (is_integer(from) && is_integer(to));
}

}  // namespace

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
    const bool other_dtype = match == Match::Strict ? value->dtype() != tensor.dtype()
                                                    : !casts_to(value->dtype(), tensor.dtype());
    if (value->shape() != tensor.shape() || other_dtype) {
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
  const bool has_loss = !params.net_outputs.empty() && params.net_outputs[0].defined();
  return {.epoch = params.completed_epochs,
          .step = params.cur_step_num,
          .random = random_state(),
          .data = params.iterator ? params.iterator->position() : data::Position{},
          .data_seed = data::config::seed(),
          .batches = params.batch_num,
          .loss = has_loss ? std::optional(loss_of(params)) : std::nullopt,
          .callbacks = states_of(params.list_callback)};
}

}  // namespace lamella::train
