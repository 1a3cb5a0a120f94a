// The loops: which callbacks are told what, metrics, prediction.
#include "lamella/train/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lamella/data/source.h"
#include "lamella/nn/dense.h"
#include "lamella/nn/loss.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/random.h"
#include "lamella/optim/sgd.h"

namespace lamella::train {
namespace {

using testing::ElementsAre;

Ref<data::Dataset> pairs(int64_t count, int64_t batch) {
  std::vector<float> x, y;
  for (int64_t i = 0; i < count; ++i) {
    x.push_back(static_cast<float>(i) / 4);
    y.push_back(2 * x.back() + 1);
  }
  return make_ref<data::NumpySlicesDataset>(std::vector{data::Array::of<float>(x, {count, 1}),
                                                        data::Array::of<float>(y, {count, 1})},
                                            std::vector<std::string>{"x", "y"},
                                            data::SourceOptions{.shuffle = false})
      ->batch(batch);
}

Ref<Model> line_model(const Ref<nn::Cell>& net) {
  return make_ref<Model>(net,
                         ModelOptions{.loss_fn = make_ref<nn::MSELoss>(),
                                      .optimizer = make_ref<optim::SGD>(net->trainable_params()),
                                      .metrics = {{"loss", get_metric("loss")}}});
}

TEST(Model, LearnsALine) {
  set_seed(1);
  const auto net = make_ref<nn::Dense>(1, 1);
  const auto model = line_model(net);
  model->train(200, pairs(8, 4));
  EXPECT_NEAR(net->weight()->tensor().item(), 2, 1e-2);
  EXPECT_NEAR(net->bias()->tensor().item(), 1, 1e-2);
  EXPECT_LT(model->eval(pairs(8, 4)).at("loss"), 1e-3);
  const Tensors out = model->predict({Tensor::from_vector<float>({1, 1}, {3})});
  EXPECT_NEAR(out[0].item(), 7, 5e-2);
}

TEST(Model, TellsCallbacksEveryTurnUnderBothNames) {
  class Scribe : public Callback {
   public:
    void begin(RunContext& c) override { note("begin", c); }
    void epoch_begin(RunContext& c) override { note("epoch_begin", c); }
    void step_begin(RunContext& c) override { note("step_begin", c); }
    void on_train_step_end(RunContext& c) override { note("on_train_step_end", c); }
    void on_eval_end(RunContext& c) override { note("on_eval_end", c); }
    void epoch_end(RunContext& c) override { note("epoch_end", c); }
    void end(RunContext& c) override { note("end", c); }
    std::vector<std::string> turns;

   private:
    void note(const char* turn, RunContext& context) {
      const CallbackParams& now = context.original_args();
      turns.push_back(fmt::format("{} {} {}", turn, now.cur_epoch_num, now.cur_step_num));
    }
  };
  const auto scribe = make_ref<Scribe>();
  const auto model = line_model(make_ref<nn::Dense>(1, 1));
  model->train(1, pairs(4, 2), {.callbacks = {scribe}});
  EXPECT_THAT(scribe->turns,
              ElementsAre("begin 0 0", "epoch_begin 1 0", "step_begin 1 1", "on_train_step_end 1 1",
                          "step_begin 1 2", "on_train_step_end 1 2", "epoch_end 1 2", "end 1 2"));
  scribe->turns.clear();
  model->eval(pairs(2, 2), {scribe});
  EXPECT_THAT(scribe->turns, ElementsAre("begin 1 0", "epoch_begin 1 0", "step_begin 1 1",
                                         "epoch_end 1 1", "on_eval_end 1 1"));
}

TEST(Model, StopsWhenACallbackAsks) {
  class Stop : public Callback {
   public:
    void step_end(RunContext& context) override {
      ++steps;
      context.request_stop();
    }
    int steps = 0;
  };
  const auto stop = make_ref<Stop>();
  line_model(make_ref<nn::Dense>(1, 1))->train(5, pairs(8, 2), {.callbacks = {stop}});
  EXPECT_EQ(stop->steps, 1);
}

TEST(Model, HistoryKeepsLossesAndMetricsOfEpochs) {
  const auto history = make_ref<History>();
  line_model(make_ref<nn::Dense>(1, 1))
      ->fit(3, pairs(4, 2), pairs(4, 2), {.train = {.callbacks = {history}}});
  EXPECT_THAT(history->epochs(), ElementsAre(1, 2, 3));
  EXPECT_EQ(history->values().at("net_output").size(), 3u);
  EXPECT_EQ(history->values().at("loss").size(), 3u);
}

TEST(Model, SaysWhatIsMissing) {
  const auto net = make_ref<nn::Dense>(1, 1);
  EXPECT_THROW(Model(net).train(1, pairs(4, 2)), Error);
  EXPECT_THROW(Model(net).eval(pairs(4, 2)), Error);
  EXPECT_THROW(line_model(net)->train(0, pairs(4, 2)), Error);
  EXPECT_THROW(line_model(net)->train(1, {}), Error);
}

TEST(Metric, AccuracyInItsForms) {
  const Tensor outputs = Tensor::from_vector<float>({3, 2}, {0.9f, 0.1f, 0.3f, 0.7f, 0.6f, 0.4f});
  Accuracy accuracy;
  EXPECT_THROW(accuracy.eval(), Error);
  accuracy.clear();
  accuracy.update({outputs, Tensor::from_vector<int32_t>({3}, {0, 1, 1})});
  EXPECT_DOUBLE_EQ(accuracy.eval(), 2.0 / 3);
  accuracy.update({outputs, Tensor::from_vector<float>({3, 2}, {1, 0, 0, 1, 1, 0})});
  EXPECT_DOUBLE_EQ(accuracy.eval(), 5.0 / 6);
  Accuracy multilabel(AccuracyKind::Multilabel);
  multilabel.clear();
  multilabel.update({Tensor::from_vector<float>({2, 2}, {1, 0, 1, 1}),
                     Tensor::from_vector<float>({2, 2}, {1, 0, 0, 1})});
  EXPECT_DOUBLE_EQ(multilabel.eval(), 0.5);
}

TEST(Metric, TopK) {
  TopKCategoricalAccuracy top(2);
  top.clear();
  top.update({Tensor::from_vector<float>({2, 3}, {0.5f, 0.3f, 0.2f, 0.5f, 0.3f, 0.2f}),
              Tensor::from_vector<int32_t>({2}, {1, 2})});
  EXPECT_DOUBLE_EQ(top.eval(), 0.5);
  EXPECT_THROW(get_metric("no_such"), Error);
}

}  // namespace
}  // namespace lamella::train
