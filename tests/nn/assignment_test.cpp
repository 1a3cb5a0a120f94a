// Parts that are replaced: what was assigned last computes, is listed, named and trained.
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lamella/nn/activation.h"
#include "lamella/nn/container.h"
#include "lamella/nn/convolution.h"
#include "lamella/nn/normalization.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/random.h"
#include "lamella/ops/tensor_operators.h"
#include "lamella/optim/sgd.h"
#include "lamella/train/step.h"
#include "lamella/transform/grad.h"

namespace lamella::nn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Tensor floats(const Shape& shape, std::vector<float> elements) {
  return Tensor::from_vector<float>(shape, elements);
}

std::vector<std::string> names_of(const Parameters& parameters) {
  std::vector<std::string> names;
  for (const auto& parameter : parameters) names.push_back(parameter->name());
  return names;
}

// A layer with parameters, and what it is called with.
struct LayerCase {
  std::string name;
  std::function<Ref<Cell>()> make;
  std::function<Tensor()> input;
};

void PrintTo(const LayerCase& layer, std::ostream* out) {
  *out << layer.name;
}

template <typename T>
Ref<Cell> in_training(Ref<T> cell) {
  cell->set_train();
  return cell;
}

const LayerCase kLayers[] = {
    {"Dense", [] { return make_ref<Dense>(3, 2); }, [] { return ops::normal({4, 3}); }},
    {"Embedding", [] { return make_ref<Embedding>(5, 2); },
     [] { return Tensor::from_vector<int32_t>({3}, {0, 4, 2}); }},
    {"Conv2d", [] { return make_ref<Conv2d>(2, 3, 3, Conv2dOptions{.bias = Bias::Added}); },
     [] { return ops::normal({2, 2, 4, 4}); }},
    {"Conv2dTranspose",
     [] { return make_ref<Conv2dTranspose>(2, 3, 3, Conv2dTransposeOptions{.bias = Bias::Added}); },
     [] { return ops::normal({2, 2, 4, 4}); }},
    {"BatchNorm1d", [] { return make_ref<BatchNorm1d>(3); }, [] { return ops::normal({4, 3}); }},
    {"BatchNorm2d", [] { return make_ref<BatchNorm2d>(3); },
     [] { return ops::normal({2, 3, 2, 2}); }},
    {"BatchNorm1dInTraining", [] { return in_training(make_ref<BatchNorm1d>(3)); },
     [] { return ops::normal({4, 3}); }},
    {"LayerNorm", [] { return make_ref<LayerNorm>(Shape{3}); }, [] { return ops::normal({4, 3}); }},
    {"GroupNorm", [] { return make_ref<GroupNorm>(2, 4); }, [] { return ops::normal({2, 4, 3}); }},
    {"PReLU", [] { return make_ref<PReLU>(3); }, [] { return ops::normal({4, 3}); }},
};

class EveryLayer : public testing::TestWithParam<LayerCase> {};

// The same layer twice: in one each parameter is written, in the other it is replaced.
TEST_P(EveryLayer, ComputesAndTrainsWithWhatWasAssigned) {
  set_seed(1);
  const Ref<Cell> written = GetParam().make(), replaced = GetParam().make();
  const Tensor x = GetParam().input();
  ASSERT_FALSE(written->own_parameters().empty());
  std::vector<Tensor> wrt_written, wrt_replaced;
  for (size_t i = 0; i < written->own_parameters().size(); ++i) {
    const auto [name, parameter] = written->own_parameters()[i];
    const Tensor value = ops::uniform(parameter->shape(), 0.5, 1.5);
    parameter->set_data(value);
    const auto other = make_ref<Parameter>(value, std::string(Parameter::kUnnamed),
                                           ParameterOptions{parameter->requires_grad()});
    replaced->set_parameter(name, other);
    EXPECT_EQ(replaced->own_parameters()[i].second, other);
    EXPECT_EQ(other->name(), name);
    wrt_written.push_back(parameter->tensor());
    wrt_replaced.push_back(other->tensor());
  }
  const auto run = [&](Cell& cell, const std::vector<Tensor>& wrt) {
    return value_and_grad([&] { return std::vector{ops::sum(cell(x))}; }, wrt);
  };
  const ValueAndGradients expected = run(*written, wrt_written), got = run(*replaced, wrt_replaced);
  EXPECT_EQ(got.values[0].to_vector<float>(), expected.values[0].to_vector<float>());
  for (size_t i = 0; i < wrt_written.size(); ++i) {
    EXPECT_EQ(got.gradients[i].to_vector<float>(), expected.gradients[i].to_vector<float>());
    // Moving statistics are written in training, also where they were replaced.
    EXPECT_EQ(wrt_replaced[i].to_vector<float>(), wrt_written[i].to_vector<float>());
  }
}

TEST_P(EveryLayer, SaysWhichParameterWasTakenAway) {
  const Tensor x = GetParam().input();
  const auto names = GetParam().make()->own_parameters();
  for (const auto& [name, parameter] : names) {
    const Ref<Cell> cell = GetParam().make();
    ASSERT_TRUE(cell->remove(name));
    if (name == "bias") {
      EXPECT_NO_THROW((*cell)(x).wait());
      continue;
    }
    try {
      (*cell)(x);
      ADD_FAILURE() << "the layer computed without " << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Value);
      EXPECT_THAT(error.what(), HasSubstr(name));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Assignment, EveryLayer, testing::ValuesIn(kLayers),
                         [](const auto& layer) { return layer.param.name; });

class Tied : public Cell {
 public:
  Tied() {
    const auto embedding = add("embedding", make_ref<Embedding>(5, 3));
    const auto decoder = add("decoder", make_ref<Dense>(3, 5, DenseOptions{.bias = Bias::None}));
    decoder->set_parameter("weight", embedding->table());
  }
  using Cell::construct;
  Tensor construct(const Tensor& x) override {
    return own_cell("decoder")(own_cell("embedding")(x));
  }
};

TEST(TiedWeights, AreOneParameterWithTheSumOfTheirGradients) {
  set_seed(2);
  const auto net = make_ref<Tied>();
  const auto outer = make_ref<Cell>();
  outer->add("net", net);
  const Parameters parameters = outer->trainable_params();
  EXPECT_THAT(names_of(parameters), ElementsAre("net.embedding.embedding_table"));

  const Tensor x = Tensor::from_vector<int32_t>({2}, {1, 3});
  const Tensor table = parameters[0]->tensor();
  const Tensor wrt[] = {table};
  const auto got = grad([&] { return ops::sum(ops::square((*net)(x))); }, wrt);
  const Tensor rows = table.snapshot(), weight = table.snapshot();
  const Tensor apart[] = {ops::mul(rows, 1.0), ops::mul(weight, 1.0)};
  const auto each =
      grad([&] { return ops::sum(ops::square(ops::dense(ops::gather(apart[0], x, 0), apart[1]))); },
           apart);
  EXPECT_THAT(
      got[0].to_vector<float>(),
      testing::Pointwise(testing::FloatNear(1e-8f), (each[0] + each[1]).to_vector<float>()));

  optim::SGD optimizer(parameters, {.learning_rate = 0.5});
  const std::vector<float> before = table.to_vector<float>();
  const std::vector<float> moved = (table - got[0] * 0.5).to_vector<float>();
  optimizer(Tensors{got[0]});
  EXPECT_EQ(table.to_vector<float>(), moved);
  EXPECT_NE(moved, before);
}

TEST(Assignment, NamesFollowThePathFromTheRoot) {
  const auto root = make_ref<Cell>();
  const auto block = root->add("block", make_ref<Cell>());
  block->add("dense", make_ref<Dense>(2, 2));
  block->set_cell("dense", make_ref<Dense>(2, 3));
  block->child("dense")->set_parameter("weight",
                                       make_ref<Parameter>(floats({3, 2}, {0, 0, 0, 0, 0, 0})));
  block->add("late", make_ref<PReLU>());
  root->add_parameter("scale", make_ref<Parameter>(floats({1}, {1})));
  EXPECT_THAT(names_of(root->get_parameters()),
              ElementsAre("scale", "block.dense.weight", "block.dense.bias", "block.late.w"));
}

TEST(Assignment, OfACellTakesThePlaceOfWhatHadTheName) {
  Cell net;
  net.add_parameter("part", make_ref<Parameter>(floats({1}, {1})));
  net.set_cell("part", make_ref<ReLU>());
  EXPECT_TRUE(net.own_parameters().empty());
  net.set_parameter("part", make_ref<Parameter>(floats({1}, {1})));
  EXPECT_TRUE(net.children().empty());
  EXPECT_THROW(net.set_parameter("part", nullptr), Error);
  EXPECT_THROW(net.set_cell("part", nullptr), Error);
  EXPECT_TRUE(net.parameter("part")) << "a refused assignment leaves what was there";
}

TEST(Assignment, OfALayersActivation) {
  Dense dense(1, 1, {.weight_init = "ones", .bias = Bias::None, .activation = "relu"});
  EXPECT_EQ(dense(floats({1, 1}, {-2})).item(), 0);
  dense.set_cell("activation", make_ref<LeakyReLU>(0.5));
  EXPECT_EQ(dense(floats({1, 1}, {-2})).item(), -1);
  dense.remove("activation");
  EXPECT_EQ(dense(floats({1, 1}, {-2})).item(), -2);
}

TEST(Assignment, OfATrainingStepsNetworkAndOptimizer) {
  const auto dense = [] {
    return make_ref<Dense>(1, 1, DenseOptions{.weight_init = "ones", .bias = Bias::None});
  };
  const auto first = dense(), second = dense();
  const auto sgd = [](const Ref<Dense>& net, double rate) {
    return make_ref<optim::SGD>(net->trainable_params(), optim::SgdOptions{.learning_rate = rate});
  };
  train::TrainOneStepCell step(first, sgd(first, 1));
  step.set_cell("network", second);
  step.set_cell("optimizer", sgd(second, 0.25));
  step(floats({1, 1}, {1}));
  EXPECT_EQ(first->weight()->tensor().item(), 1);
  EXPECT_EQ(second->weight()->tensor().item(), 0.75);
  step.set_cell("optimizer", make_ref<ReLU>());
  EXPECT_THROW(step(floats({1, 1}, {1})), Error);
}

TEST(Assignment, OfAnOptimizersRateAndCounter) {
  const auto weight = make_ref<Parameter>(floats({1}, {1}), "w");
  optim::SGD optimizer(Parameters{weight}, {.learning_rate = 0.5});
  optimizer.set_parameter("learning_rate",
                          make_ref<Parameter>(Tensor::scalar(DType::Float32, 0.25)));
  optimizer(Tensors{floats({1}, {1})});
  EXPECT_EQ(weight->tensor().item(), 0.75);
  optimizer.set_parameter("global_step",
                          make_ref<Parameter>(Tensor::from_vector<int32_t>({1}, {7})));
  EXPECT_EQ(optimizer.global_step(), 7);
}

}  // namespace
}  // namespace lamella::nn
