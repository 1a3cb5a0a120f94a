// The benchmark's cases in Lamella's C++ interface: dynamic mode, or some of them with --jit. The
// protocol is in bench/README.md.
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "lamella/base/parallel.h"
#include "lamella/device/pool.h"
#include "lamella/ir/window.h"
#include "lamella/nn/activation.h"
#include "lamella/nn/attention.h"
#include "lamella/nn/container.h"
#include "lamella/nn/convolution.h"
#include "lamella/nn/dense.h"
#include "lamella/nn/jit.h"
#include "lamella/nn/loss.h"
#include "lamella/nn/pooling.h"
#include "lamella/nn/recurrent.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/random.h"
#include "lamella/ops/tensor_operators.h"
#include "lamella/optim/adam.h"
#include "lamella/runtime/counters.h"
#include "lamella/train/step.h"
#include "lamella/transform/grad.h"

namespace {

using namespace lamella;

using Call = std::function<void()>;
using Case = std::function<Call()>;

constexpr double kMeasurementSeconds = 0.1;

Tensor randn(const Shape& shape) {
  const Tensor tensor = ops::normal(shape);
  tensor.wait();
  return tensor;
}

Tensor random_classes(int64_t count, int64_t classes) {
  const Tensor labels = ops::integers({count}, int64_t{0}, classes, DType::Int32);
  labels.wait();
  return labels;
}

void run_pending() {
  Window::of_thread().flush();
}

Call add_one_element() {
  const Tensor a = randn({1}), b = randn({1});
  return [=] { (void)(a + b); };
}

Tensor ten_operations(Tensor x, const Tensor& y) {
  for (int i = 0; i < 5; ++i) x = ops::tanh(x * y);
  return x;
}

std::vector<Tensor> result_of_chain(const std::vector<Tensor>& given) {
  return {ten_operations(given[0], given[1])};
}

std::vector<Tensor> gradient_of_chain(const std::vector<Tensor>& given) {
  return grad([&] { return ops::sum(ten_operations(given[0], given[1])); },
              std::span(given).first(1));
}

// The function's first result on 64 numbers each, read.
Call read_result(const nn::Jit::Function& function) {
  const std::vector<Tensor> given = {randn({64}), randn({64})};
  return [=] { (void)function(given)[0].data(); };
}

Call read_result_with_jit(const nn::Jit::Function& function) {
  const auto jit = std::make_shared<nn::Jit>(function);
  return read_result([=](const std::vector<Tensor>& given) { return (*jit)(given); });
}

// Value and gradient of `function` at `wrt` under a random cotangent, both computed.
Call forward_and_backward(std::function<Tensor(const std::vector<Tensor>&)> function,
                          std::vector<Tensor> wrt, const Tensor& cotangent) {
  return [=] {
    const ValueAndGradients result =
        value_and_grad([&] { return std::vector{function(wrt)}; }, wrt, cotangent);
    run_pending();
  };
}

Call gelu(int64_t count) {
  return forward_and_backward([](const std::vector<Tensor>& x) { return ops::gelu(x[0]); },
                              {randn({count})}, randn({count}));
}

Call softmax(int64_t rows) {
  return forward_and_backward([](const std::vector<Tensor>& x) { return ops::softmax(x[0]); },
                              {randn({rows, 1024})}, randn({rows, 1024}));
}

Call layer_norm(int64_t rows) {
  return forward_and_backward(
      [](const std::vector<Tensor>& x) { return ops::layer_norm(x[0], x[1], x[2]); },
      {randn({rows, 1024}), randn({1024}), randn({1024})}, randn({rows, 1024}));
}

Call cross_entropy(int64_t rows) {
  const Tensor labels = random_classes(rows, 1024);
  return forward_and_backward(
      [=](const std::vector<Tensor>& x) { return ops::cross_entropy(x[0], labels); },
      {randn({rows, 1024})}, Tensor());
}

// Elementwise operations that cost nothing beside moving their operand and result.
Call chain(int64_t count) {
  const Tensor x = randn({count}), scale = randn({1}), shift = randn({1});
  return [=] {
    const Tensor y = ops::relu(x * scale + shift);  // read later: what is in between need not exist
    y.wait();
  };
}

Call apply(Tensor (*function)(const Operand&), int64_t count) {
  const Tensor x = randn({count});
  return [=] { function(x).wait(); };
}

// A copy that moves `bytes`, half of them read and half written, by all threads.
Call copy(int64_t bytes) {
  const auto half = static_cast<size_t>(bytes / 2);
  const auto from = std::make_shared<std::vector<std::byte>>(half, std::byte{1});
  const auto to = std::make_shared<std::vector<std::byte>>(half);
  return [=] {
    // One call a thread: memcpy goes past the caches only if it is given enough at a time.
    const auto threads = static_cast<size_t>(thread_count());
    parallel_for(thread_count(), 1, [&](int64_t begin, int64_t end) {
      const size_t first = half * static_cast<size_t>(begin) / threads;
      const size_t last = half * static_cast<size_t>(end) / threads;
      std::memcpy(to->data() + first, from->data() + first, last - first);
    });
  };
}

Call matmul(int64_t rows, int64_t inner, int64_t columns) {
  const Tensor a = randn({rows, inner}), b = randn({inner, columns});
  return [=] { ops::matmul(a, b).wait(); };
}

Call adam(const std::vector<Shape>& shapes) {
  nn::Parameters parameters;
  std::vector<Tensor> gradients;
  for (size_t i = 0; i < shapes.size(); ++i) {
    parameters.push_back(make_ref<nn::Parameter>(randn(shapes[i]), fmt::format("p{}", i)));
    gradients.push_back(randn(shapes[i]));
  }
  const auto optimizer =
      make_ref<optim::Adam>(parameters, optim::AdamOptions{.learning_rate = 1e-4});
  return [=] {
    (*optimizer)(gradients);
    run_pending();
  };
}

// Forward, loss, backward and update; its call reads the loss.
struct TrainingStep {
  Ref<train::TrainOneStepCell> cell;
  std::vector<Tensor> batch;

  Call call() const {
    return [*this] { (void)(*cell)(batch)[0].item(); };
  }
  Call call_with_jit() const {
    const auto jit = std::make_shared<nn::Jit>(
        [cell = cell](const std::vector<Tensor>& given) { return (*cell)(given); });
    return [jit, batch = batch] { (void)(*jit)(batch)[0].item(); };
  }
};

TrainingStep training_step(const Ref<nn::Cell>& network, Tensor x, Tensor labels,
                           Ref<optim::Optimizer> optimizer = {}) {
  const auto loss =
      make_ref<nn::SoftmaxCrossEntropyWithLogits>(nn::Labels::Classes, nn::Reduction::Mean);
  if (!optimizer) {
    optimizer = make_ref<optim::Adam>(network->trainable_params(),
                                      optim::AdamOptions{.learning_rate = 1e-3});
  }
  const auto cell =
      make_ref<train::TrainOneStepCell>(make_ref<train::WithLossCell>(network, loss), optimizer);
  cell->set_train(true);
  return {cell, {x, labels}};
}

TrainingStep lenet_step() {
  const auto conv = [](int64_t in, int64_t out, nn::PadMode mode) {
    return make_ref<nn::Conv2d>(in, out, 5,
                                nn::Conv2dOptions{.pad_mode = mode, .bias = nn::Bias::Added});
  };
  const auto relu = [] { return make_ref<nn::ReLU>(); };
  const auto pool = [] { return make_ref<nn::MaxPool2d>(2, 2); };
  const auto network = make_ref<nn::SequentialCell>(std::vector<Ref<nn::Cell>>{
      conv(1, 6, nn::PadMode::Same), relu(), pool(), conv(6, 16, nn::PadMode::Valid), relu(),
      pool(), make_ref<nn::Flatten>(), make_ref<nn::Dense>(400, 120), relu(),
      make_ref<nn::Dense>(120, 84), relu(), make_ref<nn::Dense>(84, 10)});
  return training_step(network, randn({64, 1, 28, 28}), random_classes(64, 10));
}

TrainingStep mlp_step() {
  const auto network = make_ref<nn::SequentialCell>(std::vector<Ref<nn::Cell>>{
      make_ref<nn::Dense>(784, 512), make_ref<nn::ReLU>(), make_ref<nn::Dense>(512, 512),
      make_ref<nn::ReLU>(), make_ref<nn::Dense>(512, 10)});
  return training_step(network, randn({128, 784}), random_classes(128, 10));
}

// Classes from the state after the last turn.
class LastState : public nn::Cell {
 public:
  LastState() {
    add("lstm", make_ref<nn::LSTM>(128, 256));
    add("dense", make_ref<nn::Dense>(256, 10));
  }
  using Cell::construct;
  Tensor construct(const Tensor& x) override {
    return own_cell("dense")(ops::squeeze(own_cell<nn::LSTM>("lstm").run(x).states[0], {0}));
  }
};

TrainingStep lstm_step() {
  return training_step(make_ref<LastState>(), randn({128, 32, 128}), random_classes(32, 10));
}

// Layers normalised first, causal, GELU, without dropout.
class Transformer : public nn::Cell {
 public:
  Transformer(int64_t vocabulary, int64_t length, int64_t width, int64_t heads, int64_t layers)
      : layers_(layers) {
    add("tokens", make_ref<nn::Embedding>(vocabulary, width));
    add_parameter("positions", make_ref<nn::Parameter>(randn({length, width})));
    for (int64_t i = 0; i < layers; ++i) {
      add(fmt::format("block{}", i),
          make_ref<nn::TransformerEncoderLayer>(
              width, heads,
              nn::TransformerLayerOptions{.dim_feedforward = 4 * width,
                                          .dropout = 0,
                                          .activation = "gelu",
                                          .axes = nn::AxisOrder::BatchFirst,
                                          .norm_order = nn::NormOrder::First}));
    }
    add("norm", make_ref<nn::LayerNorm>(Shape{width}));
    add("head", make_ref<nn::Dense>(width, vocabulary, nn::DenseOptions{.bias = nn::Bias::None}));
  }
  using Cell::construct;
  Tensor construct(const Tensor& tokens) override {
    Tensor x = own_cell("tokens")(tokens) + use("positions");
    for (int64_t i = 0; i < layers_; ++i) {
      x = own_cell<nn::TransformerEncoderLayer>(fmt::format("block{}", i))
              .run(x, {.causality = nn::Causality::Causal});
    }
    return ops::flatten(own_cell("head")(own_cell("norm")(x)), 0, 1);
  }

 private:
  int64_t layers_;
};

TrainingStep transformer_step() {
  const auto network = make_ref<Transformer>(8192, 256, 512, 8, 4);
  return training_step(network, ops::reshape(random_classes(8 * 256, 8192), Shape{8, 256}),
                       random_classes(8 * 256, 8192),
                       make_ref<optim::AdamW>(network->trainable_params()));
}

// A window of 3,000 operations whose graph is known: recorded, gathered, keyed, found and run.
Call window_of_3000() {
  const Tensor x = randn({1});
  return [=] {
    Tensor y = x;
    for (int i = 0; i < 3000; ++i) y = -y;
    y.wait();
  };
}

using TrainingCase = TrainingStep();
constexpr std::pair<const char*, TrainingCase*> kTrainingCases[] = {
    {"lenet_step", lenet_step},
    {"mlp_step", mlp_step},
    {"lstm_step", lstm_step},
    {"transformer_step", transformer_step},
};

std::map<std::string, Case> all_cases() {
  std::map<std::string, Case> cases = {
      {"add_one_element", add_one_element},
      {"chain_of_10", [] { return read_result(result_of_chain); }},
      {"chain_of_10_with_gradient", [] { return read_result(gradient_of_chain); }},
      {"window_of_3000", window_of_3000},
      {"adam_200x1000", [] { return adam(std::vector<Shape>(200, Shape{1000})); }},
      {"exp_16384", [] { return apply(ops::exp, 16384); }},
      {"log_16384", [] { return apply(ops::log, 16384); }},
      {"tanh_16384", [] { return apply(ops::tanh, 16384); }},
      {"erf_16384", [] { return apply(ops::erf, 16384); }},
      {"sin_16384", [] { return apply(ops::sin, 16384); }},
  };
  for (const auto& [name, prepare] : kTrainingCases) {
    cases[name] = [prepare = prepare] { return prepare().call(); };
  }
  for (const size_t tensors : {1, 40, 70}) {
    cases[fmt::format("adam_{}x512x1024", tensors)] = [=] {
      return adam(std::vector<Shape>(tensors, Shape{512, 1024}));
    };
  }
  for (const int power : {20, 26}) {
    cases[fmt::format("gelu_2^{}", power)] = [=] { return gelu(int64_t{1} << power); };
  }
  for (const int power : {21, 27}) {
    cases[fmt::format("chain_2^{}", power)] = [=] { return chain(int64_t{1} << power); };
  }
  for (const int64_t rows : {1024, 4096, 65536}) {
    cases[fmt::format("softmax_{}x1024", rows)] = [=] { return softmax(rows); };
    cases[fmt::format("layer_norm_{}x1024", rows)] = [=] { return layer_norm(rows); };
  }
  for (const int64_t rows : {2048, 4096, 131072}) {
    cases[fmt::format("cross_entropy_{}x1024", rows)] = [=] { return cross_entropy(rows); };
  }
  const auto add_matmul = [&](int64_t rows, int64_t inner, int64_t columns) {
    cases[fmt::format("matmul_{}x{}x{}", rows, inner, columns)] = [=] {
      return matmul(rows, inner, columns);
    };
  };
  for (int64_t size : {64, 128, 256, 512, 1024, 2048, 4096}) add_matmul(size, size, size);
  add_matmul(1, 4096, 4096);
  add_matmul(32, 1024, 4096);
  add_matmul(4096, 64, 4096);
  return cases;
}

std::map<std::string, Case> jit_cases() {
  std::map<std::string, Case> cases = {
      {"chain_of_10", [] { return read_result_with_jit(result_of_chain); }},
      {"chain_of_10_with_gradient", [] { return read_result_with_jit(gradient_of_chain); }},
  };
  for (const auto& [name, prepare] : kTrainingCases) {
    cases[name] = [prepare = prepare] { return prepare().call_with_jit(); };
  }
  return cases;
}

// The case of a name; nothing if there is none. "copy_<bytes>" exists for every number.
Case find_case(const std::map<std::string, Case>& cases, const std::string& name) {
  if (name.starts_with("copy_"))
    return [bytes = std::stoll(name.substr(5))] { return copy(bytes); };
  const auto found = cases.find(name);
  return found == cases.end() ? Case() : found->second;
}

// Bytes that one call of a warm case needs beside what it keeps: planned for its window's
// temporaries, the largest sum of temporaries alive at once, and the peak when every operation
// runs by itself.
nlohmann::json memory_of(const std::string& name, const Call& call) {
  const auto peak = [&] {
    for (int i = 0; i < 3; ++i) call();
    run_pending();
    const int64_t before = cpu_pool().statistics().used;
    cpu_pool().reset_peak();
    call();
    run_pending();
    return cpu_pool().statistics().peak_used - before;
  };
  const int64_t measured = peak();
  nlohmann::json figures{{"name", name},
                         {"measured", measured},
                         {"planned", counters().arena_bytes},
                         {"least", counters().arena_lower_bound}};
  const WindowLimits usual = Window::of_thread().limits();
  WindowLimits limits = usual;
  limits.fixed = 1;
  Window::of_thread().set_limits(limits);
  figures["window_1"] = peak();
  Window::of_thread().set_limits(usual);
  return figures;
}

// A prepared case, warm: the first calls compile and fill caches.
class WarmCase {
 public:
  explicit WarmCase(const Case& prepare) : call_(prepare()) {
    for (int i = 0; i < 3; ++i) milliseconds();
  }

  // A call's mean over about as many as the time of a measurement holds, going by the last one.
  double milliseconds() {
    const auto start = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < repetitions_; ++i) call_();
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    const double mean = passed.count() / static_cast<double>(repetitions_);
    repetitions_ = std::max<int64_t>(1, std::llround(kMeasurementSeconds / mean));
    return 1e3 * mean;
  }

 private:
  Call call_;
  int64_t repetitions_ = 1;
};

// Answers case names on standard input with one measurement each.
void serve(const std::map<std::string, Case>& cases) {
  std::string warm_name;
  std::unique_ptr<WarmCase> warm;
  for (std::string name; std::getline(std::cin, name);) {
    const Case prepare = find_case(cases, name);
    if (!prepare) {
      std::cout << nlohmann::json{{"name", name}, {"error", "no such case"}} << std::endl;
      continue;
    }
    if (name != warm_name) {
      warm.reset();
      warm = std::make_unique<WarmCase>(prepare);
      warm_name = name;
    }
    std::cout << nlohmann::json{{"name", name}, {"ms", warm->milliseconds()}} << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const bool jit = argc > 1 && std::string(argv[1]) == "--jit";
    if (jit) {
      --argc;
      ++argv;
    }
    const auto cases = jit ? jit_cases() : all_cases();
    if (argc == 2 && std::string(argv[1]) == "--serve") {
      serve(cases);
      return 0;
    }
    if (argc > 2 && std::string(argv[1]) == "--memory") {
      for (int i = 2; i < argc; ++i) {
        const Case prepare = find_case(cases, argv[i]);
        if (!prepare) throw std::runtime_error(std::string("no such case: ") + argv[i]);
        std::cout << memory_of(argv[i], prepare()) << std::endl;
      }
      return 0;
    }
    for (const auto& [name, prepare] : cases) {
      if (argc > 1 && std::find(argv + 1, argv + argc, name) == argv + argc) continue;
      WarmCase warm(prepare);
      std::vector<double> times;
      for (int i = 0; i < 7; ++i) times.push_back(warm.milliseconds());
      std::sort(times.begin(), times.end());
      std::cout << nlohmann::json{{"name", name}, {"median_ms", times[3]}, {"min_ms", times[0]}}
                << std::endl;
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
