// Recurrent layers: Elman networks, LSTM and GRU over whole sequences, and their single steps.
//
// A layer is one loop over time: the products with the inputs of all turns are made at once before
// it, and a turn is one product with the hidden state and one fused kernel.
#pragma once

#include "lamella/nn/dense.h"

namespace lamella::nn {

enum class AxisOrder : uint8_t { TimeFirst, BatchFirst };
enum class Directions : uint8_t { Forward, Both };
enum class Nonlinearity : uint8_t { Tanh, Relu };

struct RecurrentOptions {
  int64_t num_layers = 1;
  Bias bias = Bias::Added;
  AxisOrder axes = AxisOrder::TimeFirst;
  double dropout = 0;  // of every layer's outputs but the last one's, in training
  Directions directions = Directions::Forward;
  DType dtype = DType::Float32;
};

// What the recurrent layers share. With D directions (1 or 2), L layers, batch B, T turns:
//
// inputs   x [T, B, input_size] ([B, T, input_size] if batch first); states [L D, B, hidden_size],
//          layer by layer, forward before backward, zeros if left out (undefined); the number of
//          turns of each row, int32 or int64 [B], T if left out
// outputs  [T, B, D hidden_size], 0 behind a row's last turn; the states after each row's last turn
//
// Parameters of layer l: weight_ih_l [G hidden_size, in], weight_hh_l [G hidden_size, hidden_size],
// bias_ih_l, bias_hh_l [G hidden_size] for G gates one below another; the backward direction's end
// in "_reverse". All begin uniform within 1 / sqrt(hidden_size).
// Throws Value for sizes below 1, dropout outside [0, 1), and inputs that do not fit (Type:
// dtypes).
class LAMELLA_API Recurrent : public Layer {
 public:
  PrecisionNeed precision_need() const override { return PrecisionNeed::Gains; }
  std::string description() const override;

  struct Output {
    Tensor sequence;
    Tensors states;
  };
  Output run(const Tensor& x, const Tensors& states = {}, const Tensor& lengths = {});
  // Inputs: x, then the states, then the lengths. Outputs: the sequence, then the states.
  using Cell::construct;
  Tensors construct(const Tensors& inputs) override;

  int64_t input_size() const { return input_size_; }
  int64_t hidden_size() const { return hidden_size_; }
  const RecurrentOptions& options() const { return options_; }
  size_t state_count() const { return state_count_; }

 protected:
  Recurrent(std::string_view kind, int64_t input_size, int64_t hidden_size,
            const RecurrentOptions& options, int64_t gates, size_t state_count);

  // The states after a turn, by the products with the input and with the hidden state (states[0]),
  // each [B, G hidden_size]. states[0] of the result is the turn's output.
  virtual Tensors turn(const Tensor& from_input, const Tensor& from_hidden,
                       const Tensors& states) const = 0;

 private:
  struct Sequence {
    Tensor x, mask;  // [T, B, in]; bool [T, B, 1], undefined where all rows are of one length
    int64_t length, batch;
  };
  Tensors initial_states(const Sequence& sequence, const Tensors& given) const;
  Output run_direction(const Sequence& sequence, const std::string& suffix, const Tensors& states,
                       bool backward) const;
  std::string parameter_suffix(int64_t layer, int64_t direction) const;

  int64_t input_size_, hidden_size_;
  RecurrentOptions options_;
  int64_t gates_;
  size_t state_count_;
};

// h' = tanh(x W_ih^T + b_ih + h W_hh^T + b_hh), or relu of it (Elman, 1990).
class LAMELLA_API RNN : public Recurrent {
 public:
  RNN(int64_t input_size, int64_t hidden_size, const RecurrentOptions& options = {},
      Nonlinearity nonlinearity = Nonlinearity::Tanh);
  std::string class_name() const override { return "RNN"; }

 protected:
  Tensors turn(const Tensor& from_input, const Tensor& from_hidden,
               const Tensors& states) const override;

 private:
  Nonlinearity nonlinearity_;
};

// Gates i, f, g, o; states h, c (Hochreiter and Schmidhuber, 1997; Gers et al., 2000):
// c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = sigmoid(o) tanh(c').
class LAMELLA_API LSTM : public Recurrent {
 public:
  LSTM(int64_t input_size, int64_t hidden_size, const RecurrentOptions& options = {});
  std::string class_name() const override { return "LSTM"; }

 protected:
  Tensors turn(const Tensor& from_input, const Tensor& from_hidden,
               const Tensors& states) const override;
};

// Gates r, z, n (Cho et al., 2014, with the reset behind the product):
// n = tanh(x_n + sigmoid(r) h_n), h' = n + sigmoid(z) (h - n).
class LAMELLA_API GRU : public Recurrent {
 public:
  GRU(int64_t input_size, int64_t hidden_size, const RecurrentOptions& options = {});
  std::string class_name() const override { return "GRU"; }

 protected:
  Tensors turn(const Tensor& from_input, const Tensor& from_hidden,
               const Tensors& states) const override;
};

struct RecurrentCellOptions {
  Bias bias = Bias::Added;
  DType dtype = DType::Float32;
};

// One step of a recurrent layer. Inputs: x [B, input_size], then the states [B, hidden_size];
// outputs: the states after the step. Parameters weight_ih, weight_hh, bias_ih, bias_hh as above.
class LAMELLA_API RecurrentCell : public Layer {
 public:
  PrecisionNeed precision_need() const override { return PrecisionNeed::Gains; }
  std::string description() const override;
  using Cell::construct;
  Tensors construct(const Tensors& inputs) override;

 protected:
  RecurrentCell(std::string_view kind, int64_t input_size, int64_t hidden_size,
                const RecurrentCellOptions& options, int64_t gates, size_t state_count);
  virtual Tensors turn(const Tensor& from_input, const Tensor& from_hidden,
                       const Tensors& states) const = 0;

 private:
  int64_t input_size_, hidden_size_;
  size_t state_count_;
};

class LAMELLA_API RNNCell : public RecurrentCell {
 public:
  RNNCell(int64_t input_size, int64_t hidden_size, const RecurrentCellOptions& options = {},
          Nonlinearity nonlinearity = Nonlinearity::Tanh);
  std::string class_name() const override { return "RNNCell"; }

 protected:
  Tensors turn(const Tensor& from_input, const Tensor& from_hidden,
               const Tensors& states) const override;

 private:
  Nonlinearity nonlinearity_;
};

class LAMELLA_API LSTMCell : public RecurrentCell {
 public:
  LSTMCell(int64_t input_size, int64_t hidden_size, const RecurrentCellOptions& options = {});
  std::string class_name() const override { return "LSTMCell"; }

 protected:
  Tensors turn(const Tensor& from_input, const Tensor& from_hidden,
               const Tensors& states) const override;
};

class LAMELLA_API GRUCell : public RecurrentCell {
 public:
  GRUCell(int64_t input_size, int64_t hidden_size, const RecurrentCellOptions& options = {});
  std::string class_name() const override { return "GRUCell"; }

 protected:
  Tensors turn(const Tensor& from_input, const Tensor& from_hidden,
               const Tensors& states) const override;
};

}  // namespace lamella::nn
