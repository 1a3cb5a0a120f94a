// Checkpoints: parameters and optimizer state under their names, and where the run stands, in one
// safetensors file. Whatever its name, a file is told by its content.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lamella/nn/cell.h"
#include "lamella/ops/random.h"
#include "lamella/train/callback.h"

namespace lamella::train {

// Where a run stands, beside its parameters; enough to go on as if it had not stopped.
struct RunState {
  int64_t epoch = 0;         // epochs completed
  int64_t step = 0;          // steps made
  RandomState random = {};   // of the process's generator
  data::Position data = {};  // what the training data gives next
};

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

struct Checkpoint {
  NamedTensors parameters;
  std::optional<RunState> run;  // if it was saved during training
  std::map<std::string, std::string> extra;

  const Tensor* find(std::string_view name) const;  // null if there is none
};

// Runs what is pending, then writes the parameters atomically. Throws Value for two parameters of
// one name, Io if the file cannot be written.
LAMELLA_API void save_checkpoint(nn::Cell& cell, const std::string& path,
                                 const std::optional<RunState>& run = {},
                                 const std::map<std::string, std::string>& extra = {});
LAMELLA_API void save_checkpoint(const NamedTensors& parameters, const std::string& path,
                                 const std::optional<RunState>& run = {},
                                 const std::map<std::string, std::string>& extra = {});

// Throws Io for files that are missing, damaged or of another format.
LAMELLA_API Checkpoint load_checkpoint(const std::string& path);

// What load_param_into_net does with names that only one side has, and with other dtypes.
enum class Match : uint8_t {
  Lenient,  // leaves names out and says which; casts
  Strict,   // throws Value listing the names, shapes and dtypes that do not match
};

struct NotLoaded {
  std::vector<std::string> parameters;  // of the network, not in the checkpoint
  std::vector<std::string> checkpoint;  // of the checkpoint, not in the network
};

// Writes the checkpoint's values into the network's parameters of the same names. Throws Value,
// before anything is written, listing every parameter whose shape differs.
LAMELLA_API NotLoaded load_param_into_net(nn::Cell& network, const Checkpoint& checkpoint,
                                          Match match = Match::Lenient);

struct CheckpointConfig {
  int64_t save_checkpoint_steps = 1;    // 0: not by steps
  int64_t save_checkpoint_seconds = 0;  // 0: not by time
  int64_t keep_checkpoint_max = 5;      // 0: all
  Ref<nn::Cell> saved_network = {};     // none: the training network, with the optimizer
};

// Saves "prefix-epoch_step.ckpt" in `directory` (step within its epoch) as the configuration says,
// and at the end of training. If the directory holds checkpoints of the prefix from an earlier run,
// "_1", "_2", … is added to it. Files beyond keep_checkpoint_max are removed, the oldest first.
class LAMELLA_API ModelCheckpoint : public Callback {
 public:
  explicit ModelCheckpoint(std::string prefix = "CKP", std::string directory = ".",
                           const CheckpointConfig& config = {});
  void begin(RunContext& context) override;
  void step_end(RunContext& context) override;
  void end(RunContext& context) override;
  void on_eval_begin(RunContext&) override {}
  void on_eval_step_end(RunContext&) override {}
  void on_eval_end(RunContext&) override {}

  // The last file saved; empty if none was.
  const std::string& latest_ckpt_file_name() const { return latest_; }

 private:
  void save(const CallbackParams& params);

  std::string prefix_, directory_;
  CheckpointConfig config_;
  std::string run_prefix_, latest_;
  std::vector<std::string> saved_;
  int64_t saved_step_ = 0;
  double saved_at_ = 0;
};

// The run's state as the callbacks see it.
LAMELLA_API RunState run_state(const CallbackParams& params);

}  // namespace lamella::train
