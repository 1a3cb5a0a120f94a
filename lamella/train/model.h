// Model: the training and evaluation loops over datasets.
#pragma once

#include "lamella/train/checkpoint.h"
#include "lamella/train/metric.h"
#include "lamella/train/step.h"

namespace lamella::train {

struct ModelOptions {
  Ref<nn::Cell> loss_fn = {};  // none: the network gives the loss itself
  Ref<optim::Optimizer> optimizer = {};
  Metrics metrics = {};
  Ref<nn::Cell> eval_network = {};  // none: network and loss_fn, giving (loss, outputs, label)
  Ref<amp::LossScaleUpdate> loss_scale = {};  // none: no step is left out
  double sens = 1;  // a scale that the optimizer divides by, instead of loss_scale
  // The micro-batches of one step of the optimizer. What is left at the end of an epoch is a step.
  int64_t accumulation_steps = 1;
};

struct TrainOptions {
  Callbacks callbacks = {};
  bool dataset_sink_mode = false;  // accepted: batches are prepared ahead either way
  int64_t sink_size = -1;          // as above
  int64_t initial_epoch = 0;       // epochs already made
  // Where to go on, for a run that was stopped: what train::resume gave.
  std::optional<RunState> resume = {};
  // The program's line, that operations of a step are said to come from which no line of its own
  // cells made.
  SourceLocation called_from = {};
};

struct FitOptions {
  TrainOptions train = {};
  int64_t valid_frequency = 1;  // evaluate after every so many epochs
};

class LAMELLA_API Model : public Object {
 public:
  explicit Model(Ref<nn::Cell> network, const ModelOptions& options = {});

  // Trains until `epoch` epochs are made. Throws Value without an optimizer.
  void train(int64_t epoch, const Ref<data::Dataset>& dataset, const TrainOptions& options = {});
  // As train, evaluating on the second dataset between epochs.
  void fit(int64_t epoch, const Ref<data::Dataset>& train_dataset,
           const Ref<data::Dataset>& valid_dataset, const FitOptions& options = {});
  // The metrics over a dataset. Throws Value if there are none.
  std::map<std::string, double> eval(const Ref<data::Dataset>& dataset,
                                     const Callbacks& callbacks = {});
  // The network's outputs, in inference.
  Tensors predict(const Tensors& inputs);

  const Ref<nn::Cell>& network() const { return network_; }
  // One step of training; null without an optimizer.
  const Ref<TrainOneStepCell>& train_network() const { return train_network_; }
  const Ref<nn::Cell>& predict_network() const { return network_; }

 private:
  std::map<std::string, double> evaluate(CallbackParams params, const Callbacks& callbacks);

  Ref<nn::Cell> network_, eval_network_;
  Ref<TrainOneStepCell> train_network_;
  ModelOptions options_;
};

// The columns of a batch as tensors.
LAMELLA_API Tensors tensors_of(const data::Row& row);
LAMELLA_API Tensor tensor_of(const data::Array& array);

}  // namespace lamella::train
