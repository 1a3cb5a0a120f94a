// A folder for checkpoints, and a small run that makes them.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lamella/data/source.h"
#include "lamella/nn/container.h"
#include "lamella/nn/dense.h"
#include "lamella/nn/dropout.h"
#include "lamella/nn/loss.h"
#include "lamella/nn/normalization.h"
#include "lamella/optim/adam.h"
#include "lamella/train/model.h"

namespace lamella::testing_support {

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

inline Ref<nn::Cell> network() {
  return make_ref<nn::SequentialCell>(std::vector<Ref<nn::Cell>>{
      make_ref<nn::Dense>(4, 8, nn::DenseOptions{.activation = "relu"}),
      make_ref<nn::BatchNorm1d>(8), make_ref<nn::Dropout>(), make_ref<nn::Dense>(8, 3)});
}

// 40 samples of 4 numbers with labels, in batches of 8, shuffled.
inline Ref<data::Dataset> samples() {
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

inline Ref<train::Model> model_of(const Ref<nn::Cell>& net) {
  return make_ref<train::Model>(
      net, train::ModelOptions{.loss_fn = make_ref<nn::SoftmaxCrossEntropyWithLogits>(
                                   nn::Labels::Classes, nn::Reduction::Mean),
                               .optimizer = make_ref<optim::Adam>(net->trainable_params()),
                               .metrics = {{"accuracy", train::get_metric("accuracy")}}});
}

}  // namespace lamella::testing_support
