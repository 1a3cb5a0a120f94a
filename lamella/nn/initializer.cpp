// How first values are drawn.
#include "lamella/nn/initializer.h"

#include <cmath>
#include <cstring>
#include <map>

#include "lamella/base/parallel.h"
#include "lamella/base/philox.h"
#include "lamella/ir/call_site.h"
#include "lamella/ir/runtime_interface.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/random.h"

namespace lamella::nn {

namespace {

double distribution(double x) {
  return 0.5 * std::erfc(-x * 0.70710678118654752440);
}

double polynomial(std::initializer_list<double> coefficients, double x) {
  double sum = 0;
  for (double coefficient : coefficients) sum = sum * x + coefficient;
  return sum;
}

// The number whose normal distribution function is p: algorithm AS 241, PPND16.
double inverse_distribution(double p) {
  const double q = p - 0.5;
  if (std::fabs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q *
           polynomial({2509.0809287301226727, 33430.575583588128105, 67265.770927008700853,
                       45921.953931549871457, 13731.693765509461125, 1971.5909503065514427,
                       133.14166789178437745, 3.387132872796366608},
                      r) /
           polynomial({5226.495278852545925, 28729.085735721942674, 39307.89580009271061,
                       21213.794301586595867, 5394.1960214247511077, 687.1870074920579083,
                       42.313330701600911252, 1.0},
                      r);
  }
  double r = std::sqrt(-std::log(q < 0 ? p : 1 - p));
  double tail;
  if (r <= 5) {
    r -= 1.6;
    tail = polynomial({7.7454501427834140764e-4, .0227238449892691845833, .24178072517745061177,
                       1.27045825245236838258, 3.64784832476320460504, 5.7694972214606914055,
                       4.6303378461565452959, 1.42343711074968357734},
                      r) /
           polynomial({1.05075007164441684324e-9, 5.475938084995344946e-4, .0151986665636164571966,
                       .14810397642748007459, .68976733498510000455, 1.6763848301838038494,
                       2.05319162663775882187, 1.0},
                      r);
  } else {
    r -= 5;
    tail = polynomial({2.01033439929228813265e-7, 2.71155556874348757815e-5,
                       .0012426609473880784386, .026532189526576123093, .29656057182850489123,
                       1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772},
                      r) /
           polynomial({2.04426310338993978564e-15, 1.4215117583164458887e-7,
                       1.8463183175100546818e-5, 7.868691311456132591e-4, .0148753612908506148525,
                       .13692988092273580531, .59983220655588793769, 1.0},
                      r);
  }
  return q < 0 ? -tail : tail;
}

Tensor symmetric_uniform(std::string_view maker, const Shape& shape, double bound, DType dtype) {
  require_float(maker, dtype);
  return ops::uniform(shape, -bound, bound, dtype);
}

Tensor centred_normal(std::string_view maker, const Shape& shape, double sigma, DType dtype) {
  require_float(maker, dtype);
  return ops::normal(shape, 0.0, sigma, dtype);
}

double fan(const Shape& shape, const HeOptions& options) {
  const Fans fans = fans_of(shape);
  return options.mode == FanMode::In ? fans.in : fans.out;
}

double he_deviation(const Shape& shape, const HeOptions& options) {
  return gain_of(options.nonlinearity, options.negative_slope) / std::sqrt(fan(shape, options));
}

}  // namespace

void require_float(std::string_view maker, DType dtype) {
  if (is_float(dtype)) return;
  fail(ErrorKind::Type, "[{}] dtype must be float16, bfloat16, float32 or float64, got {}", maker,
       name(dtype));
}

Tensor filled(const TensorType& type, double number) {
  const int64_t count = element_count(type.shape).value();
  const auto size = static_cast<size_t>(size_of(type.dtype));
  lamella::Buffer buffer =
      runtime().allocate(count * size_of(type.dtype), {"initial value", current_call_site(), type});
  const uint64_t bits = scalar_bits_from(type.dtype, number);
  auto* bytes = static_cast<char*>(buffer.data());
  if (bits == 0) {
    if (count > 0) std::memset(bytes, 0, static_cast<size_t>(count) * size);
  } else {
    for (int64_t i = 0; i < count; ++i) {
      std::memcpy(bytes + static_cast<size_t>(i) * size, &bits, size);
    }
  }
  return Tensor(Value::from_buffer(type, std::move(buffer)));
}

Tensor Constant::operator()(const Shape& shape, DType dtype) const {
  return filled({dtype, Layout::RowMajor, shape}, value_);
}

Tensor Normal::operator()(const Shape& shape, DType dtype) const {
  require_float("Normal", dtype);
  return ops::normal(shape, mean_, sigma_, dtype);
}

Tensor Uniform::operator()(const Shape& shape, DType dtype) const {
  return symmetric_uniform("Uniform", shape, scale_, dtype);
}

TruncatedNormal::TruncatedNormal(double sigma, double mean, double low, double high)
    : sigma_(sigma), mean_(mean), low_(low), high_(high) {
  if (!(low < high)) {
    fail(ErrorKind::Value, "[TruncatedNormal] the lower bound {} must be below the upper {}", low,
         high);
  }
}

Tensor TruncatedNormal::operator()(const Shape& shape, DType dtype) const {
  require_float("TruncatedNormal", dtype);
  const int64_t count = element_count(shape).value();
  const RandomState draw = next_draw();
  const double first = distribution(low_), last = distribution(high_);
  std::vector<float> numbers(static_cast<size_t>(count));
  parallel_for(count, 4096, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const PhiloxCounter words = philox_at(draw.seed, draw.offset, static_cast<uint64_t>(i));
      // Halfway between two float64 uniforms of 48 bits, so that neither bound is reached.
      const double uniform = (static_cast<double>(words[0] & 0xFFFFFF) + 0.5) * 0x1p-24 +
                             static_cast<double>(words[1] & 0xFFFFFF) * 0x1p-48;
      const double normal = inverse_distribution(first + uniform * (last - first));
      numbers[static_cast<size_t>(i)] = static_cast<float>(mean_ + sigma_ * normal);
    }
  });
  const Tensor drawn = Tensor::from_vector<float>(shape, numbers);
  return dtype == DType::Float32 ? drawn : ops::cast(drawn, dtype);
}

Fans fans_of(const Shape& shape) {
  if (shape.size() < 2) {
    fail(ErrorKind::Value,
         "[initializer] a shape of fewer than two axes has no fans, got {}: use another "
         "initializer for it",
         text(shape));
  }
  double field = 1;
  for (size_t axis = 2; axis < shape.size(); ++axis) {
    field *= static_cast<double>(shape[axis].value());
  }
  return {.in = static_cast<double>(shape[1].value()) * field,
          .out = static_cast<double>(shape[0].value()) * field};
}

Tensor XavierUniform::operator()(const Shape& shape, DType dtype) const {
  const Fans fans = fans_of(shape);
  return symmetric_uniform("XavierUniform", shape, gain_ * std::sqrt(6 / (fans.in + fans.out)),
                           dtype);
}

Tensor XavierNormal::operator()(const Shape& shape, DType dtype) const {
  const Fans fans = fans_of(shape);
  return centred_normal("XavierNormal", shape, gain_ * std::sqrt(2 / (fans.in + fans.out)), dtype);
}

double gain_of(std::string_view nonlinearity, double negative_slope) {
  const bool is_linear =
      nonlinearity == "linear" || nonlinearity == "sigmoid" || nonlinearity.substr(0, 4) == "conv";
  if (is_linear) return 1;
  if (nonlinearity == "tanh") return 5.0 / 3;
  if (nonlinearity == "relu") return std::sqrt(2.0);
  if (nonlinearity == "leaky_relu") return std::sqrt(2 / (1 + negative_slope * negative_slope));
  fail(ErrorKind::Value,
       "[initializer] nonlinearity must be linear, sigmoid, tanh, relu, leaky_relu or a "
       "convolution, got '{}'",
       nonlinearity);
}

HeUniform::HeUniform(HeOptions options) : options_(std::move(options)) {
  gain_of(options_.nonlinearity);
}

Tensor HeUniform::operator()(const Shape& shape, DType dtype) const {
  return symmetric_uniform("HeUniform", shape, std::sqrt(3.0) * he_deviation(shape, options_),
                           dtype);
}

HeNormal::HeNormal(HeOptions options) : options_(std::move(options)) {
  gain_of(options_.nonlinearity);
}

Tensor HeNormal::operator()(const Shape& shape, DType dtype) const {
  return centred_normal("HeNormal", shape, he_deviation(shape, options_), dtype);
}

Initial::Initial(const char* name) {
  static const std::map<std::string, Ref<Initializer> (*)(), std::less<>> kByName = {
      {"zeros", [] { return Ref<Initializer>(new Zero); }},
      {"zero", [] { return Ref<Initializer>(new Zero); }},
      {"ones", [] { return Ref<Initializer>(new One); }},
      {"one", [] { return Ref<Initializer>(new One); }},
      {"normal", [] { return Ref<Initializer>(new Normal); }},
      {"uniform", [] { return Ref<Initializer>(new Uniform); }},
      {"truncatednormal", [] { return Ref<Initializer>(new TruncatedNormal); }},
      {"xavieruniform", [] { return Ref<Initializer>(new XavierUniform); }},
      {"xaviernormal", [] { return Ref<Initializer>(new XavierNormal); }},
      {"heuniform", [] { return Ref<Initializer>(new HeUniform); }},
      {"henormal", [] { return Ref<Initializer>(new HeNormal); }},
  };
  std::string plain;
  for (const char* letter = name; *letter != 0; ++letter) {
    if (*letter != '_') plain += static_cast<char>(std::tolower(*letter));
  }
  const auto found = kByName.find(plain);
  if (found == kByName.end()) {
    fail(ErrorKind::Value,
         "[initializer] there is no initializer '{}'; there are zeros, ones, normal, uniform, "
         "truncatednormal, xavier_uniform, xavier_normal, he_uniform and he_normal",
         name);
  }
  how_ = found->second();
}

Tensor Initial::make(const Shape& shape, DType dtype, std::string_view what) const {
  if (const auto* initializer = std::get_if<Ref<Initializer>>(&how_)) {
    return (**initializer)(shape, dtype);
  }
  if (const auto* value = std::get_if<Tensor>(&how_)) {
    if (value->shape() != shape) {
      fail(ErrorKind::Value, "[initializer] {} needs shape {}, the tensor given has {}", what,
           text(shape), text(value->shape()));
    }
    return value->dtype() == dtype ? *value : ops::cast(*value, dtype);
  }
  if (const auto* number = std::get_if<double>(&how_)) {
    return filled({dtype, Layout::RowMajor, shape}, *number);
  }
  fail(ErrorKind::Value, "[initializer] {} has no initial value", what);
}

}  // namespace lamella::nn
