// Recurrent layers against their formulas in double and against their own single steps.
#include "lamella/nn/recurrent.h"

#include <cmath>

#include "tests/errors.h"
#include "tests/window_limits.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lamella/ir/window.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/random.h"
#include "lamella/ops/tensor_operators.h"
#include "lamella/transform/grad.h"

namespace lamella::nn {
namespace {

using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

constexpr int64_t kIn = 3, kHidden = 4, kBatch = 2, kTurns = 5;

std::vector<float> elements(const Tensor& tensor) {
  return tensor.to_vector<float>();
}

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

// A row of weight times x plus bias, in double.
double affine(const Cell& cell, const char* weight, const char* bias, size_t row,
              const std::vector<double>& x) {
  const std::vector<float> w = elements(cell.parameter(weight)->tensor());
  double sum = elements(cell.parameter(bias)->tensor())[row];
  for (size_t i = 0; i < x.size(); ++i) sum += w[row * x.size() + i] * x[i];
  return sum;
}

struct Formula {
  const Cell& cell;
  std::vector<double> x, h;
  double input(size_t gate, size_t i) const {
    return affine(cell, "weight_ih", "bias_ih", gate * kHidden + i, x);
  }
  double hidden(size_t gate, size_t i) const {
    return affine(cell, "weight_hh", "bias_hh", gate * kHidden + i, h);
  }
  double both(size_t gate, size_t i) const { return input(gate, i) + hidden(gate, i); }
};

std::vector<double> one_row(const Tensor& tensor) {
  const std::vector<float> row = elements(tensor);
  return {row.begin(), row.end()};
}

TEST(RecurrentCells, FollowTheirFormulas) {
  set_seed(1);
  const Tensor x = ops::normal({1, kIn}), h = ops::normal({1, kHidden}),
               c = ops::normal({1, kHidden});
  RNNCell elman(kIn, kHidden), bent(kIn, kHidden, {}, Nonlinearity::Relu);
  LSTMCell lstm(kIn, kHidden);
  GRUCell gru(kIn, kHidden);
  const std::vector<float> tanh_h = elements(elman({x, h})[0]), relu_h = elements(bent({x, h})[0]);
  const Tensors lstm_states = lstm({x, h, c});
  const std::vector<float> lstm_h = elements(lstm_states[0]), lstm_c = elements(lstm_states[1]);
  const std::vector<float> gru_h = elements(gru({x, h})[0]);
  for (size_t i = 0; i < kHidden; ++i) {
    const auto formula = [&](const Cell& cell) { return Formula{cell, one_row(x), one_row(h)}; };
    EXPECT_NEAR(tanh_h[i], std::tanh(formula(elman).both(0, i)), 1e-5);
    EXPECT_NEAR(relu_h[i], std::max(formula(bent).both(0, i), 0.0), 1e-5);
    const Formula l = formula(lstm), g = formula(gru);
    const double next_c =
        sigmoid(l.both(1, i)) * one_row(c)[i] + sigmoid(l.both(0, i)) * std::tanh(l.both(2, i));
    EXPECT_NEAR(lstm_c[i], next_c, 1e-5);
    EXPECT_NEAR(lstm_h[i], sigmoid(l.both(3, i)) * std::tanh(next_c), 1e-5);
    const double fresh = std::tanh(g.input(2, i) + sigmoid(g.both(0, i)) * g.hidden(2, i));
    const double z = sigmoid(g.both(1, i));
    EXPECT_NEAR(gru_h[i], (1 - z) * fresh + z * one_row(h)[i], 1e-5);
  }
}

// ---- Layers against their cells, step by step ----

struct Kind {
  const char* name;
  std::function<Ref<Recurrent>(const RecurrentOptions&)> layer;
  std::function<Ref<RecurrentCell>(int64_t in)> cell;
};

std::vector<Kind> kinds() {
  return {{"RNN", [](const auto& o) { return Ref<Recurrent>(new RNN(kIn, kHidden, o)); },
           [](int64_t in) { return Ref<RecurrentCell>(new RNNCell(in, kHidden)); }},
          {"LSTM", [](const auto& o) { return Ref<Recurrent>(new LSTM(kIn, kHidden, o)); },
           [](int64_t in) { return Ref<RecurrentCell>(new LSTMCell(in, kHidden)); }},
          {"GRU", [](const auto& o) { return Ref<Recurrent>(new GRU(kIn, kHidden, o)); },
           [](int64_t in) { return Ref<RecurrentCell>(new GRUCell(in, kHidden)); }}};
}

Tensor turn_of(const Tensor& x, int64_t t) {
  return ops::squeeze(ops::narrow(x, t, 0, Shape{1}), {0});
}

// A direction of a layer written out with a cell that holds its weights.
struct WrittenOut {
  std::vector<Tensor> outputs;
  Tensors states;
};

WrittenOut written_out(const Kind& kind, const Recurrent& layer, const std::string& suffix,
                       const Tensor& x, Tensors states, bool backward,
                       const std::vector<int32_t>& lengths) {
  const int64_t in = x.shape().back().value();
  const Ref<RecurrentCell> cell = kind.cell(in);
  for (const auto& [name, parameter] : cell->own_parameters()) {
    parameter->tensor().assign(layer.parameter(name + suffix)->tensor());
  }
  WrittenOut result;
  result.outputs.resize(kTurns);
  for (int64_t i = 0; i < kTurns; ++i) {
    const int64_t t = backward ? kTurns - 1 - i : i;
    Tensors inputs{turn_of(x, t)};
    inputs.insert(inputs.end(), states.begin(), states.end());
    const Tensors next = (*cell)(inputs);
    std::vector<float> goes_on;
    for (const int32_t length : lengths) goes_on.push_back(t < length ? 1.0f : 0.0f);
    const Tensor mask = ops::equal(Tensor::from_vector<float>({kBatch, 1}, goes_on), 1.0);
    for (size_t s = 0; s < states.size(); ++s) states[s] = ops::where(mask, next[s], states[s]);
    result.outputs[static_cast<size_t>(t)] = ops::expand_dims(ops::where(mask, next[0], 0.0), 0);
  }
  result.states = states;
  return result;
}

class RecurrentLayers : public testing::TestWithParam<size_t> {
 protected:
  Kind kind = kinds()[GetParam()];
};

TEST_P(RecurrentLayers, AgreeWithTheirCellsOverLayersDirectionsAndLengths) {
  set_seed(2);
  const auto layer = kind.layer({.num_layers = 2, .directions = Directions::Both});
  const Tensor x = ops::normal({kTurns, kBatch, kIn});
  const std::vector<int32_t> lengths = {kTurns, 2};
  Tensors initial;
  for (size_t s = 0; s < layer->state_count(); ++s) {
    initial.push_back(ops::normal({4, kBatch, kHidden}));
  }
  const Recurrent::Output output =
      layer->run(x, initial, Tensor::from_vector<int32_t>({kBatch}, lengths));

  Tensor sequence = x;
  std::vector<Tensors> last(layer->state_count());
  for (int64_t l = 0; l < 2; ++l) {
    Tensors halves;
    for (int64_t d = 0; d < 2; ++d) {
      Tensors states;
      for (const Tensor& all : initial) states.push_back(turn_of(all, 2 * l + d));
      const std::string suffix = fmt::format("_l{}{}", l, d == 1 ? "_reverse" : "");
      const WrittenOut half = written_out(kind, *layer, suffix, sequence, states, d == 1, lengths);
      halves.push_back(ops::concat(half.outputs, 0));
      for (size_t s = 0; s < half.states.size(); ++s) last[s].push_back(half.states[s]);
    }
    sequence = ops::concat(halves, 2);
  }
  EXPECT_THAT(elements(output.sequence), Pointwise(FloatNear(1e-5f), elements(sequence)));
  for (size_t s = 0; s < last.size(); ++s) {
    EXPECT_THAT(elements(output.states[s]),
                Pointwise(FloatNear(1e-5f), elements(ops::stack(last[s], 0))));
  }
}

TEST_P(RecurrentLayers, HaveTheGradientsOfTheirCells) {
  set_seed(3);
  const auto layer = kind.layer({});
  const Tensor x = ops::normal({kTurns, kBatch, kIn}),
               weights = ops::normal({kTurns, kBatch, kHidden});
  const std::vector<int32_t> lengths = {3, kTurns};
  Tensors states;
  for (size_t s = 0; s < layer->state_count(); ++s) {
    states.push_back(ops::zeros_of({DType::Float32, Layout::RowMajor, Shape{kBatch, kHidden}}));
  }
  const Tensor wrt[] = {x};
  const auto whole = grad(
      [&] {
        return ops::sum(
            layer->run(x, {}, Tensor::from_vector<int32_t>({kBatch}, lengths)).sequence * weights);
      },
      wrt);
  const auto steps = grad(
      [&] {
        const WrittenOut out = written_out(kind, *layer, "_l0", x, states, false, lengths);
        return ops::sum(ops::concat(out.outputs, 0) * weights);
      },
      wrt);
  EXPECT_THAT(elements(whole[0]), Pointwise(FloatNear(1e-5f), elements(steps[0])));
}

TEST_P(RecurrentLayers, TakeABatchFirstAndRowsWithoutTurns) {
  set_seed(4);
  const auto time_first = kind.layer({});
  const auto batch_first = kind.layer({.axes = AxisOrder::BatchFirst});
  for (const auto& [name, parameter] : batch_first->own_parameters()) {
    parameter->tensor().assign(time_first->parameter(name)->tensor());
  }
  const Tensor x = ops::normal({kTurns, kBatch, kIn});
  const Tensor lengths = Tensor::from_vector<int64_t>({kBatch}, {0, 4});
  const auto a = time_first->run(x, {}, lengths);
  const auto b = batch_first->run(ops::swapaxes(x, 0, 1), {}, lengths);
  EXPECT_EQ(elements(ops::swapaxes(b.sequence, 0, 1)), elements(a.sequence));
  EXPECT_EQ(elements(b.states[0]), elements(a.states[0]));
  EXPECT_EQ(elements(turn_of(ops::swapaxes(a.sequence, 0, 1), 0)),
            std::vector<float>(kTurns * kHidden, 0.0f));
}

TEST_P(RecurrentLayers, KeepTheirBitsWhereverTheWindowIsCut) {
  set_seed(5);
  const auto layer = kind.layer({.num_layers = 2, .dropout = 0.25});
  layer->set_train();
  const Tensor x = ops::normal({kTurns, kBatch, kIn});
  x.wait();
  const RandomState state = random_state();
  const auto run = [&](int64_t fixed) {
    set_random_state(state);
    const testing_support::ScopedWindowLimits limits({.fixed = fixed});
    std::vector<Tensor> wrt;
    for (const auto& parameter : layer->trainable_params()) wrt.push_back(parameter->tensor());
    std::vector<std::vector<float>> all;
    for (const Tensor& gradient :
         grad([&] { return ops::sum(ops::square(layer->run(x).sequence)); }, wrt)) {
      all.push_back(elements(gradient));
    }
    return all;
  };
  const auto whole = run(0);
  EXPECT_EQ(run(1), whole);
  EXPECT_EQ(run(7), whole);
}

TEST_P(RecurrentLayers, SayWhatIsWrong) {
  const auto layer = kind.layer({});
  const Tensor x = ops::normal({kTurns, kBatch, kIn});
  const std::string name = kind.name;
  EXPECT_THAT(message_of([&] { layer->run(ops::normal({kTurns, kIn})); }),
              HasSubstr("[" + name + "] x must have 3 axes, the last of size 3"));
  const Tensors wide(layer->state_count(), ops::normal({1, kBatch, 7}));
  EXPECT_THAT(message_of([&] { layer->run(x, wide); }),
              HasSubstr("[" + name + "] a state must have shape [1,2,4]"));
  EXPECT_THAT(message_of([&] { layer->run(x, {}, ops::normal({kBatch})); }),
              HasSubstr("the lengths must be int32 or int64 of shape [2]"));
  EXPECT_THAT(message_of([&] { kind.layer({.dropout = 1}); }),
              HasSubstr("dropout must be in [0, 1)"));
  EXPECT_THAT(message_of([&] { kind.layer({.num_layers = 0}); }),
              HasSubstr("num_layers must be at least 1"));
}

INSTANTIATE_TEST_SUITE_P(All, RecurrentLayers, testing::Range<size_t>(0, 3),
                         [](const auto& given) { return std::string(kinds()[given.param].name); });

}  // namespace
}  // namespace lamella::nn
