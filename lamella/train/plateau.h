// Callbacks that act when a figure no longer improves.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lamella/train/callback.h"

namespace lamella::train {

// Which way a figure improves. Auto: up if its name says accuracy, precision, recall or F1.
enum class Improvement : uint8_t { Auto, Less, More };

struct PlateauOptions {
  // "loss": of the last training step. Else a metric of the evaluation between epochs, under its
  // name or with "eval_" before it; "eval_loss" is the metric "loss".
  std::string monitor = "eval_loss";
  Improvement mode = Improvement::Auto;
  double min_delta = 0;  // what a change must exceed to be an improvement
  int64_t patience = 0;  // epochs without one before something is done
  bool verbose = false;  // whether it says so
};

// Follows a figure from epoch to epoch.
class LAMELLA_API Plateau {
 public:
  // Throws Value, in the name of `callback`, for a negative patience.
  Plateau(std::string_view callback, PlateauOptions options, std::optional<double> baseline);

  // Takes in the figure of the epoch that ended, if there is one, and says whether `patience`
  // epochs or more have passed without an improvement. Throws Value for a monitor that is neither
  // the loss nor a metric, naming those there are.
  bool follow(const CallbackParams& params);
  // Whether the last figure was an improvement.
  bool improved() const { return waited_ == 0 && best_.has_value(); }
  void forget_waiting() { waited_ = 0; }

  const PlateauOptions& options() const { return options_; }
  std::map<std::string, std::string> state() const;
  void restore(const std::map<std::string, std::string>& state);

 private:
  std::string callback_;
  PlateauOptions options_;
  std::optional<double> best_;
  int64_t waited_ = 0;
};

struct EarlyStoppingOptions {
  PlateauOptions plateau = {};
  std::optional<double> baseline = {};  // what the figure has to beat
  // Whether the network gets back, when training stops, the weights of its best epoch. A resumed
  // run knows those of its own epochs.
  bool restore_best_weights = false;
};

// Ends the training.
class LAMELLA_API EarlyStopping : public Callback {
 public:
  explicit EarlyStopping(const EarlyStoppingOptions& options = {});
  void on_train_begin(RunContext& context) override;
  void on_train_epoch_end(RunContext& context) override;
  std::map<std::string, std::string> state() const override { return plateau_.state(); }
  void restore(const std::map<std::string, std::string>& state) override;

 private:
  EarlyStoppingOptions options_;
  Plateau plateau_;
  bool restored_ = false;
  std::vector<std::pair<Tensor, Tensor>> best_weights_;  // parameter, its value then
};

struct ReduceLROnPlateauOptions {
  PlateauOptions plateau{.min_delta = 1e-4, .patience = 10};
  double factor = 0.1;
  int64_t cooldown = 0;  // epochs after a reduction that do not count
  double min_lr = 0;
};

// Multiplies the learning rate, which must be a number, by a factor.
class LAMELLA_API ReduceLROnPlateau : public Callback {
 public:
  // Throws Value unless the factor is in (0, 1), and for a negative cooldown or rate.
  explicit ReduceLROnPlateau(ReduceLROnPlateauOptions options = {});
  void on_train_epoch_end(RunContext& context) override;
  std::map<std::string, std::string> state() const override;
  void restore(const std::map<std::string, std::string>& state) override;

 private:
  ReduceLROnPlateauOptions options_;
  Plateau plateau_;
  int64_t cooling_ = 0;
};

// Sets the learning rate, which must be a number, after every step: `function` is given the rate
// and the number of the step, over the whole run.
class LAMELLA_API LearningRateScheduler : public Callback {
 public:
  using Function = std::function<double(double rate, int64_t step)>;
  explicit LearningRateScheduler(Function function) : function_(std::move(function)) {}
  void on_train_step_end(RunContext& context) override;

 private:
  Function function_;
};

}  // namespace lamella::train
