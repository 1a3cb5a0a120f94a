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
  int64_t epoch = 0;                                  // epochs completed, with their evaluation
  int64_t step = 0;                                   // steps made
  RandomState random = {};                            // of the process's generator
  data::Position data = {};                           // what the training data gives next
  int64_t data_seed = 0;                              // of shuffles and random transforms
  int64_t batches = 0;                                // of an epoch; 0 if not known
  std::optional<double> loss = {};                    // of the last step
  std::map<std::string, std::string> callbacks = {};  // what states_of gave
};

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

struct LAMELLA_API Checkpoint {
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

// What save_checkpoint writes, held: parameters written later get new memory, so training can go on
// while another thread writes the file. Making one runs what is pending.
class LAMELLA_API CheckpointSnapshot {
 public:
  // Throws Value for two parameters of one name.
  explicit CheckpointSnapshot(nn::Cell& cell, const std::optional<RunState>& run = {},
                              const std::map<std::string, std::string>& extra = {});
  explicit CheckpointSnapshot(const NamedTensors& parameters,
                              const std::optional<RunState>& run = {},
                              const std::map<std::string, std::string>& extra = {});
  // Writes the file atomically, from any thread. Throws Io if it cannot.
  void write(const std::string& path) const;

 private:
  struct Entry {
    std::string name;
    DType dtype;
    Axes sizes;
    Buffer elements;
  };
  std::vector<Entry> entries_;
  std::map<std::string, std::string> metadata_;
};

// Throws Io for files that are missing, damaged or of another format.
LAMELLA_API Checkpoint load_checkpoint(const std::string& path);

// Where the run stood when the file was saved, without loading its parameters; throws as above.
LAMELLA_API std::optional<RunState> saved_run(const std::string& path);

// What load_param_into_net does with names that only one side has, and with other dtypes.
enum class Match : uint8_t {
  Lenient,  // leaves names out and says which; casts floats to floats, whole numbers to whole ones
  Strict,   // throws Value listing the names, shapes and dtypes that do not match
};

struct NotLoaded {
  std::vector<std::string> parameters;  // of the network, not in the checkpoint
  std::vector<std::string> checkpoint;  // of the checkpoint, not in the network
};

// Writes the checkpoint's values into the network's parameters of the same names. Throws Value,
// before anything is written, listing every parameter whose shape or kind of dtype differs.
LAMELLA_API NotLoaded load_param_into_net(nn::Cell& network, const Checkpoint& checkpoint,
                                          Match match = Match::Lenient);

// The state of the run that the callbacks are told of.
LAMELLA_API RunState run_state(const CallbackParams& params);

}  // namespace lamella::train
