// Telling callbacks, and the ready ones.
#include "lamella/train/callback.h"

#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <typeinfo>

#include "lamella/ir/window.h"
#include "lamella/ops/functions.h"

namespace lamella::train {

namespace {

void tell(Callback& callback, RunContext& context, Turn turn) {
  const bool training = context.original_args().mode == RunMode::Train;
  switch (turn) {
    case Turn::Begin:
      training ? callback.on_train_begin(context) : callback.on_eval_begin(context);
      break;
    case Turn::EpochBegin:
      training ? callback.on_train_epoch_begin(context) : callback.on_eval_epoch_begin(context);
      break;
    case Turn::StepBegin:
      training ? callback.on_train_step_begin(context) : callback.on_eval_step_begin(context);
      break;
    case Turn::StepEnd:
      training ? callback.on_train_step_end(context) : callback.on_eval_step_end(context);
      break;
    case Turn::EpochEnd:
      training ? callback.on_train_epoch_end(context) : callback.on_eval_epoch_end(context);
      break;
    case Turn::End:
      training ? callback.on_train_end(context) : callback.on_eval_end(context);
      break;
  }
}

}  // namespace

void tell(RunContext& context, Turn turn) {
  const Callbacks callbacks = context.original_args().list_callback;
  for (const bool last : {false, true}) {
    for (const Ref<Callback>& callback : callbacks) {
      if (callback->comes_last() == last) tell(*callback, context, turn);
    }
  }
}

std::string Callback::class_name() const {
  return typeid(*this).name();
}

namespace {

const std::string& entry(const std::map<std::string, std::string>& state, const std::string& key,
                         std::string_view callback) {
  const auto found = state.find(key);
  if (found == state.end()) {
    fail(ErrorKind::Io, "[{}] the checkpoint's state lacks '{}'", callback, key);
  }
  return found->second;
}

template <typename Number>
Number number_in(const std::string& text, const std::string& key, std::string_view callback) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end) {
    fail(ErrorKind::Io, "[{}] the checkpoint's state has '{}' for '{}'", callback, text, key);
  }
  return number;
}

// "<class>#<number within the class>." for each callback.
std::vector<std::string> prefixes_of(const Callbacks& callbacks) {
  std::map<std::string, int> counts;
  std::vector<std::string> prefixes;
  for (const Ref<Callback>& callback : callbacks) {
    const std::string name = callback->class_name();
    prefixes.push_back(fmt::format("{}#{}.", name, counts[name]++));
  }
  return prefixes;
}

}  // namespace

int64_t state_integer(const std::map<std::string, std::string>& state, const std::string& key,
                      std::string_view callback) {
  return number_in<int64_t>(entry(state, key, callback), key, callback);
}

double state_number(const std::map<std::string, std::string>& state, const std::string& key,
                    std::string_view callback) {
  return number_in<double>(entry(state, key, callback), key, callback);
}

std::map<std::string, std::string> states_of(const Callbacks& callbacks) {
  const std::vector<std::string> prefixes = prefixes_of(callbacks);
  std::map<std::string, std::string> states;
  for (size_t i = 0; i < callbacks.size(); ++i) {
    for (const auto& [key, value] : callbacks[i]->state()) states[prefixes[i] + key] = value;
  }
  return states;
}

void restore_states(const Callbacks& callbacks, const std::map<std::string, std::string>& states) {
  const std::vector<std::string> prefixes = prefixes_of(callbacks);
  for (size_t i = 0; i < callbacks.size(); ++i) {
    std::map<std::string, std::string> state;
    for (const auto& [key, value] : states) {
      if (key.starts_with(prefixes[i])) state[key.substr(prefixes[i].size())] = value;
    }
    if (!state.empty()) callbacks[i]->restore(state);
  }
}

double settled_seconds() {
  Window::of_thread().flush();
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double loss_of(const CallbackParams& params) {
  if (params.net_outputs.empty() || !params.net_outputs[0].defined()) {
    fail(ErrorKind::Value, "[loss] the step gave no outputs");
  }
  const Tensor& loss = params.net_outputs[0];
  return loss.rank() == 0 ? loss.item() : ops::mean(loss).item();
}

LossMonitor::LossMonitor(int64_t per_print_times) : per_print_times_(per_print_times) {
  if (per_print_times < 0) {
    fail(ErrorKind::Value, "[LossMonitor] per_print_times must not be negative, got {}",
         per_print_times);
  }
}

void LossMonitor::step_end(RunContext& context) {
  const CallbackParams& params = context.original_args();
  if (per_print_times_ == 0) return;
  const int64_t step = params.cur_step_num;
  if (step < printed_at_) printed_at_ = 0;  // another run
  if (step - printed_at_ < per_print_times_) return;
  printed_at_ = step;
  const double loss = loss_of(params);
  if (!std::isfinite(loss)) {
    fail(ErrorKind::Value, "[LossMonitor] epoch {} step {}: the loss is {}, training ends here",
         params.cur_epoch_num, params.step_in_epoch(), loss);
  }
  fmt::print("epoch: {} step: {}, loss is {:.9g}\n", params.cur_epoch_num, params.step_in_epoch(),
             loss);
  std::fflush(stdout);
}

void LossMonitor::on_train_step_end(RunContext& context) {
  step_end(context);
}

void LossMonitor::on_train_epoch_end(RunContext& context) {
  const CallbackParams& params = context.original_args();
  if (params.metrics.empty()) return;
  std::string line;
  for (const auto& [name, value] : params.metrics) line += fmt::format(", {}: {}", name, value);
  fmt::print("Eval result: epoch {}{}\n", params.cur_epoch_num, line);
}

void TimeMonitor::epoch_begin(RunContext&) {
  began_ = settled_seconds();
}

void TimeMonitor::epoch_end(RunContext& context) {
  const CallbackParams& params = context.original_args();
  const double milliseconds = (settled_seconds() - began_) * 1000;
  const int64_t steps = data_size_ > 0 ? data_size_ : std::max<int64_t>(1, params.batch_num);
  fmt::print("{} epoch time: {:.3f} ms, per step time: {:.3f} ms\n",
             params.mode == RunMode::Train ? "Train" : "Eval", milliseconds,
             milliseconds / static_cast<double>(steps));
  std::fflush(stdout);
}

void History::begin(RunContext& context) {
  if (context.original_args().mode != RunMode::Train) return;
  epochs_.clear();
  values_.clear();
}

void History::epoch_end(RunContext& context) {
  const CallbackParams& params = context.original_args();
  if (params.mode != RunMode::Train) return;
  epochs_.push_back(params.cur_epoch_num);
  values_["net_output"].push_back(loss_of(params));
  for (const auto& [name, value] : params.metrics) values_[name].push_back(value);
}

}  // namespace lamella::train
