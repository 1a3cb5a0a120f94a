// A run that is stopped and goes on is the run that never stopped.
#include <atomic>
#include <fstream>

#include "tests/errors.h"
#include "tests/train/checkpoint_testing.h"
#include <gmock/gmock.h>

#include "lamella/data/config.h"
#include "lamella/ir/window.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/tensor_operators.h"
#include "lamella/train/model_checkpoint.h"
#include "lamella/train/monitor.h"
#include "lamella/train/plateau.h"

namespace lamella::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::CheckpointTest;
using testing_support::network;
using testing_support::samples;

class ResumeTest : public CheckpointTest {};

class StopAt : public Callback {
 public:
  explicit StopAt(int64_t step) : step_(step) {}
  void on_train_step_end(RunContext& context) override {
    if (context.original_args().cur_step_num == step_) context.request_stop();
  }

 private:
  int64_t step_;
};

// Remembers how many steps it saw.
class Counter : public Callback {
 public:
  void on_train_step_end(RunContext&) override { ++seen; }
  std::map<std::string, std::string> state() const override {
    return {{"seen", std::to_string(seen)}};
  }
  void restore(const std::map<std::string, std::string>& state) override {
    seen = std::stoll(state.at("seen"));
  }
  int64_t seen = 0;
};

// Everything at once that has to be the same again: shuffling, dropout, statistics, a falling rate,
// a loss scale that changes, and steps of two of the five batches of an epoch.
Ref<Model> demanding_model() {
  const auto net = network();
  const auto rate = make_ref<optim::CosineDecayLR>(0.0, 0.01, 15);
  return make_ref<Model>(
      net,
      ModelOptions{.loss_fn = make_ref<nn::SoftmaxCrossEntropyWithLogits>(nn::Labels::Classes,
                                                                          nn::Reduction::Mean),
                   .optimizer = make_ref<optim::Adam>(
                       net->trainable_params(),
                       optim::AdamOptions{.learning_rate = Ref<optim::LearningRateSchedule>(rate)}),
                   .metrics = {{"accuracy", get_metric("accuracy")}},
                   .loss_scale = make_ref<amp::DynamicLossScaleUpdate>(4, 2, 3),
                   .accumulation_steps = 2});
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

void seeded() {
  set_seed(11);
  data::config::set_seed(12);
}

TEST_F(ResumeTest, GoesOnFromEveryStepWithTheSameBits) {
  constexpr int64_t kEpochs = 3, kSteps = 15;
  seeded();
  const auto whole = make_ref<LossTrace>(path("whole"));
  demanding_model()->fit(kEpochs, samples(), samples(), {.train = {.callbacks = {whole}}});
  const std::string expected = text_of(path("whole"));
  EXPECT_EQ(std::count(expected.begin(), expected.end(), '\n'), kSteps);

  for (int64_t stop = 1; stop <= kSteps; ++stop) {
    std::filesystem::remove_all(path("checkpoints"));
    seeded();
    const auto checkpoints = [&](bool async) {
      return make_ref<ModelCheckpoint>(
          "net", path("checkpoints"),
          CheckpointConfig{.keep_checkpoint_max = 2, .async_save = async});
    };
    const auto counter = make_ref<Counter>();
    demanding_model()->fit(
        kEpochs, samples(), samples(),
        {.train = {.callbacks = {make_ref<LossTrace>(path("losses")), counter,
                                 checkpoints(stop % 2 == 0), make_ref<StopAt>(stop)}}});
    // Another process would begin with other numbers.
    set_seed(99);
    data::config::set_seed(98);
    const auto model = demanding_model();
    const std::optional<std::string> newest = newest_checkpoint(path("checkpoints"));
    ASSERT_TRUE(newest);
    const RunState run = resume(*model->train_network(), *newest);
    EXPECT_EQ(run.step, stop);
    const auto again = make_ref<Counter>();
    model->fit(
        kEpochs, samples(), samples(),
        {.train = {.callbacks = {make_ref<LossTrace>(path("losses")), again, checkpoints(false)},
                   .resume = run}});
    EXPECT_EQ(text_of(path("losses")), expected) << "stopped after step " << stop;
    EXPECT_EQ(again->seen, kSteps);
  }
}

TEST_F(ResumeTest, TellsTheEndOfAnEpochThatWasCutOffBeforeIt) {
  class Epochs : public Callback {
   public:
    void on_train_epoch_end(RunContext& context) override {
      ended.push_back(context.original_args().cur_epoch_num);
    }
    std::vector<int64_t> ended;
  };
  const auto model = demanding_model();
  const auto checkpoints = make_ref<ModelCheckpoint>("net", folder_.string());
  model->train(2, samples(), {.callbacks = {checkpoints, make_ref<StopAt>(5)}});
  const auto epochs = make_ref<Epochs>();
  const auto again = demanding_model();
  again->train(
      2, samples(),
      {.callbacks = {epochs}, .resume = resume(*again->train_network(), path("net-1_5.ckpt"))});
  EXPECT_THAT(epochs->ended, ElementsAre(1, 2));
}

// The file is made at the end, between the saves by steps, with half a step of gradients summed up.
TEST_F(ResumeTest, GoesOnFromTheFileThatAStoppedRunLeaves) {
  seeded();
  const auto whole = make_ref<LossTrace>(path("whole"));
  demanding_model()->fit(2, samples(), samples(), {.train = {.callbacks = {whole}}});
  for (const int64_t stop : {3, 5, 7}) {
    std::filesystem::remove_all(path("checkpoints"));
    seeded();
    const auto checkpoints = make_ref<ModelCheckpoint>(
        "net", path("checkpoints"), CheckpointConfig{.save_checkpoint_steps = 2});
    demanding_model()->fit(2, samples(), samples(),
                           {.train = {.callbacks = {make_ref<LossTrace>(path("losses")),
                                                    checkpoints, make_ref<StopAt>(stop)}}});
    const auto model = demanding_model();
    const RunState run = resume(*model->train_network(), *newest_checkpoint(path("checkpoints")));
    EXPECT_EQ(run.step, stop);
    model->fit(2, samples(), samples(),
               {.train = {.callbacks = {make_ref<LossTrace>(path("losses"))}, .resume = run}});
    EXPECT_EQ(text_of(path("losses")), text_of(path("whole"))) << "stopped after step " << stop;
  }
}

// A run that goes on at the end of an epoch has no step there that would give a loss.
TEST_F(ResumeTest, CallbacksThatReadTheLossKnowTheLastOne) {
  const auto run = [&](bool stopped) {
    seeded();
    const auto stop = make_ref<EarlyStopping>(
        EarlyStoppingOptions{.plateau = {.monitor = "loss", .min_delta = 100, .patience = 2}});
    const auto history = make_ref<History>();
    TrainOptions options{.callbacks = {history, stop}};
    Ref<Model> model;
    if (stopped) {
      const auto checkpoints = make_ref<ModelCheckpoint>("net", folder_.string());
      demanding_model()->train(
          9, samples(),
          {.callbacks = {make_ref<History>(), checkpoints, stop, make_ref<StopAt>(5)}});
      model = demanding_model();
      options.resume = resume(*model->train_network(), path("net-1_5.ckpt"));
    } else {
      model = demanding_model();
    }
    model->train(9, samples(), options);
    return history->values().at("net_output").back();
  };
  EXPECT_EQ(run(true), run(false));
}

TEST_F(ResumeTest, EvaluatesInTheSameEpochs) {
  class Evaluated : public Callback {
   public:
    void on_train_epoch_end(RunContext& context) override {
      const CallbackParams& now = context.original_args();
      if (!now.metrics.empty()) epochs.push_back(now.cur_epoch_num);
    }
    std::vector<int64_t> epochs;
  };
  const auto whole = make_ref<Evaluated>();
  demanding_model()->fit(6, samples(), samples(),
                         {.train = {.callbacks = {whole}}, .valid_frequency = 2});
  EXPECT_THAT(whole->epochs, ElementsAre(2, 4, 6)) << "no figure of an epoch before";
  demanding_model()->train(1, samples(),
                           {.callbacks = {make_ref<ModelCheckpoint>("net", folder_.string())}});
  const auto rest = make_ref<Evaluated>();
  const auto model = demanding_model();
  model->fit(6, samples(), samples(),
             {.train = {.callbacks = {rest},
                        .resume = resume(*model->train_network(), path("net-1_5.ckpt"))},
              .valid_frequency = 2});
  EXPECT_EQ(rest->epochs, whole->epochs);
  EXPECT_THROW(model->fit(6, samples(), samples(), {.valid_frequency = 0}), Error);
}

TEST_F(ResumeTest, GivesEachCallbackItsOwnState) {
  const auto counter = make_ref<Counter>();
  const auto checkpoints = make_ref<ModelCheckpoint>("net", folder_.string());
  // In front of the counter, but told after it: the file holds this step.
  demanding_model()->train(1, samples(), {.callbacks = {checkpoints, counter}});
  const auto again = make_ref<Counter>(), other = make_ref<Counter>();
  const auto model = demanding_model();
  model->train(2, samples(),
               {.callbacks = {make_ref<LossTrace>(),
                              make_ref<EarlyStopping>(EarlyStoppingOptions{
                                  .plateau = {.monitor = "loss", .patience = 9}}),
                              again, other},
                .resume = resume(*model->train_network(), path("net-1_5.ckpt"))});
  EXPECT_EQ(again->seen, 10);
  EXPECT_EQ(other->seen, 5) << "it had no state";
}

TEST_F(ResumeTest, TheLastFileHoldsTheBestWeights) {
  const auto net = network();
  const auto model = testing_support::model_of(net);
  const auto stop = make_ref<EarlyStopping>(
      EarlyStoppingOptions{.plateau = {.monitor = "loss", .min_delta = 100, .patience = 1},
                           .restore_best_weights = true});
  model->train(5, samples(),
               {.callbacks = {make_ref<ModelCheckpoint>("net", folder_.string()), stop}});
  const auto loaded = load_checkpoint(path("net-2_5.ckpt"));
  EXPECT_EQ(loaded.find("0.weight")->to_vector<float>(),
            net->get_parameters()[0]->tensor().to_vector<float>());
}

// A count is read anew after a step that failed, whatever was written since.
TEST_F(ResumeTest, AFailedStepAndALoadedFileGiveTheFilesCount) {
  const auto model = testing_support::model_of(network());
  model->train(1, samples());
  save_checkpoint(*model->train_network(), path("five.ckpt"));
  const Tensor x = Tensor::from_vector<float>({1, 4}, {1, 2, 3, 4});
  for (int i = 0; i < 3; ++i) {
    (*model->train_network())(x, Tensor::from_vector<int32_t>({1}, {1})).wait();
  }
  EXPECT_THROW((*model->train_network())(x, Tensor::from_vector<int32_t>({1}, {7})).wait(), Error);
  load_param_into_net(*model->train_network(), load_checkpoint(path("five.ckpt")), Match::Strict);
  EXPECT_EQ(model->train_network()->optimizer().global_step(), 5);
}

TEST_F(ResumeTest, KeepsNamesAndNumberOfFiles) {
  const CheckpointConfig config{.save_checkpoint_steps = 2, .keep_checkpoint_max = 3};
  const auto model = demanding_model();
  model->train(2, samples(),
               {.callbacks = {make_ref<ModelCheckpoint>("net", folder_.string(), config)}});
  EXPECT_THAT(files(), ElementsAre("net-2_1.ckpt", "net-2_3.ckpt", "net-2_5.ckpt"));
  const auto again = demanding_model();
  again->train(3, samples(),
               {.callbacks = {make_ref<ModelCheckpoint>("net", folder_.string(), config)},
                .resume = resume(*again->train_network(), path("net-2_5.ckpt"))});
  EXPECT_THAT(files(), ElementsAre("net-3_2.ckpt", "net-3_4.ckpt", "net-3_5.ckpt"));
  // A run of its own takes another name, keeps to it when it goes on, and is the newest.
  model->train(1, samples(),
               {.callbacks = {make_ref<ModelCheckpoint>("net", folder_.string(), config)}});
  EXPECT_EQ(newest_checkpoint(folder_.string()), path("net_1-1_5.ckpt"));
  const auto third = demanding_model();
  third->train(2, samples(),
               {.callbacks = {make_ref<ModelCheckpoint>("net", folder_.string(), config)},
                .resume = resume(*third->train_network(), path("net_1-1_5.ckpt"))});
  EXPECT_TRUE(std::filesystem::exists(path("net_1-2_5.ckpt")));
  EXPECT_TRUE(std::filesystem::exists(path("net-3_5.ckpt")));
}

TEST_F(ResumeTest, LeavesOutFilesThatCannotBeRead) {
  const auto model = demanding_model();
  model->train(1, samples(), {.callbacks = {make_ref<ModelCheckpoint>("net", folder_.string())}});
  std::filesystem::resize_file(path("net-1_5.ckpt"), 100);
  std::ofstream(path("net-9_9.ckpt")) << "not a checkpoint";
  save_checkpoint(*network(), path("net-8_8.ckpt"));  // holds no run
  EXPECT_EQ(newest_checkpoint(folder_.string()), path("net-1_4.ckpt"));
  EXPECT_EQ(newest_checkpoint(folder_.string(), "other"), std::nullopt);
  EXPECT_EQ(newest_checkpoint(path("missing")), std::nullopt);
}

TEST_F(ResumeTest, SaysWhatDoesNotMatch) {
  const auto model = demanding_model();
  model->train(1, samples(), {.callbacks = {make_ref<ModelCheckpoint>("net", folder_.string())}});
  const auto plain = testing_support::model_of(network());
  EXPECT_THAT(message_of([&] { resume(*plain->train_network(), path("net-1_5.ckpt")); }),
              HasSubstr("scale_sense: f32[] in the checkpoint, missing in the network"));
  const auto again = demanding_model();
  const RunState run = resume(*again->train_network(), path("net-1_5.ckpt"));
  EXPECT_THAT(message_of([&] { again->train(2, samples()->batch(2), {.resume = run}); }),
              HasSubstr("had 5 batches an epoch, the dataset has 3"));
  save_checkpoint(*network(), path("net.ckpt"));
  EXPECT_THAT(message_of([&] { resume(*plain->train_network(), path("net.ckpt")); }),
              HasSubstr("not saved during training"));
  EXPECT_THAT(message_of([&] { resume(*plain->train_network(), path("none.ckpt")); }),
              HasSubstr("none.ckpt"));
}

TEST_F(ResumeTest, ASnapshotKeepsItsValuesWhileTrainingGoesOn) {
  const auto model = demanding_model();
  model->train(1, samples());
  const CheckpointSnapshot snapshot(*model->train_network());
  save_checkpoint(*model->train_network(), path("then.ckpt"));
  model->train(2, samples());
  snapshot.write(path("snapshot.ckpt"));
  EXPECT_EQ(text_of(path("snapshot.ckpt")), text_of(path("then.ckpt")));
}

TEST_F(ResumeTest, WhatABackgroundThreadCannotWriteIsThrown) {
  const auto checkpoints =
      make_ref<ModelCheckpoint>("net", path("gone"), CheckpointConfig{.async_save = true});
  class Remover : public Callback {
   public:
    explicit Remover(std::string folder) : folder_(std::move(folder)) {}
    void on_train_step_begin(RunContext&) override { std::filesystem::remove_all(folder_); }

   private:
    std::string folder_;
  };
  EXPECT_THROW(demanding_model()->train(
                   1, samples(), {.callbacks = {make_ref<Remover>(path("gone")), checkpoints}}),
               Error);
}

TEST(LossTrace, KeepsTheWholeLinesOfTheStepsBefore) {
  const std::string path = testing::TempDir() + "/trace";
  std::ofstream(path) << "1 3f800000\n2 40000000\n3 40400000\n4 4080";
  const auto lines_after = [&](int64_t step) {
    LossTrace trace(path);
    RunContext context(CallbackParams{.cur_step_num = step, .resumed = true});
    trace.on_train_begin(context);
    return std::pair(trace.entries().size(), text_of(path));
  };
  EXPECT_EQ(lines_after(9),
            std::pair(size_t{3}, std::string("1 3f800000\n2 40000000\n3 40400000\n")));
  EXPECT_EQ(lines_after(2), std::pair(size_t{2}, std::string("1 3f800000\n2 40000000\n")));
  EXPECT_EQ(lines_after(0), std::pair(size_t{0}, std::string()));
}

}  // namespace
}  // namespace lamella::train
