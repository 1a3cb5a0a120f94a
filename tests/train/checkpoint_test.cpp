// Saving, loading, and going on as if a run had not stopped.
#include "lamella/train/checkpoint.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lamella/data/config.h"
#include "lamella/data/source.h"
#include "lamella/ir/window.h"
#include "lamella/nn/container.h"
#include "lamella/nn/dense.h"
#include "lamella/nn/dropout.h"
#include "lamella/nn/loss.h"
#include "lamella/nn/normalization.h"
#include "lamella/optim/adam.h"
#include "lamella/train/model.h"
#include "lamella/train/monitor.h"

namespace lamella::train {
namespace {

using nn::Parameters;
using testing::ElementsAre;
using testing::HasSubstr;

class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest()
      : folder_(std::filesystem::path(testing::TempDir()) /
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~CheckpointTest() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  std::filesystem::path folder_;
};

Ref<nn::Cell> network() {
  return make_ref<nn::SequentialCell>(std::vector<Ref<nn::Cell>>{
      make_ref<nn::Dense>(4, 8, nn::DenseOptions{.activation = "relu"}),
      make_ref<nn::BatchNorm1d>(8), make_ref<nn::Dropout>(), make_ref<nn::Dense>(8, 3)});
}

// 40 samples of 4 numbers with labels, in batches of 8, shuffled.
Ref<data::Dataset> samples() {
  std::vector<float> numbers(160);
  std::vector<int32_t> labels(40);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 7) - 3;
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int32_t>(i % 3);
  return make_ref<data::NumpySlicesDataset>(std::vector{data::Array::of<float>(numbers, {40, 4}),
                                                        data::Array::of<int32_t>(labels, {40})},
                                            std::vector<std::string>{"x", "label"},
                                            data::SourceOptions{.shuffle = true})
      ->batch(8);
}

Ref<Model> model_of(const Ref<nn::Cell>& net) {
  return make_ref<Model>(
      net, ModelOptions{.loss_fn = make_ref<nn::SoftmaxCrossEntropyWithLogits>(nn::Labels::Classes,
                                                                               nn::Reduction::Mean),
                        .optimizer = make_ref<optim::Adam>(net->trainable_params()),
                        .metrics = {{"accuracy", get_metric("accuracy")}}});
}

TEST_F(CheckpointTest, GivesBackWhatWasSaved) {
  const auto net = network();
  const RunState run{
      .epoch = 2, .step = 17, .random = {.seed = 5, .offset = 9}, .data = {.epoch = 2, .batch = 3}};
  save_checkpoint(*net, path("net.ckpt"), run, {{"note", "kept"}});
  const Checkpoint loaded = load_checkpoint(path("net.ckpt"));
  EXPECT_EQ(loaded.extra.at("note"), "kept");
  ASSERT_TRUE(loaded.run);
  EXPECT_EQ(loaded.run->step, 17);
  EXPECT_EQ(loaded.run->random, run.random);
  EXPECT_EQ(loaded.run->data, run.data);
  const auto other = network();
  const NotLoaded rest = load_param_into_net(*other, loaded, Match::Strict);
  EXPECT_TRUE(rest.parameters.empty() && rest.checkpoint.empty());
  const Parameters ours = net->get_parameters(), theirs = other->get_parameters();
  for (size_t i = 0; i < ours.size(); ++i) {
    EXPECT_EQ(theirs[i]->tensor().to_vector<float>(), ours[i]->tensor().to_vector<float>());
  }
}

TEST_F(CheckpointTest, ListsEveryMismatchAndWritesNothing) {
  const auto saved = network();
  save_checkpoint(*saved, path("net.ckpt"));
  const auto other = make_ref<nn::SequentialCell>(
      std::vector<Ref<nn::Cell>>{make_ref<nn::Dense>(4, 9), make_ref<nn::Dense>(8, 3)});
  const auto before = other->get_parameters()[0]->tensor().to_vector<float>();
  const Checkpoint loaded = load_checkpoint(path("net.ckpt"));
  try {
    load_param_into_net(*other, loaded, Match::Strict);
    FAIL() << "shapes differ";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("0.weight: f32[9,4] in the network, f32[8,4] in the checkpoint"));
    EXPECT_THAT(error.what(), HasSubstr("1.weight: f32[3,8] in the network, missing"));
    EXPECT_THAT(error.what(), HasSubstr("3.bias: f32[3] in the checkpoint, missing"));
  }
  EXPECT_EQ(other->get_parameters()[0]->tensor().to_vector<float>(), before);
}

TEST_F(CheckpointTest, LeavesOutWhatOnlyOneSideHas) {
  save_checkpoint(*make_ref<nn::SequentialCell>(std::vector<Ref<nn::Cell>>{
                      make_ref<nn::Dense>(4, 8), make_ref<nn::Dense>(8, 2)}),
                  path("net.ckpt"));
  const auto other = make_ref<nn::SequentialCell>(std::vector<Ref<nn::Cell>>{
      make_ref<nn::Dense>(4, 8), make_ref<nn::ReLU>(), make_ref<nn::Dense>(8, 2)});
  const NotLoaded rest = load_param_into_net(*other, load_checkpoint(path("net.ckpt")));
  EXPECT_THAT(rest.parameters, ElementsAre("2.weight", "2.bias"));
  EXPECT_THAT(rest.checkpoint, ElementsAre("1.weight", "1.bias"));
}

TEST_F(CheckpointTest, RefusesFilesThatAreNone) {
  EXPECT_THROW(load_checkpoint(path("missing.ckpt")), Error);
}

TEST_F(CheckpointTest, KeepsTheLastOnesUnderTheirNames) {
  const auto model = model_of(network());
  const auto checkpoints = make_ref<ModelCheckpoint>(
      "net", folder_.string(),
      CheckpointConfig{.save_checkpoint_steps = 2, .keep_checkpoint_max = 3});
  model->train(2, samples(), {.callbacks = {checkpoints}});
  EXPECT_THAT(files(), ElementsAre("net-2_1.ckpt", "net-2_3.ckpt", "net-2_5.ckpt"));
  model->train(1, samples(), {.callbacks = {checkpoints}});
  EXPECT_TRUE(std::filesystem::exists(path("net_1-1_2.ckpt")));
}

TEST_F(CheckpointTest, AResumedRunIsTheRunThatNeverStopped) {
  const auto losses_of = [](const Ref<LossTrace>& trace) {
    std::vector<float> losses;
    for (const auto& entry : trace->entries()) losses.push_back(entry.loss);
    return losses;
  };
  const auto seeded = [] {
    set_seed(11);
    data::config::set_seed(12);
  };
  seeded();
  const auto whole = make_ref<LossTrace>();
  model_of(network())->train(3, samples(), {.callbacks = {whole}});

  class StopAt : public Callback {
   public:
    void on_train_step_end(RunContext& context) override {
      if (context.original_args().cur_step_num == 7) context.request_stop();
    }
  };
  seeded();
  const auto checkpoints = make_ref<ModelCheckpoint>("net", folder_.string(),
                                                     CheckpointConfig{.save_checkpoint_steps = 7});
  model_of(network())->train(3, samples(), {.callbacks = {checkpoints, make_ref<StopAt>()}});

  set_seed(99);
  const auto net = network();
  const auto model = model_of(net);
  const Checkpoint loaded = load_checkpoint(path("net-2_2.ckpt"));
  load_param_into_net(*model->train_network(), loaded, Match::Strict);
  set_random_state(loaded.run->random);
  data::config::set_seed(12);
  const auto rest = make_ref<LossTrace>();
  model->train(
      3, samples(),
      {.callbacks = {rest}, .initial_epoch = loaded.run->epoch, .resume_at = loaded.run->data});
  std::vector<float> expected = losses_of(whole);
  expected.erase(expected.begin(), expected.begin() + 7);
  EXPECT_EQ(losses_of(rest), expected);
}

}  // namespace
}  // namespace lamella::train
