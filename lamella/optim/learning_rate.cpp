// The formulas of the schedules.
#include "lamella/optim/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace lamella::optim {

namespace {

void require_steps(std::string_view schedule, std::string_view argument, int64_t steps) {
  if (steps < 1) {
    fail(ErrorKind::Value, "[{}] {} must be at least 1, got {}", schedule, argument, steps);
  }
}

void require_rate(std::string_view schedule, std::string_view argument, double rate) {
  if (!(rate >= 0) || !std::isfinite(rate)) {
    fail(ErrorKind::Value, "[{}] {} must not be negative, got {}", schedule, argument, rate);
  }
}

double quotient(int64_t step, int64_t steps, Decay decay) {
  const int64_t stairs = step / steps;
  if (decay == Decay::Stairs) return static_cast<double>(stairs);
  return static_cast<double>(step) / static_cast<double>(steps);
}

// ---- The formulas, in `step` steps or epochs ----

double exponential(double rate, double decay_rate, int64_t step, int64_t steps, Decay decay) {
  return rate * std::pow(decay_rate, quotient(step, steps, decay));
}

double natural_exponential(double rate, double decay_rate, int64_t step, int64_t steps,
                           Decay decay) {
  const int64_t passed = decay == Decay::Stairs ? step / steps * steps : step;
  return rate * std::exp(-decay_rate * static_cast<double>(passed));
}

double inverse(double rate, double decay_rate, int64_t step, int64_t steps, Decay decay) {
  return rate / (1 + decay_rate * quotient(step, steps, decay));
}

double cosine(double low, double high, int64_t step, int64_t steps) {
  const double part = static_cast<double>(std::min(step, steps)) / static_cast<double>(steps);
  return low + 0.5 * (high - low) * (1 + std::cos(std::numbers::pi * part));
}

double polynomial(double rate, double end, int64_t step, int64_t steps, double power,
                  AfterDecay after) {
  double whole = static_cast<double>(steps);
  if (after == AfterDecay::Stretch) {
    whole *= std::max(1.0, std::ceil(static_cast<double>(step) / whole));
  }
  const double passed = std::min(static_cast<double>(step), whole);
  return (rate - end) * std::pow(1 - passed / whole, power) + end;
}

template <typename Formula>
Rates by_epoch(std::string_view function, ScheduleLength length, int64_t decay_epoch,
               const Formula& formula) {
  require_steps(function, "total_step", length.total_step);
  require_steps(function, "step_per_epoch", length.step_per_epoch);
  require_steps(function, "decay_epoch", decay_epoch);
  Rates rates;
  for (int64_t step = 0; step < length.total_step; ++step) {
    rates.push_back(formula(step / length.step_per_epoch));
  }
  return rates;
}

}  // namespace

Tensor LearningRateSchedule::construct(const Tensor& step) {
  return Tensor::scalar(DType::Float32, rate(static_cast<int64_t>(step.item())));
}

ExponentialDecayLR::ExponentialDecayLR(double learning_rate, double decay_rate, int64_t decay_steps,
                                       Decay decay)
    : learning_rate_(learning_rate),
      decay_rate_(decay_rate),
      decay_steps_(decay_steps),
      decay_(decay) {
  require_rate("ExponentialDecayLR", "learning_rate", learning_rate);
  require_rate("ExponentialDecayLR", "decay_rate", decay_rate);
  require_steps("ExponentialDecayLR", "decay_steps", decay_steps);
}

double ExponentialDecayLR::rate(int64_t step) const {
  return exponential(learning_rate_, decay_rate_, step, decay_steps_, decay_);
}

NaturalExpDecayLR::NaturalExpDecayLR(double learning_rate, double decay_rate, int64_t decay_steps,
                                     Decay decay)
    : learning_rate_(learning_rate),
      decay_rate_(decay_rate),
      decay_steps_(decay_steps),
      decay_(decay) {
  require_rate("NaturalExpDecayLR", "learning_rate", learning_rate);
  require_rate("NaturalExpDecayLR", "decay_rate", decay_rate);
  require_steps("NaturalExpDecayLR", "decay_steps", decay_steps);
}

double NaturalExpDecayLR::rate(int64_t step) const {
  return natural_exponential(learning_rate_, decay_rate_, step, decay_steps_, decay_);
}

InverseDecayLR::InverseDecayLR(double learning_rate, double decay_rate, int64_t decay_steps,
                               Decay decay)
    : learning_rate_(learning_rate),
      decay_rate_(decay_rate),
      decay_steps_(decay_steps),
      decay_(decay) {
  require_rate("InverseDecayLR", "learning_rate", learning_rate);
  require_rate("InverseDecayLR", "decay_rate", decay_rate);
  require_steps("InverseDecayLR", "decay_steps", decay_steps);
}

double InverseDecayLR::rate(int64_t step) const {
  return inverse(learning_rate_, decay_rate_, step, decay_steps_, decay_);
}

CosineDecayLR::CosineDecayLR(double min_lr, double max_lr, int64_t decay_steps)
    : min_lr_(min_lr), max_lr_(max_lr), decay_steps_(decay_steps) {
  require_rate("CosineDecayLR", "min_lr", min_lr);
  require_steps("CosineDecayLR", "decay_steps", decay_steps);
  if (!(max_lr > min_lr)) {
    fail(ErrorKind::Value, "[CosineDecayLR] max_lr must be above min_lr, got {} and {}", max_lr,
         min_lr);
  }
}

double CosineDecayLR::rate(int64_t step) const {
  return cosine(min_lr_, max_lr_, step, decay_steps_);
}

PolynomialDecayLR::PolynomialDecayLR(double learning_rate, double end_learning_rate,
                                     int64_t decay_steps, double power, AfterDecay after)
    : learning_rate_(learning_rate),
      end_learning_rate_(end_learning_rate),
      decay_steps_(decay_steps),
      power_(power),
      after_(after) {
  require_rate("PolynomialDecayLR", "learning_rate", learning_rate);
  require_rate("PolynomialDecayLR", "end_learning_rate", end_learning_rate);
  require_steps("PolynomialDecayLR", "decay_steps", decay_steps);
  if (!(power > 0)) {
    fail(ErrorKind::Value, "[PolynomialDecayLR] power must be above 0, got {}", power);
  }
}

double PolynomialDecayLR::rate(int64_t step) const {
  return polynomial(learning_rate_, end_learning_rate_, step, decay_steps_, power_, after_);
}

WarmUpLR::WarmUpLR(double learning_rate, int64_t warmup_steps)
    : learning_rate_(learning_rate), warmup_steps_(warmup_steps) {
  require_rate("WarmUpLR", "learning_rate", learning_rate);
  require_steps("WarmUpLR", "warmup_steps", warmup_steps);
}

double WarmUpLR::rate(int64_t step) const {
  return learning_rate_ * static_cast<double>(std::min(step, warmup_steps_)) /
         static_cast<double>(warmup_steps_);
}

Rates piecewise_constant_lr(const std::vector<int64_t>& milestone,
                            const std::vector<double>& learning_rates) {
  if (milestone.size() != learning_rates.size() || milestone.empty()) {
    fail(ErrorKind::Value,
         "[piecewise_constant_lr] milestone and learning_rates must be equally long and not empty, "
         "got {} and {}",
         milestone.size(), learning_rates.size());
  }
  Rates rates;
  for (size_t i = 0; i < milestone.size(); ++i) {
    const auto begun = static_cast<int64_t>(rates.size());
    if (milestone[i] <= begun) {
      fail(ErrorKind::Value,
           "[piecewise_constant_lr] milestones must rise from 1 on, but {} "
           "follows {}",
           milestone[i], begun);
    }
    rates.resize(static_cast<size_t>(milestone[i]), learning_rates[i]);
  }
  return rates;
}

Rates exponential_decay_lr(double learning_rate, double decay_rate, ScheduleLength length,
                           int64_t decay_epoch, Decay decay) {
  return by_epoch("exponential_decay_lr", length, decay_epoch, [&](int64_t epoch) {
    return exponential(learning_rate, decay_rate, epoch, decay_epoch, decay);
  });
}

Rates natural_exp_decay_lr(double learning_rate, double decay_rate, ScheduleLength length,
                           int64_t decay_epoch, Decay decay) {
  return by_epoch("natural_exp_decay_lr", length, decay_epoch, [&](int64_t epoch) {
    return natural_exponential(learning_rate, decay_rate, epoch, decay_epoch, decay);
  });
}

Rates inverse_decay_lr(double learning_rate, double decay_rate, ScheduleLength length,
                       int64_t decay_epoch, Decay decay) {
  return by_epoch("inverse_decay_lr", length, decay_epoch, [&](int64_t epoch) {
    return inverse(learning_rate, decay_rate, epoch, decay_epoch, decay);
  });
}

Rates cosine_decay_lr(double min_lr, double max_lr, ScheduleLength length, int64_t decay_epoch) {
  return by_epoch("cosine_decay_lr", length, decay_epoch,
                  [&](int64_t epoch) { return cosine(min_lr, max_lr, epoch, decay_epoch); });
}

Rates polynomial_decay_lr(double learning_rate, double end_learning_rate, ScheduleLength length,
                          int64_t decay_epoch, double power, AfterDecay after) {
  return by_epoch("polynomial_decay_lr", length, decay_epoch, [&](int64_t epoch) {
    return polynomial(learning_rate, end_learning_rate, epoch, decay_epoch, power, after);
  });
}

Rates warmup_lr(double learning_rate, ScheduleLength length, int64_t warmup_epoch) {
  return by_epoch("warmup_lr", length, warmup_epoch, [&](int64_t epoch) {
    return learning_rate * static_cast<double>(std::min(epoch, warmup_epoch)) /
           static_cast<double>(warmup_epoch);
  });
}

double rate_at(const LearningRate& rate, int64_t step) {
  if (const double* number = std::get_if<double>(&rate)) return *number;
  if (const Rates* rates = std::get_if<Rates>(&rate)) {
    return (*rates)[std::min(static_cast<size_t>(step), rates->size() - 1)];
  }
  return std::get<Ref<LearningRateSchedule>>(rate)->rate(step);
}

void check_rate(const LearningRate& rate, std::string_view what) {
  if (const double* number = std::get_if<double>(&rate))
    return require_rate(what, "the rate", *number);
  if (const Rates* rates = std::get_if<Rates>(&rate)) {
    if (rates->empty()) fail(ErrorKind::Value, "[{}] the list of rates is empty", what);
    for (double each : *rates) require_rate(what, "the rate", each);
  }
}

}  // namespace lamella::optim
