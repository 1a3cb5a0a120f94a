// The loops.
#include "lamella/train/model.h"

#include "lamella/ir/window.h"

namespace lamella::train {

Tensor tensor_of(const data::Array& array) {
  Shape shape;
  for (int64_t size : array.sizes()) shape.push_back(size);
  return Tensor::from_data(array.dtype(), shape, array.data());
}

Tensors tensors_of(const data::Row& row) {
  Tensors tensors;
  for (size_t i = 0; i < row.size(); ++i) {
    if (row[i].type().is_text) {
      fail(ErrorKind::Type,
           "[Model] column '{}' holds text, which no network takes; map it to numbers or leave it "
           "out (project)",
           row.names()[i]);
    }
    tensors.push_back(tensor_of(row[i]));
  }
  return tensors;
}

namespace {

bool accumulates_by_group(const optim::Optimizer& optimizer) {
  for (size_t i = 0; i < optimizer.parameters().size(); ++i) {
    if (optimizer.accumulation_steps(i)) return true;
  }
  return false;
}

template <typename Updater>
Ref<TrainOneStepCell> step_of(const Ref<nn::Cell>& network, const Ref<Updater>& updater,
                              const ModelOptions& options) {
  if (!options.loss_scale) return make_ref<TrainOneStepCell>(network, updater, options.sens);
  return Ref<TrainOneStepCell>(
      new TrainOneStepWithLossScaleCell(network, updater, options.loss_scale));
}

Ref<TrainOneStepCell> training_step(const Ref<nn::Cell>& network, const ModelOptions& options) {
  if (options.accumulation_steps == 1 && !accumulates_by_group(*options.optimizer)) {
    return step_of(network, options.optimizer, options);
  }
  const auto sums = make_ref<GradientAccumulation>(options.optimizer, options.accumulation_steps);
  return step_of(network, sums, options);
}

}  // namespace

Model::Model(Ref<nn::Cell> network, const ModelOptions& options)
    : network_(std::move(network)), options_(options) {
  if (!network_) fail(ErrorKind::Type, "[Model] network is no cell");
  const Ref<nn::Cell> with_loss =
      options.loss_fn ? Ref<nn::Cell>(new WithLossCell(network_, options.loss_fn)) : network_;
  if (options.optimizer) {
    train_network_ = training_step(with_loss, options);
  }
  eval_network_ = options.eval_network;
  if (!eval_network_ && options.loss_fn) {
    eval_network_ = Ref<nn::Cell>(new WithEvalCell(network_, options.loss_fn));
  }
}

namespace {

void require(const Ref<data::Dataset>& dataset, std::string_view call) {
  if (!dataset) fail(ErrorKind::Type, "[Model.{}] there is no dataset", call);
}

}  // namespace

void Model::train(int64_t epoch, const Ref<data::Dataset>& dataset, const TrainOptions& options) {
  fit(epoch, dataset, {}, {.train = options});
}

void Model::fit(int64_t epoch, const Ref<data::Dataset>& train_dataset,
                const Ref<data::Dataset>& valid_dataset, const FitOptions& options) {
  require(train_dataset, "train");
  if (!train_network_) {
    fail(ErrorKind::Value, "[Model.train] the model was made without an optimizer");
  }
  if (epoch < 1) fail(ErrorKind::Value, "[Model.train] epoch must be at least 1, got {}", epoch);
  if (options.valid_frequency < 1) {
    fail(ErrorKind::Value, "[Model.fit] valid_frequency must be at least 1, got {}",
         options.valid_frequency);
  }
  const Callbacks& callbacks = options.train.callbacks;
  const int64_t batches = train_dataset->size();
  const std::optional<RunState>& resume = options.train.resume;
  const int64_t first = resume ? resume->epoch : options.train.initial_epoch;
  auto context = make_ref<RunContext>(CallbackParams{
      .epoch_num = epoch,
      .batch_num = batches,
      .cur_epoch_num = first,
      .cur_step_num = resume ? resume->step : first * batches,
      .completed_epochs = first,
      .network = network_,
      .train_network = train_network_,
      .eval_network = eval_network_,
      .optimizer = options_.optimizer,
      .train_dataset = train_dataset,
      .valid_dataset = valid_dataset,
      // An iterator that is sent elsewhere cannot know how many epochs are left from there.
      .iterator = train_dataset->iterate({.epochs = resume ? -1 : epoch - first}),
      .dataset_sink_mode = options.train.dataset_sink_mode,
      .resumed = resume.has_value(),
      .list_callback = callbacks,
  });
  CallbackParams& params = context->original_args();
  if (resume) {
    if (resume->batches > 0 && batches > 0 && resume->batches != batches) {
      fail(ErrorKind::Value,
           "[Model.train] the run to go on with had {} batches an epoch, the dataset has {}",
           resume->batches, batches);
    }
    params.iterator->seek(resume->data);
    restore_states(callbacks, resume->callbacks);
    // An epoch that was cut off at its end has no step any more that would give it.
    if (resume->loss) {
      params.net_outputs = {Tensor::scalar(DType::Float64, *resume->loss)};
    }
  }
  train_network_->set_train();
  tell(*context, Turn::Begin);
  for (int64_t number = first + 1; number <= epoch && !context->get_stop_requested(); ++number) {
    params.cur_epoch_num = number;
    params.metrics.clear();
    tell(*context, Turn::EpochBegin);
    const int64_t steps_before = params.cur_step_num;
    while (!context->get_stop_requested()) {
      std::optional<data::Row> row = params.iterator->next();
      if (!row) break;
      ++params.cur_step_num;
      tell(*context, Turn::StepBegin);
      params.net_outputs = train_network_->call(tensors_of(*row), options.train.called_from);
      tell(*context, Turn::StepEnd);
    }
    // Of an epoch that a resumed run was stopped in, nothing may be left.
    const bool is_rest = resume && number == first + 1;
    if (params.cur_step_num == steps_before && !context->get_stop_requested() && !is_rest) {
      fail(ErrorKind::Value, "[Model.train] the dataset gave no batch");
    }
    // Of an epoch that was stopped, what is left belongs to the step that the run may go on with.
    GradientAccumulation* const sums = train_network_->accumulation();
    if (sums != nullptr && !context->get_stop_requested()) sums->finish();
    if (valid_dataset && (number - options.train.initial_epoch) % options.valid_frequency == 0) {
      CallbackParams evaluation = params;
      evaluation.mode = RunMode::Eval;
      params.metrics = evaluate(std::move(evaluation), callbacks);
      train_network_->set_train();
    }
    if (!context->get_stop_requested()) params.completed_epochs = number;
    tell(*context, Turn::EpochEnd);
  }
  tell(*context, Turn::End);
  Window::of_thread().flush();
  train_network_->set_train(false);
}

std::map<std::string, double> Model::eval(const Ref<data::Dataset>& dataset,
                                          const Callbacks& callbacks) {
  require(dataset, "eval");
  return evaluate({.mode = RunMode::Eval,
                   .epoch_num = 1,
                   .network = network_,
                   .eval_network = eval_network_,
                   .optimizer = options_.optimizer,
                   .valid_dataset = dataset},
                  callbacks);
}

std::map<std::string, double> Model::evaluate(CallbackParams params, const Callbacks& callbacks) {
  if (options_.metrics.empty() || !eval_network_) {
    fail(ErrorKind::Value, "[Model.eval] the model was made without metrics{}",
         eval_network_ ? "" : " and loss_fn");
  }
  for (const auto& [name, metric] : options_.metrics) metric->clear();
  params.batch_num = params.valid_dataset->size();
  params.cur_epoch_num = std::max<int64_t>(1, params.cur_epoch_num);
  params.cur_step_num = 0;
  params.iterator = params.valid_dataset->iterate({.epochs = 1});
  params.list_callback = callbacks;
  auto context = make_ref<RunContext>(std::move(params));
  CallbackParams& now = context->original_args();
  eval_network_->set_train(false);
  tell(*context, Turn::Begin);
  tell(*context, Turn::EpochBegin);
  while (std::optional<data::Row> row = now.iterator->next()) {
    ++now.cur_step_num;
    tell(*context, Turn::StepBegin);
    now.net_outputs = (*eval_network_)(tensors_of(*row));
    const Tensors without_loss(now.net_outputs.begin() + 1, now.net_outputs.end());
    for (const auto& [name, metric] : options_.metrics) {
      metric->update(metric->takes_loss() ? Tensors{now.net_outputs[0]} : without_loss);
    }
    tell(*context, Turn::StepEnd);
  }
  if (now.cur_step_num == 0) fail(ErrorKind::Value, "[Model.eval] the dataset gave no batch");
  for (const auto& [name, metric] : options_.metrics) now.metrics[name] = metric->eval();
  tell(*context, Turn::EpochEnd);
  tell(*context, Turn::End);
  return now.metrics;
}

Tensors Model::predict(const Tensors& inputs) {
  const bool was_training = network_->training();
  network_->set_train(false);
  Tensors outputs = (*network_)(inputs);
  if (was_training) network_->set_train();
  return outputs;
}

}  // namespace lamella::train
