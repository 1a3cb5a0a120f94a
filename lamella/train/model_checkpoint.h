// Saving checkpoints during training, and finding the newest.
#pragma once

#include <future>
#include <optional>
#include <string>
#include <vector>

#include "lamella/train/checkpoint.h"

namespace lamella::train {

struct CheckpointConfig {
  int64_t save_checkpoint_steps = 1;    // 0: not by steps
  int64_t save_checkpoint_seconds = 0;  // 0: not by time
  int64_t keep_checkpoint_max = 5;      // 0: all
  Ref<nn::Cell> saved_network = {};     // none: the training network, with the optimizer
  // Whether a thread writes the files while training goes on. What it cannot write is thrown by
  // the next save, or at the end.
  bool async_save = false;
};

// Saves "prefix-epoch_step.ckpt" in `directory` (step within its epoch) as the configuration says,
// and at the end of training. If the directory holds checkpoints of the prefix from an earlier run,
// "_1", "_2", … is added to it, unless this run goes on where that one stopped. Files beyond
// keep_checkpoint_max are removed, the oldest first.
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
  bool comes_last() const override { return true; }
  std::map<std::string, std::string> state() const override { return {{"prefix", run_prefix_}}; }
  void restore(const std::map<std::string, std::string>& state) override;

  // The last file saved; empty if none was. With async_save it may still be written.
  const std::string& latest_ckpt_file_name() const { return latest_; }

 private:
  nn::Cell& saved_cell(const CallbackParams& params) const;
  void save(const CallbackParams& params);
  void finish_writing();
  void note_saved();

  std::string prefix_, directory_;
  CheckpointConfig config_;
  std::string run_prefix_, latest_;
  std::vector<std::string> saved_;
  int64_t saved_step_ = 0;
  uint64_t saved_versions_ = 0;  // of all that was saved: another sum means that it was written
  double saved_at_ = 0;
  std::future<void> writing_;
};

// The checkpoint in `path` that was written last: `path` itself if it is a file, else of the
// "*.ckpt" in that folder whose names begin with `prefix` and that hold a run. Files that cannot be
// read are left out, with a warning. Nothing if there is none.
LAMELLA_API std::optional<std::string> newest_checkpoint(const std::string& path,
                                                         const std::string& prefix = {});

// Makes everything as it was when the checkpoint was saved: the parameters and state of
// `train_network` (all of them, Match::Strict), the random generators, the seed of the data. Gives
// where the run stands, for TrainOptions::resume. Throws Value for checkpoints of another network,
// listing what differs, and for those not saved during training; Io as load_checkpoint.
LAMELLA_API RunState resume(nn::Cell& train_network, const std::string& path);

}  // namespace lamella::train
