// Trains a small transformer to continue a text, letter by letter, and lets it write. `--help`
// lists the options; the last line printed is JSON.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "examples/run_options.h"
#include <nlohmann/json.hpp>

#include "lamella/data/source.h"
#include "lamella/nn/attention.h"
#include "lamella/nn/container.h"
#include "lamella/nn/loss.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/tensor_operators.h"
#include "lamella/optim/adam.h"
#include "lamella/train/model.h"
#include "lamella/train/monitor.h"

namespace {

using namespace lamella;
using examples::RunOptions;
using examples::StopAfter;

struct Options : RunOptions {
  std::string data;
  int64_t epochs = 1;
  int64_t batch_size = 32;
  int64_t context = 64;  // letters that the network looks back on
  int64_t width = 64;
  int64_t layers = 2;
  int64_t heads = 4;
  int64_t write = 200;  // letters of the sample
  double learning_rate = 0.003;
};

// The letters of a text and their numbers.
struct Alphabet {
  std::string letters;

  explicit Alphabet(const std::string& text) {
    bool known[256] = {};
    for (const char letter : text) known[static_cast<unsigned char>(letter)] = true;
    for (int code = 0; code < 256; ++code) {
      if (known[code]) letters.push_back(static_cast<char>(code));
    }
  }
  std::vector<int32_t> numbers(const std::string& text) const {
    int32_t number[256] = {};
    for (size_t i = 0; i < letters.size(); ++i) {
      number[static_cast<unsigned char>(letters[i])] = static_cast<int32_t>(i);
    }
    std::vector<int32_t> numbers;
    for (const char letter : text) numbers.push_back(number[static_cast<unsigned char>(letter)]);
    return numbers;
  }
};

// The numbers of the letter that follows each. tokens: int32 [N, T], T at most the context; result:
// [N, T, letters].
class CharTransformer : public nn::Cell {
 public:
  CharTransformer(int64_t letters, const Options& options) {
    add("tokens", make_ref<nn::Embedding>(letters, options.width));
    add("positions", make_ref<nn::Embedding>(options.context, options.width));
    std::vector<Ref<nn::Cell>> blocks;
    for (int64_t i = 0; i < options.layers; ++i) {
      blocks.push_back(make_ref<nn::TransformerEncoderLayer>(
          options.width, options.heads,
          nn::TransformerLayerOptions{.dim_feedforward = 4 * options.width,
                                      .activation = "gelu",
                                      .axes = nn::AxisOrder::BatchFirst,
                                      .norm_order = nn::NormOrder::First}));
    }
    add("blocks", make_ref<nn::CellList>(blocks));
    add("norm", make_ref<nn::LayerNorm>(Shape{options.width}));
    add("head", make_ref<nn::Dense>(options.width, letters));
  }

  using Cell::construct;
  Tensor construct(const Tensor& tokens) override {
    const int64_t length = tokens.shape()[1].value();
    const Tensor places = ops::arange(int64_t{0}, int64_t{1}, Shape{length}, DType::Int32);
    // A letter does not see those behind it.
    const Tensor hidden = ops::greater(ops::reshape(places, Shape{1, length}),
                                       ops::reshape(places, Shape{length, 1}));
    Tensor x = own_cell("tokens")(tokens) + own_cell("positions")(places);
    for (const auto& [name, block] : child("blocks")->children()) {
      x = dynamic_cast<nn::TransformerEncoderLayer&>(*block).run(x, {.attention = hidden});
    }
    return own_cell("head")(own_cell("norm")(x));
  }
};

// The mean cross entropy of the letters that really followed.
class NextLetterLoss : public nn::Cell {
 public:
  explicit NextLetterLoss(Ref<CharTransformer> network) : nn::Cell(nn::NamePrefix::None) {
    add("network", std::move(network));
  }
  using Cell::construct;
  Tensor construct(const Tensor& tokens, const Tensor& following) override {
    const Tensor logits = own_cell("network")(tokens);
    return ops::cross_entropy(ops::flatten(logits, 0, 1), ops::reshape(following, Shape{-1}));
  }
};

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file || text.empty()) {
    fail(ErrorKind::Io, "cannot read the text '{}'", path);
  }
  return text;
}

// Pieces of context + 1 letters, one behind the other; each begins with the last of the one before.
Ref<data::Dataset> pieces(const std::vector<int32_t>& numbers, const Options& options) {
  const int64_t count = (static_cast<int64_t>(numbers.size()) - 1) / options.context;
  if (count < options.batch_size) {
    fail(ErrorKind::Value, "the text has {} letters: too few for a batch of {} times {}",
         numbers.size(), options.batch_size, options.context);
  }
  const auto all = static_cast<size_t>(count * options.context);
  const std::vector<int32_t> tokens(numbers.begin(), numbers.begin() + static_cast<long>(all));
  const std::vector<int32_t> following(numbers.begin() + 1,
                                       numbers.begin() + 1 + static_cast<long>(all));
  return make_ref<data::NumpySlicesDataset>(
             std::vector{data::Array::of<int32_t>(tokens, {count, options.context}),
                         data::Array::of<int32_t>(following, {count, options.context})},
             std::vector<std::string>{"tokens", "following"}, data::SourceOptions{.shuffle = true})
      ->batch(options.batch_size, {.remainder = data::Remainder::Drop});
}

// What the network writes behind `begin`, each letter drawn with the probability it gives.
std::string written(CharTransformer& network, const Alphabet& alphabet, const std::string& begin,
                    const Options& options) {
  std::string text = begin;
  network.set_train(false);
  while (static_cast<int64_t>(text.size()) < options.write) {
    const size_t from = text.size() - std::min(text.size(), static_cast<size_t>(options.context));
    const std::vector<int32_t> seen = alphabet.numbers(text.substr(from));
    const auto length = static_cast<int64_t>(seen.size());
    const Tensor logits = network(Tensor::from_vector<int32_t>({1, length}, seen));
    const Tensor last = ops::narrow(logits, length - 1, 1, Shape{1});
    const std::vector<float> weights = ops::softmax(ops::flatten(last)).to_vector<float>();
    double left = ops::uniform(Shape{}).item();
    size_t letter = 0;
    while (letter + 1 < weights.size() && (left -= weights[letter]) > 0) ++letter;
    text.push_back(alphabet.letters[letter]);
  }
  return text;
}

void train_and_write(const Options& options) {
  options.apply();
  const std::string text = read_text(options.data);
  const Alphabet alphabet(text);
  const auto training = pieces(alphabet.numbers(text), options);
  const int64_t steps_an_epoch = training->size();
  const int64_t total = options.steps > 0 ? options.steps : steps_an_epoch * options.epochs;

  const auto network =
      make_ref<CharTransformer>(static_cast<int64_t>(alphabet.letters.size()), options);
  const auto rate = make_ref<optim::CosineDecayLR>(0.0, options.learning_rate, total);
  const auto optimizer = make_ref<optim::AdamWeightDecay>(
      network->trainable_params(),
      optim::AdamWeightDecayOptions{.learning_rate = Ref<optim::LearningRateSchedule>(rate),
                                    .weight_decay = 0.01});
  const auto model = make_ref<train::Model>(make_ref<NextLetterLoss>(network),
                                            train::ModelOptions{.optimizer = optimizer});
  const auto losses = make_ref<train::LossTrace>(options.dump_losses);
  const auto progress =
      make_ref<train::ProgressMonitor>(10, io::ProgressBar::Options{.unit = "sequences"});
  train::Callbacks callbacks{losses, progress,
                             options.checkpoints("char_transformer", steps_an_epoch)};
  if (options.steps > 0) callbacks.push_back(make_ref<StopAfter>(options.steps));
  const int64_t epochs = (total + steps_an_epoch - 1) / steps_an_epoch;
  model->train(epochs, training,
               {.callbacks = callbacks, .resume = options.stopped_run(*model->train_network())});

  const std::string sample = written(*network, alphabet, text.substr(0, 16), options);
  std::printf("%s\n", sample.c_str());
  const auto& entries = losses->entries();
  const size_t last = std::min<size_t>(entries.size(), 20);
  double mean = 0;
  for (size_t i = entries.size() - last; i < entries.size(); ++i) mean += entries[i].loss;
  const nlohmann::ordered_json summary{
      {"train_loss", mean / static_cast<double>(std::max<size_t>(last, 1))},
      {"steps", entries.size()},
      {"letters", alphabet.letters.size()},
      {"sequences_per_second", progress->samples_per_second()},
      {"seed", options.seed},
  };
  std::printf("%s\n", summary.dump().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  options.output = "output/char_transformer";
  CLI::App app{"Trains a small transformer on the letters of a text."};
  options.add_to(app);
  app.add_option("--data", options.data, "a text file")->required();
  app.add_option("--epochs", options.epochs,
                 "passes over the text, unless --steps says when to end")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  const auto size = [&](const char* name, int64_t& value, const char* text) {
    app.add_option(name, value, text)->check(CLI::Range(1, 1 << 20))->capture_default_str();
  };
  size("--batch-size", options.batch_size, "sequences a step");
  size("--context", options.context, "letters that the network looks back on");
  size("--width", options.width, "features of a letter");
  size("--layers", options.layers, "blocks of attention");
  size("--heads", options.heads, "parts of the attention");
  size("--write", options.write, "letters of the sample that is written at the end");
  app.add_option("--learning-rate", options.learning_rate, "rate of the first step")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  return examples::run_example("char_transformer", app, argc, argv,
                               [&] { train_and_write(options); });
}
