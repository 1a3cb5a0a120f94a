// Recurrent layers as loops over time.
#include "lamella/nn/recurrent.h"

#include <cmath>

#include "lamella/ops/functions.h"
#include "lamella/ops/random.h"
#include "lamella/ops/tensor_operators.h"
#include "lamella/transform/control_flow.h"

namespace lamella::nn {

namespace {

// ---- One turn of each kind ----

Tensors elman_turn(const Tensor& from_input, const Tensor& from_hidden, Nonlinearity nonlinearity) {
  const Tensor sum = from_input + from_hidden;
  return {nonlinearity == Nonlinearity::Tanh ? ops::tanh(sum) : ops::relu(sum)};
}

Tensors lstm_turn(const Tensor& from_input, const Tensor& from_hidden, const Tensors& states) {
  const Shape part{states[0].shape().back()};
  const std::vector<Tensor> gates = ops::split(from_input + from_hidden, part, 1);
  const Tensor c =
      ops::sigmoid(gates[1]) * states[1] + ops::sigmoid(gates[0]) * ops::tanh(gates[2]);
  return {ops::sigmoid(gates[3]) * ops::tanh(c), c};
}

Tensors gru_turn(const Tensor& from_input, const Tensor& from_hidden, const Tensors& states) {
  const Shape part{states[0].shape().back()};
  const std::vector<Tensor> x = ops::split(from_input, part, 1),
                            h = ops::split(from_hidden, part, 1);
  const Tensor fresh = ops::tanh(x[2] + ops::sigmoid(x[0] + h[0]) * h[2]);
  return {fresh + ops::sigmoid(x[1] + h[1]) * (states[0] - fresh)};
}

// ---- Parameters ----

// Weights and biases of one direction of one layer, in MindSpore's order and names.
void add_parameters(Cell& cell, const std::string& suffix, int64_t in, int64_t hidden,
                    int64_t gates, Bias bias, DType dtype) {
  const double limit = 1 / std::sqrt(static_cast<double>(hidden));
  const auto add = [&](const char* kind, const Shape& shape) {
    const std::string name = kind + suffix;
    const Initial initial(make_ref<Uniform>(limit));
    cell.add_parameter(name, make_ref<Parameter>(initial.make(shape, dtype, name)));
  };
  add("weight_ih", {gates * hidden, in});
  add("weight_hh", {gates * hidden, hidden});
  if (bias == Bias::None) return;
  add("bias_ih", {gates * hidden});
  add("bias_hh", {gates * hidden});
}

void check_input(std::string_view layer, const Tensor& x, int rank, int64_t size, DType weights) {
  if (x.rank() != rank || !x.shape().back().is(size)) {
    fail(ErrorKind::Value, "[{}] x must have {} axes, the last of size {}, got {}", layer, rank,
         size, text(x.type()));
  }
  if (x.dtype() != weights) {
    fail(ErrorKind::Type, "[{}] x must have the dtype of the weights, {}, got {}", layer,
         name(weights), text(x.type()));
  }
}

void check_state(std::string_view layer, const Tensor& state, const Shape& shape) {
  if (state.shape() != shape) {
    fail(ErrorKind::Value, "[{}] a state must have shape {}, got {}", layer, text(shape),
         text(state.type()));
  }
}

Tensor zeros(const Shape& shape, DType dtype) {
  return ops::zeros_of({dtype, Layout::RowMajor, shape});
}

Tensor layer_of(const Tensor& states, int64_t index) {
  return ops::squeeze(ops::narrow(states, index, 0, Shape{1}), {0});
}

}  // namespace

// ---- Layers ----

Recurrent::Recurrent(std::string_view kind, int64_t input_size, int64_t hidden_size,
                     const RecurrentOptions& options, int64_t gates, size_t state_count)
    : input_size_(input_size),
      hidden_size_(hidden_size),
      options_(options),
      gates_(gates),
      state_count_(state_count) {
  require_positive(kind, "input_size", input_size);
  require_positive(kind, "hidden_size", hidden_size);
  require_float(kind, options.dtype);
  require_positive(kind, "num_layers", options.num_layers);
  if (!(options.dropout >= 0 && options.dropout < 1)) {
    fail(ErrorKind::Value, "[{}] dropout must be in [0, 1), got {}", kind, options.dropout);
  }
  const int64_t directions = options.directions == Directions::Both ? 2 : 1;
  for (int64_t layer = 0; layer < options.num_layers; ++layer) {
    const int64_t in = layer == 0 ? input_size : hidden_size * directions;
    for (int64_t direction = 0; direction < directions; ++direction) {
      add_parameters(*this, parameter_suffix(layer, direction), in, hidden_size, gates,
                     options.bias, options.dtype);
    }
  }
}

std::string Recurrent::parameter_suffix(int64_t layer, int64_t direction) const {
  return fmt::format("_l{}{}", layer, direction == 1 ? "_reverse" : "");
}

std::string Recurrent::description() const {
  return fmt::format(
      "input_size={}, hidden_size={}, num_layers={}, has_bias={}, batch_first={}, dropout={}, "
      "bidirectional={}",
      input_size_, hidden_size_, options_.num_layers,
      options_.bias == Bias::Added ? "True" : "False",
      options_.axes == AxisOrder::BatchFirst ? "True" : "False", options_.dropout,
      options_.directions == Directions::Both ? "True" : "False");
}

Tensors Recurrent::initial_states(const Sequence& sequence, const Tensors& given) const {
  const int64_t directions = options_.directions == Directions::Both ? 2 : 1;
  const Shape shape{options_.num_layers * directions, sequence.batch, hidden_size_};
  if (!given.empty() && given.size() != state_count_) {
    fail(ErrorKind::Value, "[{}] takes {} initial states, got {}", class_name(), state_count_,
         given.size());
  }
  Tensors states;
  for (size_t i = 0; i < state_count_; ++i) {
    const bool is_given = i < given.size() && given[i].defined();
    states.push_back(is_given ? given[i] : zeros(shape, sequence.x.dtype()));
    check_state(class_name(), states.back(), shape);
    if (is_float(states.back().dtype()) && states.back().dtype() != sequence.x.dtype()) {
      states.back() = ops::cast(states.back(), sequence.x.dtype());
    }
  }
  return states;
}

Recurrent::Output Recurrent::run_direction(const Sequence& sequence, const std::string& suffix,
                                           const Tensors& states, bool backward) const {
  const Tensor from_inputs =
      ops::dense(sequence.x, use("weight_ih" + suffix), use_if_there("bias_ih" + suffix));
  const Tensor weight = use("weight_hh" + suffix);
  const Operand bias = use_if_there("bias_hh" + suffix);
  const auto from_hidden = [&](const Tensor& h) {
    // Transposed once, for all turns.
    const Tensor product = ops::matrix_product(h, ops::transpose(weight));
    return bias.given() ? product + bias.tensor() : product;
  };
  const auto body = [&](const Tensors& carried, const Tensors& slices) {
    Tensors next = turn(slices[0], from_hidden(carried[0]), carried);
    Tensor output = next[0];
    if (sequence.mask.defined()) {
      for (size_t i = 0; i < next.size(); ++i) next[i] = ops::where(slices[1], next[i], carried[i]);
      output = ops::where(slices[1], output, 0.0);
    }
    return ScanResult{std::move(next), {output}};
  };
  Tensors sequences{from_inputs};
  if (sequence.mask.defined()) sequences.push_back(sequence.mask);
  const ScanResult result = scan(
      body, states, sequences,
      {.length = sequence.length, .direction = backward ? Direction::Reverse : Direction::Forward});
  return {.sequence = result.stacked[0], .states = result.carried};
}

Recurrent::Output Recurrent::run(const Tensor& x, const Tensors& given, const Tensor& lengths) {
  check_input(class_name(), x, 3, input_size_, use("weight_hh_l0").dtype());
  const bool batch_first = options_.axes == AxisOrder::BatchFirst;
  Sequence sequence{
      .x = batch_first ? ops::swapaxes(x, 0, 1) : x, .mask = {}, .length = 0, .batch = 0};
  sequence.length = sequence.x.shape()[0].value();
  sequence.batch = sequence.x.shape()[1].value();
  if (lengths.defined()) {
    const bool whole = lengths.dtype() == DType::Int32 || lengths.dtype() == DType::Int64;
    if (!whole || lengths.shape() != Shape{sequence.batch}) {
      fail(whole ? ErrorKind::Value : ErrorKind::Type,
           "[{}] the lengths must be int32 or int64 of shape [{}], got {}", class_name(),
           sequence.batch, text(lengths.type()));
    }
    const Tensor turns = ops::element_numbers({sequence.length, 1, 1});
    const Tensor row_lengths =
        ops::cast(ops::expand_dims(ops::expand_dims(lengths, 0), 2), DType::Int64);
    sequence.mask = ops::less(turns, row_lengths);
  }
  const Tensors initial = initial_states(sequence, given);
  const int64_t directions = options_.directions == Directions::Both ? 2 : 1;
  std::vector<Tensors> last(state_count_);
  for (int64_t layer = 0; layer < options_.num_layers; ++layer) {
    if (layer > 0 && options_.dropout > 0 && training()) {
      sequence.x = ops::dropout(sequence.x, options_.dropout);
    }
    Tensors outputs;
    for (int64_t direction = 0; direction < directions; ++direction) {
      Tensors states;
      for (const Tensor& all : initial)
        states.push_back(layer_of(all, layer * directions + direction));
      const Output output =
          run_direction(sequence, parameter_suffix(layer, direction), states, direction == 1);
      outputs.push_back(output.sequence);
      for (size_t i = 0; i < state_count_; ++i) last[i].push_back(output.states[i]);
    }
    sequence.x = outputs.size() == 1 ? outputs[0] : ops::concat(outputs, 2);
  }
  Output result{.sequence = batch_first ? ops::swapaxes(sequence.x, 0, 1) : sequence.x,
                .states = {}};
  for (const Tensors& states : last) result.states.push_back(ops::stack(states, 0));
  return result;
}

Tensors Recurrent::construct(const Tensors& inputs) {
  const bool fits =
      inputs.size() == 1 || inputs.size() == 1 + state_count_ || inputs.size() == 2 + state_count_;
  if (!fits) {
    fail(ErrorKind::Value, "[{}] takes x, its {} states and the lengths, got {} inputs",
         class_name(), state_count_, inputs.size());
  }
  const auto states_end =
      inputs.begin() + static_cast<std::ptrdiff_t>(std::min(inputs.size(), 1 + state_count_));
  const Output output = run(inputs[0], {inputs.begin() + 1, states_end},
                            inputs.size() == 2 + state_count_ ? inputs.back() : Tensor());
  Tensors results{output.sequence};
  results.insert(results.end(), output.states.begin(), output.states.end());
  return results;
}

RNN::RNN(int64_t input_size, int64_t hidden_size, const RecurrentOptions& options,
         Nonlinearity nonlinearity)
    : Recurrent("RNN", input_size, hidden_size, options, 1, 1), nonlinearity_(nonlinearity) {}
Tensors RNN::turn(const Tensor& from_input, const Tensor& from_hidden, const Tensors&) const {
  return elman_turn(from_input, from_hidden, nonlinearity_);
}

LSTM::LSTM(int64_t input_size, int64_t hidden_size, const RecurrentOptions& options)
    : Recurrent("LSTM", input_size, hidden_size, options, 4, 2) {}
Tensors LSTM::turn(const Tensor& from_input, const Tensor& from_hidden,
                   const Tensors& states) const {
  return lstm_turn(from_input, from_hidden, states);
}

GRU::GRU(int64_t input_size, int64_t hidden_size, const RecurrentOptions& options)
    : Recurrent("GRU", input_size, hidden_size, options, 3, 1) {}
Tensors GRU::turn(const Tensor& from_input, const Tensor& from_hidden,
                  const Tensors& states) const {
  return gru_turn(from_input, from_hidden, states);
}

// ---- Single steps ----

RecurrentCell::RecurrentCell(std::string_view kind, int64_t input_size, int64_t hidden_size,
                             const RecurrentCellOptions& options, int64_t gates, size_t state_count)
    : input_size_(input_size), hidden_size_(hidden_size), state_count_(state_count) {
  require_positive(kind, "input_size", input_size);
  require_positive(kind, "hidden_size", hidden_size);
  require_float(kind, options.dtype);
  add_parameters(*this, "", input_size, hidden_size, gates, options.bias, options.dtype);
}

std::string RecurrentCell::description() const {
  return fmt::format("input_size={}, hidden_size={}, has_bias={}", input_size_, hidden_size_,
                     parameter("bias_ih") ? "True" : "False");
}

Tensors RecurrentCell::construct(const Tensors& inputs) {
  if (inputs.size() != 1 && inputs.size() != 1 + state_count_) {
    fail(ErrorKind::Value, "[{}] takes x and its {} states, got {} inputs", class_name(),
         state_count_, inputs.size());
  }
  const Tensor& x = inputs[0];
  check_input(class_name(), x, 2, input_size_, use("weight_hh").dtype());
  const Shape shape{x.shape()[0], hidden_size_};
  Tensors states(inputs.begin() + 1, inputs.end());
  for (size_t i = 0; i < state_count_; ++i) {
    if (i == states.size()) states.push_back(zeros(shape, x.dtype()));
    check_state(class_name(), states[i], shape);
  }
  return turn(ops::dense(x, use("weight_ih"), use_if_there("bias_ih")),
              ops::dense(states[0], use("weight_hh"), use_if_there("bias_hh")), states);
}

RNNCell::RNNCell(int64_t input_size, int64_t hidden_size, const RecurrentCellOptions& options,
                 Nonlinearity nonlinearity)
    : RecurrentCell("RNNCell", input_size, hidden_size, options, 1, 1),
      nonlinearity_(nonlinearity) {}
Tensors RNNCell::turn(const Tensor& from_input, const Tensor& from_hidden, const Tensors&) const {
  return elman_turn(from_input, from_hidden, nonlinearity_);
}

LSTMCell::LSTMCell(int64_t input_size, int64_t hidden_size, const RecurrentCellOptions& options)
    : RecurrentCell("LSTMCell", input_size, hidden_size, options, 4, 2) {}
Tensors LSTMCell::turn(const Tensor& from_input, const Tensor& from_hidden,
                       const Tensors& states) const {
  return lstm_turn(from_input, from_hidden, states);
}

GRUCell::GRUCell(int64_t input_size, int64_t hidden_size, const RecurrentCellOptions& options)
    : RecurrentCell("GRUCell", input_size, hidden_size, options, 3, 1) {}
Tensors GRUCell::turn(const Tensor& from_input, const Tensor& from_hidden,
                      const Tensors& states) const {
  return gru_turn(from_input, from_hidden, states);
}

}  // namespace lamella::nn
