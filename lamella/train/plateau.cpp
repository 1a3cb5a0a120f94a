// When a figure no longer improves: stopping, and smaller steps.
#include "lamella/train/plateau.h"

#include <cmath>
#include <cstdio>

#include "lamella/ir/window.h"

namespace lamella::train {

namespace {

bool improves_upwards(const PlateauOptions& options) {
  if (options.mode != Improvement::Auto) return options.mode == Improvement::More;
  for (const std::string_view word : {"acc", "precision", "recall", "f1", "F1"}) {
    if (options.monitor.find(word) != std::string::npos) return true;
  }
  return false;
}

// The figure; nothing if this epoch was not evaluated.
std::optional<double> figure_of(const CallbackParams& params, const std::string& monitor,
                                std::string_view callback) {
  if (monitor == "loss") return loss_of(params);
  if (params.metrics.empty() && params.valid_dataset) return {};
  constexpr std::string_view kPrefix = "eval_";
  const std::string name = monitor.starts_with(kPrefix) ? monitor.substr(kPrefix.size()) : monitor;
  for (const std::string& each : {monitor, name}) {
    const auto found = params.metrics.find(each);
    if (found != params.metrics.end()) return found->second;
  }
  std::string known = "loss";
  for (const auto& [each, value] : params.metrics) known += ", eval_" + each;
  fail(ErrorKind::Value, "[{}] there is no figure '{}' to monitor; there are {}", callback, monitor,
       known);
}

const nn::Parameter& rate_of(optim::Optimizer* optimizer, std::string_view callback) {
  if (optimizer == nullptr) fail(ErrorKind::Value, "[{}] there is no optimizer", callback);
  const Ref<nn::Parameter>& rate = optimizer->parameter("learning_rate");
  if (!rate || rate->shape().size() != 0) {
    fail(ErrorKind::Value, "[{}] the optimizer's learning rate must be a number, not a schedule",
         callback);
  }
  return *rate;
}

void set_rate(const nn::Parameter& parameter, double rate) {
  const auto single = static_cast<float>(rate);
  parameter.set_data(Tensor::from_data(DType::Float32, {}, &single));
}

}  // namespace

Plateau::Plateau(std::string_view callback, PlateauOptions options, std::optional<double> baseline)
    : callback_(callback), options_(std::move(options)), best_(baseline) {
  if (options_.patience < 0) {
    fail(ErrorKind::Value, "[{}] patience must not be negative, got {}", callback,
         options_.patience);
  }
  options_.min_delta = std::abs(options_.min_delta);
}

bool Plateau::follow(const CallbackParams& params) {
  // An epoch that was stopped is told once more when the run goes on.
  if (params.completed_epochs < params.cur_epoch_num) return false;
  const std::optional<double> figure = figure_of(params, options_.monitor, callback_);
  if (!figure) return false;
  double gain = best_ ? *figure - *best_ : HUGE_VAL;
  if (best_ && !improves_upwards(options_)) gain = -gain;
  if (std::isnan(*figure)) gain = 0;
  if (gain > options_.min_delta) {
    best_ = figure;
    waited_ = 0;
    return false;
  }
  ++waited_;
  return waited_ >= std::max<int64_t>(options_.patience, 1);
}

std::map<std::string, std::string> Plateau::state() const {
  std::map<std::string, std::string> state{{"waited", std::to_string(waited_)}};
  if (best_) state["best"] = fmt::format("{}", *best_);
  return state;
}

void Plateau::restore(const std::map<std::string, std::string>& state) {
  waited_ = state_integer(state, "waited", callback_);
  best_.reset();
  if (state.contains("best")) best_ = state_number(state, "best", callback_);
}

EarlyStopping::EarlyStopping(const EarlyStoppingOptions& options)
    : options_(options), plateau_("EarlyStopping", options.plateau, options.baseline) {}

void EarlyStopping::on_train_begin(RunContext&) {
  if (!restored_) plateau_ = Plateau("EarlyStopping", options_.plateau, options_.baseline);
  restored_ = false;
  best_weights_.clear();
}

void EarlyStopping::restore(const std::map<std::string, std::string>& state) {
  plateau_.restore(state);
  restored_ = true;
}

void EarlyStopping::on_train_epoch_end(RunContext& context) {
  const CallbackParams& params = context.original_args();
  const bool stops = plateau_.follow(params);
  if (options_.restore_best_weights && plateau_.improved()) {
    Window::of_thread().flush();
    best_weights_.clear();
    for (const Ref<nn::Parameter>& parameter : params.network->get_parameters()) {
      best_weights_.emplace_back(parameter->tensor(), Tensor(parameter->tensor().value()));
    }
  }
  if (!stops) return;
  context.request_stop();
  if (options_.plateau.verbose) {
    fmt::print("epoch {}: no better {}, training ends\n", params.cur_epoch_num,
               options_.plateau.monitor);
  }
  for (const auto& [parameter, value] : best_weights_) parameter.assign(value);
}

ReduceLROnPlateau::ReduceLROnPlateau(ReduceLROnPlateauOptions options)
    : options_(options), plateau_("ReduceLROnPlateau", options.plateau, {}) {
  if (!(options.factor > 0 && options.factor < 1)) {
    fail(ErrorKind::Value, "[ReduceLROnPlateau] factor must be between 0 and 1, got {}",
         options.factor);
  }
  if (options.cooldown < 0 || !(options.min_lr >= 0)) {
    fail(ErrorKind::Value,
         "[ReduceLROnPlateau] cooldown and min_lr must not be negative, got {} and {}",
         options.cooldown, options.min_lr);
  }
}

void ReduceLROnPlateau::on_train_epoch_end(RunContext& context) {
  const CallbackParams& params = context.original_args();
  const nn::Parameter& rate = rate_of(params.optimizer.get(), "ReduceLROnPlateau");
  const bool stalls = plateau_.follow(params);
  if (cooling_ > 0) {
    --cooling_;
    plateau_.forget_waiting();
    return;
  }
  if (!stalls) return;
  plateau_.forget_waiting();
  cooling_ = options_.cooldown;
  const double before = rate.tensor().item();
  const double after = std::max(before * options_.factor, options_.min_lr);
  if (after >= before) return;
  set_rate(rate, after);
  if (options_.plateau.verbose) {
    fmt::print("epoch {}: no better {}, learning rate {:g}\n", params.cur_epoch_num,
               options_.plateau.monitor, after);
  }
}

std::map<std::string, std::string> ReduceLROnPlateau::state() const {
  auto state = plateau_.state();
  state["cooling"] = std::to_string(cooling_);
  return state;
}

void ReduceLROnPlateau::restore(const std::map<std::string, std::string>& state) {
  plateau_.restore(state);
  cooling_ = state_integer(state, "cooling", "ReduceLROnPlateau");
}

void LearningRateScheduler::on_train_step_end(RunContext& context) {
  const CallbackParams& params = context.original_args();
  const nn::Parameter& rate = rate_of(params.optimizer.get(), "LearningRateScheduler");
  set_rate(rate, function_(rate.tensor().item(), params.cur_step_num));
}

}  // namespace lamella::train
