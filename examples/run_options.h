// What every training example can be told, and what it does about it.
#pragma once

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "lamella/data/config.h"
#include "lamella/ir/window.h"
#include "lamella/ops/random.h"
#include "lamella/train/model_checkpoint.h"

namespace lamella::examples {

inline constexpr int kBadInput = 2;  // the exit status for options and data that are wrong

struct RunOptions {
  std::string output;
  std::string mode = "pynative";
  std::string dump_losses;
  int64_t steps = 0;
  int64_t save_steps = 0;
  int64_t window = -1;
  uint64_t seed = 42;
  bool resume = false;

  void add_to(CLI::App& app) {
    app.add_option("--output", output, "folder for checkpoints, curves and the report")
        ->capture_default_str();
    app.add_option("--steps", steps, "stop after so many steps (0: no)")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    app.add_option("--seed", seed, "of weights, dropout and the order of the data")
        ->capture_default_str();
    app.add_option("--mode", mode, "how operations run: as they come, or a step as one graph")
        ->check(CLI::IsMember({"pynative", "graph"}))
        ->capture_default_str();
    app.add_option("--window", window, "run after every so many operations (1: each alone)")
        ->check(CLI::NonNegativeNumber);
    app.add_option("--save-steps", save_steps,
                   "save a checkpoint every so many batches (0: every epoch)")
        ->check(CLI::NonNegativeNumber);
    app.add_flag("--resume", resume, "go on where a run with the same output folder stopped");
    app.add_option("--dump-losses", dump_losses,
                   "file for one line a step: its number and the loss's bits in hexadecimal");
  }

  // Seeds, the window, and the folder for what the run writes.
  void apply() const {
    set_seed(seed);
    data::config::set_seed(static_cast<int64_t>(seed & 0xFFFFFFFF));
    WindowLimits limits = Window::of_thread().limits();
    if (window >= 0) limits.fixed = window;
    if (mode == "graph") limits = {.fixed = 0, .loop = limits.most, .most = limits.most};
    Window::of_thread().set_limits(limits);
    std::error_code error;
    std::filesystem::create_directories(output, error);
    if (error) fail(ErrorKind::Io, "cannot make the folder {}: {}", output, error.message());
  }

  std::string checkpoint_folder() const { return output + "/checkpoints"; }

  Ref<train::ModelCheckpoint> checkpoints(const std::string& name, int64_t steps_an_epoch) const {
    return make_ref<train::ModelCheckpoint>(
        name, checkpoint_folder(),
        train::CheckpointConfig{
            .save_checkpoint_steps = save_steps > 0 ? save_steps : steps_an_epoch,
            .keep_checkpoint_max = 2,
            .async_save = true});
  }

  // Where an earlier run of the same output folder stopped, if this one is to go on there.
  std::optional<train::RunState> stopped_run(nn::Cell& train_network) const {
    if (!resume) return {};
    const auto newest = train::newest_checkpoint(checkpoint_folder());
    if (!newest) {
      std::fprintf(stderr, "no checkpoint yet in %s: from the beginning\n",
                   checkpoint_folder().c_str());
      return {};
    }
    return train::resume(train_network, *newest);
  }
};

// Ends the training after a number of steps.
class StopAfter : public train::Callback {
 public:
  explicit StopAfter(int64_t steps) : steps_(steps) {}
  void on_train_step_end(train::RunContext& context) override {
    if (context.original_args().cur_step_num >= steps_) context.request_stop();
  }

 private:
  int64_t steps_;
};

// Parses the options and runs; what goes wrong is told as "<name>: ..." and by the exit status.
inline int run_example(const char* name, CLI::App& app, int argc, char** argv,
                       const std::function<void()>& run) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadInput;
  }
  try {
    run();
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return error.kind() == ErrorKind::Io || error.kind() == ErrorKind::Value ? kBadInput : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return 1;
  }
}

}  // namespace lamella::examples
