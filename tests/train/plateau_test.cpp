// Callbacks that act when a figure no longer improves, and metrics by class.
#include "lamella/train/plateau.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lamella/nn/dense.h"
#include "lamella/optim/sgd.h"
#include "lamella/train/class_metrics.h"

namespace lamella::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Tells the callback that epochs ended with these figures; gives the epochs made.
struct Epochs {
  Ref<nn::Dense> network =
      make_ref<nn::Dense>(1, 1, nn::DenseOptions{.weight_init = 0.0, .bias = nn::Bias::None});
  Ref<optim::SGD> optimizer =
      make_ref<optim::SGD>(network->trainable_params(), optim::SgdOptions{.learning_rate = 1.0});
  RunContext context{CallbackParams{.network = network, .optimizer = optimizer}};
  std::vector<double> rates;

  int64_t run(Callback& callback, const std::vector<double>& figures,
              const std::string& name = "loss") {
    callback.on_train_begin(context);
    return go_on(callback, figures, name);
  }
  int64_t go_on(Callback& callback, const std::vector<double>& figures,
                const std::string& name = "loss") {
    int64_t made = 0;
    for (const double figure : figures) {
      if (context.get_stop_requested()) break;
      context.original_args().metrics = {{name, figure}};
      context.original_args().cur_epoch_num = context.original_args().completed_epochs = ++made;
      // Each epoch leaves its number in the weight.
      network->weight()->set_data(Tensor::from_vector<float>({1, 1}, {static_cast<float>(made)}));
      callback.on_train_epoch_end(context);
      rates.push_back(optimizer->learning_rate());
    }
    return made;
  }
};

TEST(EarlyStopping, EndsAfterPatienceEpochsWithoutImprovement) {
  for (const auto& [patience, expected] : {std::pair<int64_t, int64_t>{0, 3}, {1, 3}, {2, 4}}) {
    EarlyStopping callback({.plateau = {.patience = patience}});
    EXPECT_EQ(Epochs().run(callback, {3, 2, 2, 2, 2}), expected) << patience;
  }
  EarlyStopping rises({.plateau = {.monitor = "accuracy", .patience = 1}});
  EXPECT_EQ(Epochs().run(rises, {0.1, 0.2, 0.3, 0.2, 0.9}, "accuracy"), 4);
  EarlyStopping falls({.plateau = {.monitor = "eval_accuracy", .mode = Improvement::Less}});
  EXPECT_EQ(Epochs().run(falls, {0.3, 0.2, 0.25}, "accuracy"), 3);
  EarlyStopping small({.plateau = {.min_delta = 0.5, .patience = 1}});
  EXPECT_EQ(Epochs().run(small, {3, 2, 1.7}), 3);
  EarlyStopping beaten({.plateau = {.patience = 2}, .baseline = 1});
  EXPECT_EQ(Epochs().run(beaten, {3, 2, 1.5}), 2);
}

TEST(EarlyStopping, CountsNaNAsNoImprovement) {
  EarlyStopping callback({.plateau = {.patience = 2}});
  EXPECT_EQ(Epochs().run(callback, {3, std::nan(""), std::nan(""), 1}), 3);
  EarlyStopping late({.plateau = {.patience = 2}});
  EXPECT_EQ(Epochs().run(late, {std::nan(""), 3, 2, 1}), 4);
}

TEST(EarlyStopping, RefusesAStateThatIsNone) {
  EarlyStopping callback;
  EXPECT_THROW(callback.restore({{"best", "1"}}), Error);
  EXPECT_THROW(callback.restore({{"waited", "some"}}), Error);
}

TEST(EarlyStopping, GivesBackTheBestWeights) {
  Epochs epochs;
  EarlyStopping callback({.plateau = {.patience = 2}, .restore_best_weights = true});
  EXPECT_EQ(epochs.run(callback, {3, 1, 2, 2}), 4);
  EXPECT_EQ(epochs.network->weight()->tensor().item(), 2);
}

TEST(EarlyStopping, GoesOnCounting) {
  EarlyStopping first({.plateau = {.patience = 3}});
  Epochs().run(first, {3, 1.5, 2});
  EarlyStopping second({.plateau = {.patience = 3}});
  second.restore(first.state());
  Epochs epochs;
  EXPECT_EQ(epochs.run(second, {2, 2, 2, 2}), 2);
}

TEST(EarlyStopping, NamesTheFiguresThereAre) {
  EarlyStopping callback({.plateau = {.monitor = "eval_recall"}});
  try {
    Epochs().run(callback, {1}, "accuracy");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("'eval_recall'"));
    EXPECT_THAT(error.what(), HasSubstr("eval_accuracy"));
  }
  EXPECT_THROW(EarlyStopping({.plateau = {.patience = -1}}), Error);
}

TEST(ReduceLROnPlateau, MultipliesTheRate) {
  Epochs epochs;
  ReduceLROnPlateau callback({.plateau = {.patience = 2}, .factor = 0.5, .min_lr = 0.2});
  epochs.run(callback, {3, 3, 3, 3, 3, 3, 3, 3, 3});
  EXPECT_THAT(epochs.rates,
              ElementsAre(1, 1, 0.5, 0.5, 0.25, 0.25, testing::DoubleNear(0.2, 1e-7),
                          testing::DoubleNear(0.2, 1e-7), testing::DoubleNear(0.2, 1e-7)));
}

TEST(ReduceLROnPlateau, CoolsDownAndGoesOnAfterAStop) {
  const ReduceLROnPlateauOptions options{.plateau = {.patience = 1}, .factor = 0.5, .cooldown = 2};
  Epochs whole;
  ReduceLROnPlateau callback(options);
  whole.run(callback, {3, 3, 3, 3, 3, 3});
  EXPECT_THAT(whole.rates, ElementsAre(1, 0.5, 0.5, 0.5, 0.25, 0.25));
  Epochs parts;
  ReduceLROnPlateau first(options), second(options);
  parts.run(first, {3, 3, 3});
  second.restore(first.state());
  parts.run(second, {3, 3, 3});
  EXPECT_EQ(parts.rates, whole.rates);
}

TEST(ReduceLROnPlateau, NeedsARateThatIsANumber) {
  const auto network = make_ref<nn::Dense>(1, 1);
  const auto optimizer =
      make_ref<optim::SGD>(network->trainable_params(),
                           optim::SgdOptions{.learning_rate = Ref<optim::LearningRateSchedule>(
                                                 make_ref<optim::CosineDecayLR>(0.0, 1.0, 5))});
  RunContext context(CallbackParams{.optimizer = optimizer, .metrics = {{"loss", 1}}});
  EXPECT_THROW(ReduceLROnPlateau().on_train_epoch_end(context), Error);
  EXPECT_THROW(ReduceLROnPlateau({.factor = 1}), Error);
}

TEST(LearningRateScheduler, SetsTheRateAfterEveryStep) {
  Epochs epochs;
  LearningRateScheduler callback(
      [](double rate, int64_t step) { return rate / (step == 2 ? 4 : 1); });
  for (int64_t step = 1; step <= 3; ++step) {
    epochs.context.original_args().cur_step_num = step;
    callback.on_train_step_end(epochs.context);
    epochs.rates.push_back(epochs.optimizer->learning_rate());
  }
  EXPECT_THAT(epochs.rates, ElementsAre(1, 0.25, 0.25));
}

// ---- Metrics ----

Tensor outputs(const std::vector<float>& elements, int64_t classes) {
  return Tensor::from_vector<float>({static_cast<int64_t>(elements.size()) / classes, classes},
                                    elements);
}
Tensor labels(const std::vector<int32_t>& elements) {
  return Tensor::from_vector<int32_t>({static_cast<int64_t>(elements.size())}, elements);
}

// Predictions 0 0 1 2 | 2, labels 0 1 1 1 | 2.
template <typename M>
void update(M& metric) {
  metric.update({outputs({3, 1, 0, 2, 1, 0, 0, 5, 1, 0, 1, 2}, 3), labels({0, 1, 1, 1})});
  metric.update({outputs({0, 0, 1}, 3), outputs({0, 0, 1}, 3)});  // a one-hot label
}

TEST(ClassMetrics, CountOverBatches) {
  Precision precision;
  Recall recall;
  Fbeta f1, f2(2);
  update(precision), update(recall), update(f1), update(f2);
  EXPECT_THAT(precision.each_class(), ElementsAre(0.5, 1, 0.5));
  EXPECT_THAT(recall.each_class(), ElementsAre(1, testing::DoubleEq(1.0 / 3), 1));
  EXPECT_DOUBLE_EQ(recall.eval(), (2 + 1.0 / 3) / 3);
  EXPECT_THAT(f1.each_class(),
              ElementsAre(testing::DoubleEq(2.0 / 3), 0.5, testing::DoubleEq(2.0 / 3)));
  EXPECT_DOUBLE_EQ(f2.each_class()[1], 5 * 1 * (1.0 / 3) / (4 * 1 + 1.0 / 3));
  precision.clear();
  EXPECT_THROW(precision.eval(), Error);
}

TEST(ClassMetrics, TakeSeveralLabelsASample) {
  Recall recall(AccuracyKind::Multilabel);
  recall.update({outputs({1, 0, 1, 1, 1, 0}, 3), outputs({1, 1, 0, 1, 1, 0}, 3)});
  EXPECT_THAT(recall.each_class(), ElementsAre(1, 0.5, 0));
  EXPECT_THROW(recall.update({outputs({1, 0}, 2), outputs({1, 0}, 2)}), Error);
  EXPECT_THROW(recall.update({outputs({1, 0, 1}, 3), labels({1})}), Error);
  // One label does not stand for several rows.
  EXPECT_THROW(Recall().update({outputs({1, 0, 0, 1}, 2), labels({1})}), Error);
  EXPECT_THROW(Accuracy().update({outputs({1, 0, 0, 1}, 2), labels({1})}), Error);
}

TEST(ConfusionMatrix, HasARowForTheTruth) {
  ConfusionMatrix counts(3), by_truth(3, ConfusionMatrix::Normalize::Truth);
  update(counts), update(by_truth);
  EXPECT_THAT(counts.matrix(), ElementsAre(1, 0, 0, 1, 1, 1, 0, 0, 1));
  EXPECT_DOUBLE_EQ(counts.eval(), 0.6);
  EXPECT_DOUBLE_EQ(by_truth.matrix()[3], 1.0 / 3);
  ConfusionMatrix binary(2);
  binary.update({Tensor::from_vector<float>({3}, {0.4F, 0.6F, 0.9F}), labels({0, 0, 1})});
  EXPECT_THAT(binary.matrix(), ElementsAre(1, 1, 0, 1));
  EXPECT_THROW(binary.update({Tensor::from_vector<float>({1}, {1}), labels({2})}), Error);
  EXPECT_THAT(binary.matrix(), ElementsAre(1, 1, 0, 1)) << "a bad batch is not counted in part";
}

TEST(Errors, AreSumsByTheNumberOfSamples) {
  MAE mae;
  MSE mse;
  const Tensor y = outputs({1, 2, 3, 4}, 2), zeros = outputs({0, 0, 0, 0}, 2);
  mae.update({y, zeros}), mse.update({y, zeros});
  EXPECT_EQ(mae.eval(), 5);
  EXPECT_EQ(mse.eval(), 15);
  EXPECT_THROW(mae.update({y, labels({1})}), Error);
}

TEST(TopKCategoricalAccuracy, CountsNoNaNAndOneOfEqualOutputs) {
  TopKCategoricalAccuracy first(1), second(2);
  const float nan = std::nanf("");
  for (TopKCategoricalAccuracy* metric : {&first, &second}) {
    metric->update({outputs({nan, nan, nan, 0, 0, 0, 3, nan, 1}, 3), labels({0, 1, 0})});
  }
  EXPECT_DOUBLE_EQ(first.eval(), 0) << "of equal outputs the first is the largest";
  EXPECT_DOUBLE_EQ(second.eval(), 2.0 / 3);
}

TEST(Metrics, RefuseLabelsThatAreNoClass) {
  for (const int32_t label : {-1, 3}) {
    for (const char* name : {"accuracy", "precision", "recall", "F1", "top_1_accuracy"}) {
      EXPECT_THROW(get_metric(name)->update({outputs({1, 2, 3}, 3), labels({label})}), Error)
          << name;
    }
  }
}

TEST(Metrics, AreFoundByName) {
  for (const std::string& name : metric_names()) EXPECT_TRUE(get_metric(name)) << name;
  EXPECT_THROW(get_metric("nothing"), Error);
}

}  // namespace
}  // namespace lamella::train
