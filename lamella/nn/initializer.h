// The values parameters begin with. Draws come from the process's generator (lamella/ops/random.h),
// so that the same seed gives the same bits everywhere.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "lamella/base/object.h"
#include "lamella/ir/tensor.h"

namespace lamella::nn {

class LAMELLA_API Initializer : public Object {
 public:
  // A tensor of that shape and float dtype, with data of its own.
  virtual Tensor operator()(const Shape& shape, DType dtype) const = 0;
};

class LAMELLA_API Constant : public Initializer {
 public:
  explicit Constant(double value) : value_(value) {}
  Tensor operator()(const Shape& shape, DType dtype) const override;

 private:
  double value_;
};

class LAMELLA_API Zero : public Constant {
 public:
  Zero() : Constant(0) {}
};

class LAMELLA_API One : public Constant {
 public:
  One() : Constant(1) {}
};

// Normal numbers of that mean and standard deviation.
class LAMELLA_API Normal : public Initializer {
 public:
  explicit Normal(double sigma = 0.01, double mean = 0) : sigma_(sigma), mean_(mean) {}
  Tensor operator()(const Shape& shape, DType dtype) const override;

 private:
  double sigma_, mean_;
};

// Uniform numbers in [-scale, scale).
class LAMELLA_API Uniform : public Initializer {
 public:
  explicit Uniform(double scale = 0.07) : scale_(scale) {}
  Tensor operator()(const Shape& shape, DType dtype) const override;

 private:
  double scale_;
};

// Normal numbers conditioned on lying within [mean + low sigma, mean + high sigma], by inversion
// of the distribution function (Wichura, Algorithm AS 241, 1988).
class LAMELLA_API TruncatedNormal : public Initializer {
 public:
  explicit TruncatedNormal(double sigma = 0.01, double mean = 0, double low = -2, double high = 2);
  Tensor operator()(const Shape& shape, DType dtype) const override;

 private:
  double sigma_, mean_, low_, high_;
};

// The number of inputs, or of outputs, of one element of a weight: the sizes of axis 1 and axis 0,
// times the receptive field. Throws Value for shapes of fewer than two axes.
struct Fans {
  double in = 0;
  double out = 0;
};
LAMELLA_API Fans fans_of(const Shape& shape);

// Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks",
// 2010: variance gain^2 2 / (fan_in + fan_out).
class LAMELLA_API XavierUniform : public Initializer {
 public:
  explicit XavierUniform(double gain = 1) : gain_(gain) {}
  Tensor operator()(const Shape& shape, DType dtype) const override;

 private:
  double gain_;
};

class LAMELLA_API XavierNormal : public Initializer {
 public:
  explicit XavierNormal(double gain = 1) : gain_(gain) {}
  Tensor operator()(const Shape& shape, DType dtype) const override;

 private:
  double gain_;
};

enum class FanMode : uint8_t { In, Out };

// What a nonlinearity does to the deviation of its input, as the usual factor against it: 1 for
// "linear", "sigmoid" and convolutions, 5/3 for "tanh", sqrt(2) for "relu", sqrt(2 / (1 + slope^2))
// for "leaky_relu". Throws Value naming those for another.
LAMELLA_API double gain_of(std::string_view nonlinearity, double negative_slope = 0);

struct HeOptions {
  double negative_slope = 0;
  FanMode mode = FanMode::In;
  std::string nonlinearity = "leaky_relu";
};

// He et al., "Delving deep into rectifiers", 2015: standard deviation gain / sqrt(fan).
class LAMELLA_API HeUniform : public Initializer {
 public:
  explicit HeUniform(HeOptions options = {});
  Tensor operator()(const Shape& shape, DType dtype) const override;

 private:
  HeOptions options_;
};

class LAMELLA_API HeNormal : public Initializer {
 public:
  explicit HeNormal(HeOptions options = {});
  Tensor operator()(const Shape& shape, DType dtype) const override;

 private:
  HeOptions options_;
};

// What a layer accepts for the value a parameter begins with: an initializer or its name ("zeros",
// "ones", "normal", "uniform", "truncatednormal", "xavier_uniform", "xavier_normal", "he_uniform",
// "he_normal"), a number, a tensor of the parameter's shape, or nothing for the layer's default.
class LAMELLA_API Initial {
 public:
  Initial() = default;
  Initial(Ref<Initializer> initializer) : how_(std::move(initializer)) {}  // NOLINT: implicit
  template <typename T>
    requires std::is_base_of_v<Initializer, T>
  Initial(Ref<T> initializer) : how_(Ref<Initializer>(std::move(initializer))) {}  // NOLINT
  Initial(Tensor value) : how_(std::move(value)) {}                                // NOLINT
  Initial(double number) : how_(number) {}                                         // NOLINT
  Initial(const char* name);                                                       // NOLINT
  Initial(const std::string& name) : Initial(name.c_str()) {}                      // NOLINT

  bool given() const { return !std::holds_alternative<std::monostate>(how_); }
  // Throws Value if a tensor of another shape was given, naming `what`.
  Tensor make(const Shape& shape, DType dtype, std::string_view what) const;
  // This if it was given, else the other.
  const Initial& or_else(const Initial& other) const { return given() ? *this : other; }

 private:
  std::variant<std::monostate, Ref<Initializer>, Tensor, double> how_;
};

// Throws Type, naming the layer or initializer, for a dtype that is not a float's.
LAMELLA_API void require_float(std::string_view maker, DType dtype);

// A tensor of one number throughout, with data of its own.
LAMELLA_API Tensor filled(const TensorType& type, double number);

}  // namespace lamella::nn
