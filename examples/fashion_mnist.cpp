// Trains a small convolutional network on Fashion-MNIST: data, training, evaluation, checkpoints,
// curves and a report. `--help` lists the options; the last line printed is JSON.
#include <cstdio>

#include "examples/run_options.h"
#include <nlohmann/json.hpp>

#include "lamella/amp/loss_scale.h"
#include "lamella/base/parallel.h"
#include "lamella/data/mnist.h"
#include "lamella/data/transforms/vision.h"
#include "lamella/io/report.h"
#include "lamella/nn/convolution.h"
#include "lamella/nn/dropout.h"
#include "lamella/nn/loss.h"
#include "lamella/nn/normalization.h"
#include "lamella/nn/pooling.h"
#include "lamella/optim/adam.h"
#include "lamella/train/model.h"
#include "lamella/train/monitor.h"

namespace {

using namespace lamella;

using examples::RunOptions;
using examples::StopAfter;

struct Options : RunOptions {
  std::string data = "/usr/share/datasets/fashion-mnist";
  int64_t epochs = 5;
  int64_t batch_size = 64;
  int64_t images = 0;
  double learning_rate = 0.002;
  double loss_scale = 0;
  int64_t accumulate = 1;
  bool loop = false;
};

// conv-bn-relu-pool twice, dropout, and two dense layers. x: [N, 1, 28, 28]; result: [N, 10].
class Net : public nn::Cell {
 public:
  Net() {
    conv1_ = add("conv1", make_ref<nn::Conv2d>(1, 32, 3));
    bn1_ = add("bn1", make_ref<nn::BatchNorm2d>(32));
    conv2_ = add("conv2", make_ref<nn::Conv2d>(32, 64, 3));
    bn2_ = add("bn2", make_ref<nn::BatchNorm2d>(64));
    relu_ = add("relu", make_ref<nn::ReLU>());
    pool_ = add("pool", make_ref<nn::MaxPool2d>(2, 2));
    flatten_ = add("flatten", make_ref<nn::Flatten>());
    dropout_ = add("dropout", make_ref<nn::Dropout>(nn::DropProbability::of_dropping(0.3)));
    dense1_ =
        add("dense1", make_ref<nn::Dense>(64 * 7 * 7, 128, nn::DenseOptions{.activation = "relu"}));
    dense2_ = add("dense2", make_ref<nn::Dense>(128, 10));
  }
  using Cell::construct;
  Tensor construct(const Tensor& x) override {
    Tensor y = (*pool_)((*relu_)((*bn1_)((*conv1_)(x))));
    y = (*pool_)((*relu_)((*bn2_)((*conv2_)(y))));
    y = (*dropout_)((*flatten_)(y));
    return (*dense2_)((*dropout_)((*dense1_)(y)));
  }

 private:
  Ref<nn::Conv2d> conv1_, conv2_;
  Ref<nn::BatchNorm2d> bn1_, bn2_;
  Ref<nn::ReLU> relu_;
  Ref<nn::MaxPool2d> pool_;
  Ref<nn::Flatten> flatten_;
  Ref<nn::Dropout> dropout_;
  Ref<nn::Dense> dense1_, dense2_;
};

// Images as float32 [N, 1, 28, 28] in [-1, 1] or so, labels int32 [N].
Ref<data::Dataset> batches(const Options& options, data::Usage usage) {
  const bool training = usage == data::Usage::Train;
  data::SourceOptions source{.shuffle = training};
  if (training && options.images > 0) source.num_samples = options.images;
  return make_ref<data::FashionMnistDataset>(options.data, usage, source)
      ->map({make_ref<data::Rescale>(1 / 255.0f, 0.0f),
             make_ref<data::Normalize>(std::vector<float>{0.2860f}, std::vector<float>{0.3530f}),
             make_ref<data::HWC2CHW>()},
            {.inputs = {"image"}})
      ->batch(training ? options.batch_size : 500,
              {.remainder = training ? data::Remainder::Drop : data::Remainder::Keep});
}

// Keeps the metrics of each epoch for the report, also over a stop of the run.
class MetricCurves : public train::Callback {
 public:
  std::map<std::string, std::string> state() const override {
    std::map<std::string, std::string> state;
    for (const auto& [name, curve] : curves) {
      state[name] = nlohmann::json{curve.x, curve.y}.dump();
    }
    return state;
  }
  void restore(const std::map<std::string, std::string>& state) override {
    for (const auto& [name, text] : state) {
      const auto points = nlohmann::json::parse(text);
      curves[name] = {.name = name, .x = points[0], .y = points[1]};
    }
  }
  void on_train_epoch_end(train::RunContext& context) override {
    for (const auto& [name, value] : context.original_args().metrics) {
      io::Curve& curve = curves[name];
      curve.name = name;
      curve.x.push_back(static_cast<double>(context.original_args().cur_epoch_num));
      curve.y.push_back(value);
    }
  }
  std::map<std::string, io::Curve> curves;
};

struct Run {
  Ref<Net> network = make_ref<Net>();
  Ref<train::Model> model;
  Ref<optim::Adam> optimizer;
  Ref<train::LossTrace> losses;
  Ref<train::ProgressMonitor> progress;
  Ref<train::ModelCheckpoint> checkpoints;
  Ref<train::SummaryMonitor> summary;
  Ref<MetricCurves> metrics = make_ref<MetricCurves>();
};

Run make_run(const Options& options, int64_t total_steps) {
  Run run;
  const auto schedule =
      make_ref<optim::CosineDecayLR>(0.0, options.learning_rate, total_steps / options.accumulate);
  run.optimizer = make_ref<optim::Adam>(
      run.network->trainable_params(),
      optim::AdamOptions{.learning_rate = Ref<optim::LearningRateSchedule>(schedule)});
  const auto loss =
      make_ref<nn::SoftmaxCrossEntropyWithLogits>(nn::Labels::Classes, nn::Reduction::Mean);
  train::ModelOptions model{
      .loss_fn = loss,
      .optimizer = run.optimizer,
      .metrics = {{"accuracy", train::get_metric("accuracy")}, {"loss", train::get_metric("loss")}},
      .accumulation_steps = options.accumulate};
  if (options.loss_scale > 0) {
    model.loss_scale = make_ref<amp::DynamicLossScaleUpdate>(options.loss_scale, 2, 50);
  }
  run.model = make_ref<train::Model>(run.network, model);
  const bool every_loss = !options.dump_losses.empty();
  run.progress = make_ref<train::ProgressMonitor>(every_loss ? 1 : 10);
  run.losses = make_ref<train::LossTrace>(options.dump_losses);
  run.checkpoints = options.checkpoints("fashion_mnist", total_steps / options.epochs);
  run.summary = make_ref<train::SummaryMonitor>(options.output + "/events");
  return run;
}

train::Callbacks callbacks_of(const Run& run, const Options& options) {
  train::Callbacks callbacks{run.losses, run.progress, run.summary, run.metrics, run.checkpoints};
  if (options.steps > 0) callbacks.push_back(make_ref<StopAfter>(options.steps));
  return callbacks;
}

// The same training as Model::fit, written as a loop over batches.
void train_by_loop(Run& run, const Options& options, const Ref<data::Dataset>& training,
                   const Ref<data::Dataset>& test) {
  auto context = make_ref<train::RunContext>(
      train::CallbackParams{.epoch_num = options.epochs,
                            .batch_num = training->size(),
                            .network = run.network,
                            .train_network = run.model->train_network(),
                            .optimizer = run.optimizer,
                            .train_dataset = training,
                            .iterator = training->iterate({.epochs = options.epochs}),
                            .list_callback = callbacks_of(run, options)});
  train::CallbackParams& now = context->original_args();
  const Ref<train::TrainOneStepCell>& step = run.model->train_network();
  train::tell(*context, train::Turn::Begin);
  while (now.cur_epoch_num < options.epochs && !context->get_stop_requested()) {
    ++now.cur_epoch_num;
    train::tell(*context, train::Turn::EpochBegin);
    step->set_train();
    while (!context->get_stop_requested()) {
      const std::optional<data::Row> row = now.iterator->next();
      if (!row) break;
      ++now.cur_step_num;
      now.net_outputs = (*step)(train::tensors_of(*row));
      train::tell(*context, train::Turn::StepEnd);
    }
    if (train::GradientAccumulation* const sums = step->accumulation()) sums->finish();
    now.metrics = run.model->eval(test);
    now.completed_epochs = now.cur_epoch_num;
    train::tell(*context, train::Turn::EpochEnd);
  }
  train::tell(*context, train::Turn::End);
}

void write_report(const Run& run, const Options& options, const std::string& path, double seconds) {
  io::Curve losses{.name = "training", .x = {}, .y = {}};
  for (const auto& entry : run.losses->entries()) {
    losses.x.push_back(static_cast<double>(entry.step));
    losses.y.push_back(entry.loss);
  }
  const auto& metrics = run.metrics->curves;
  const double accuracy = metrics.at("accuracy").y.back();
  int64_t parameters = 0;
  for (const auto& parameter : run.network->trainable_params()) {
    parameters += element_count(parameter->shape()).value();
  }
  io::write_report(
      path,
      {.title = "Fashion-MNIST",
       .summary = fmt::format("A convolutional network of {} parameters, trained for {} epochs.",
                              parameters, metrics.at("accuracy").y.size()),
       .highlights = {{"test accuracy", fmt::format("{:.2f} %", 100 * accuracy)},
                      {"images a second",
                       fmt::format("{:.0f}", run.progress->samples_per_second())},
                      {"seconds", fmt::format("{:.1f}", seconds)}},
       .charts = {{.title = "Loss", .x_label = "step", .y_label = "loss", .curves = {losses}},
                  {.title = "Test accuracy",
                   .x_label = "epoch",
                   .y_label = "accuracy",
                   .curves = {metrics.at("accuracy")}}},
       .facts = {{"data", options.data},
                 {"batch size", std::to_string(options.batch_size)},
                 {"optimizer",
                  fmt::format("Adam, rate {} falling along a cosine", options.learning_rate)},
                 {"seed", std::to_string(options.seed)},
                 {"mode", options.mode},
                 {"threads", std::to_string(thread_count())}}});
}

void train_and_report(const Options& options) {
  options.apply();
  const auto training = batches(options, data::Usage::Train);
  const auto test = batches(options, data::Usage::Test);
  Run run = make_run(options, training->size() * options.epochs);
  const double began = train::settled_seconds();
  if (options.loop) {
    train_by_loop(run, options, training, test);
  } else {
    run.model->fit(options.epochs, training, test,
                   {.train = {.callbacks = callbacks_of(run, options),
                              .resume = options.stopped_run(*run.model->train_network())}});
  }
  const double seconds = train::settled_seconds() - began;
  const std::string report = options.output + "/report.html";
  write_report(run, options, report, seconds);
  const auto& metrics = run.metrics->curves;
  const nlohmann::ordered_json summary{
      {"test_accuracy", metrics.at("accuracy").y.back()},
      {"test_loss", metrics.at("loss").y.back()},
      {"epochs", metrics.at("accuracy").y.size()},
      {"steps", run.losses->entries().size()},
      {"train_loss", run.losses->entries().back().loss},
      {"images_per_second", run.progress->samples_per_second()},
      {"seconds", seconds},
      {"batch_size", options.batch_size},
      {"seed", options.seed},
      {"checkpoint", run.checkpoints->latest_ckpt_file_name()},
      {"events", run.summary->writer().path()},
      {"report", report},
  };
  std::printf("%s\n", summary.dump().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  options.output = "output/fashion_mnist";
  CLI::App app{"Trains a convolutional network on Fashion-MNIST."};
  options.add_to(app);
  app.add_option("--data", options.data, "folder of the dataset's four files")
      ->capture_default_str();
  app.add_option("--epochs", options.epochs, "passes over the training images")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--batch-size", options.batch_size, "images a step")
      ->check(CLI::Range(1, 60000))
      ->capture_default_str();
  app.add_option("--images", options.images, "training images of an epoch (0: all)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--learning-rate", options.learning_rate, "rate of the first step")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--loop", options.loop, "a loop over batches instead of Model::fit")
      ->excludes("--resume");
  app.add_option("--loss-scale", options.loss_scale,
                 "first scale of losses, which then follows the gradients (0: none)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--accumulate", options.accumulate, "batches of one step of the optimizer")
      ->check(CLI::Range(1, 1000));
  return examples::run_example("fashion_mnist", app, argc, argv,
                               [&] { train_and_report(options); });
}
