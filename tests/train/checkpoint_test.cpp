// Saving and loading parameters.
#include "lamella/train/checkpoint.h"

#include "tests/train/checkpoint_testing.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lamella/io/safetensors.h"
#include "lamella/nn/container.h"
#include "lamella/nn/dense.h"
#include "lamella/ops/functions.h"

namespace lamella::train {
namespace {

using nn::Parameters;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::CheckpointTest;
using testing_support::network;

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

TEST_F(CheckpointTest, CastsNumbersOnlyToTheirOwnKind) {
  const auto net = make_ref<nn::Dense>(2, 1, nn::DenseOptions{.bias = nn::Bias::None});
  const auto load = [&](const Tensor& weight) {
    load_param_into_net(*net, Checkpoint{.parameters = {{"weight", weight}}});
    return net->weight()->tensor().to_vector<float>();
  };
  EXPECT_EQ(load(ops::cast(Tensor::from_vector<float>({1, 2}, {1, 2}), DType::Float16)),
            (std::vector<float>{1, 2}));
  try {
    load(Tensor::from_vector<int32_t>({1, 2}, {3, 4}));
    FAIL() << "ints are no weights";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("weight: f32[1,2] in the network, i32[1,2] in the checkpoint"));
  }
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

TEST_F(CheckpointTest, RefusesNamesAndFormatsThatAreNotTheUsers) {
  const auto net = network();
  EXPECT_THROW(save_checkpoint(*net, path("a.ckpt"), {}, {{"lamella.step", "1"}}), Error);
  for (const char* number : {"99999999999999999999999", "3x", "", "-5"}) {
    io::save_tensors(path("b.ckpt"), {}, {{"lamella.step", number}});
    EXPECT_THROW(load_checkpoint(path("b.ckpt")), Error) << number;
  }
  io::save_tensors(path("c.ckpt"), {}, {{"lamella.checkpoint", "1000"}});
  try {
    load_checkpoint(path("c.ckpt"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Unsupported);
  }
}

TEST_F(CheckpointTest, RefusesFilesThatAreNone) {
  EXPECT_THROW(load_checkpoint(path("missing.ckpt")), Error);
}

}  // namespace
}  // namespace lamella::train
