// Callbacks: what runs at the turns of a training or evaluation loop.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lamella/base/object.h"
#include "lamella/data/iterator.h"
#include "lamella/nn/cell.h"
#include "lamella/optim/optimizer.h"

namespace lamella::train {

class Callback;
using Callbacks = std::vector<Ref<Callback>>;

enum class RunMode : uint8_t { Train, Eval };

// What a callback is told. Epochs and steps count from 1, steps over the whole run.
struct CallbackParams {
  RunMode mode = RunMode::Train;
  int64_t epoch_num = 0;  // asked for
  int64_t batch_num = 0;  // steps of an epoch; 0 if not known
  int64_t cur_epoch_num = 0;
  int64_t cur_step_num = 0;
  int64_t completed_epochs = 0;  // the evaluation after them included
  Ref<nn::Cell> network;         // the user's network
  Ref<nn::Cell> train_network;   // with loss and optimizer; what checkpoints hold
  Ref<nn::Cell> eval_network;
  Ref<optim::Optimizer> optimizer;
  Ref<data::Dataset> train_dataset, valid_dataset;
  Ref<data::Iterator> iterator;  // of the epoch that runs
  bool dataset_sink_mode = false;
  bool resumed = false;                   // whether the run goes on where another stopped
  std::vector<Tensor> net_outputs;        // of the last step, the loss first
  std::map<std::string, double> metrics;  // of the last evaluation
  Callbacks list_callback;

  // The step within its epoch.
  int64_t step_in_epoch() const {
    return batch_num > 0 ? (cur_step_num - 1) % batch_num + 1 : cur_step_num;
  }
};

class LAMELLA_API RunContext : public Object {
 public:
  explicit RunContext(CallbackParams params = {}) : params_(std::move(params)) {}
  CallbackParams& original_args() { return params_; }
  // The loop ends after the step that runs.
  void request_stop() { stop_requested_ = true; }
  bool get_stop_requested() const { return stop_requested_; }

 private:
  CallbackParams params_;
  bool stop_requested_ = false;
};

// Each turn has a name for training, one for evaluation, and the older one of both, which the two
// call unless they are overridden.
class LAMELLA_API Callback : public Object {
 public:
  virtual void begin(RunContext&) {}
  virtual void epoch_begin(RunContext&) {}
  virtual void step_begin(RunContext&) {}
  virtual void step_end(RunContext&) {}
  virtual void epoch_end(RunContext&) {}
  virtual void end(RunContext&) {}

  virtual void on_train_begin(RunContext& context) { begin(context); }
  virtual void on_train_epoch_begin(RunContext& context) { epoch_begin(context); }
  virtual void on_train_step_begin(RunContext& context) { step_begin(context); }
  virtual void on_train_step_end(RunContext& context) { step_end(context); }
  virtual void on_train_epoch_end(RunContext& context) { epoch_end(context); }
  virtual void on_train_end(RunContext& context) { end(context); }

  virtual void on_eval_begin(RunContext& context) { begin(context); }
  virtual void on_eval_epoch_begin(RunContext& context) { epoch_begin(context); }
  virtual void on_eval_step_begin(RunContext& context) { step_begin(context); }
  virtual void on_eval_step_end(RunContext& context) { step_end(context); }
  virtual void on_eval_epoch_end(RunContext& context) { epoch_end(context); }
  virtual void on_eval_end(RunContext& context) { end(context); }

  // What the callback has to remember for a run that goes on later; checkpoints hold it under the
  // name of its class.
  virtual std::map<std::string, std::string> state() const { return {}; }
  // Called before the turn Begin of a resumed run, with what `state` gave.
  virtual void restore(const std::map<std::string, std::string>&) {}
  virtual std::string class_name() const;
  // Whether it is told after the others: what it looks at is what they left.
  virtual bool comes_last() const { return false; }
};

// An entry of a state that a checkpoint held. Throws Io, in the name of the callback, where it is
// missing or no number.
LAMELLA_API int64_t state_integer(const std::map<std::string, std::string>& state,
                                  const std::string& key, std::string_view callback);
LAMELLA_API double state_number(const std::map<std::string, std::string>& state,
                                const std::string& key, std::string_view callback);

// What the callbacks of a list remember, by class, place within the class, and key.
LAMELLA_API std::map<std::string, std::string> states_of(const Callbacks& callbacks);
LAMELLA_API void restore_states(const Callbacks& callbacks,
                                const std::map<std::string, std::string>& states);

// The turns of a loop, as told to all callbacks.
enum class Turn : uint8_t { Begin, EpochBegin, StepBegin, StepEnd, EpochEnd, End };
LAMELLA_API void tell(RunContext& context, Turn turn);

// The loss of the last step as a number: the mean of the first output. Runs what is pending.
LAMELLA_API double loss_of(const CallbackParams& params);

// Prints the loss every so many steps. Throws Value if it is not finite.
class LAMELLA_API LossMonitor : public Callback {
 public:
  explicit LossMonitor(int64_t per_print_times = 1);
  void on_train_step_end(RunContext& context) override;
  void on_train_epoch_end(RunContext& context) override;
  void step_end(RunContext& context) override;

 private:
  int64_t per_print_times_;
  int64_t printed_at_ = 0;
};

// Prints the time of each epoch and of its mean step, in milliseconds.
class LAMELLA_API TimeMonitor : public Callback {
 public:
  // `data_size`: steps of an epoch, where the dataset does not say.
  explicit TimeMonitor(int64_t data_size = 0) : data_size_(data_size) {}
  void epoch_begin(RunContext& context) override;
  void epoch_end(RunContext& context) override;

 private:
  int64_t data_size_;
  double began_ = 0;
};

// Keeps each epoch's loss ("net_output") and metrics.
class LAMELLA_API History : public Callback {
 public:
  void begin(RunContext& context) override;
  void epoch_end(RunContext& context) override;
  const std::vector<int64_t>& epochs() const { return epochs_; }
  const std::map<std::string, std::vector<double>>& values() const { return values_; }

 private:
  std::vector<int64_t> epochs_;
  std::map<std::string, std::vector<double>> values_;
};

// Seconds of the steady clock, read after everything pending has run.
LAMELLA_API double settled_seconds();

}  // namespace lamella::train
