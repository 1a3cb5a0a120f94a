// Rates that change from step to step: schedules as objects, and as lists of one rate a step.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "lamella/nn/cell.h"

namespace lamella::optim {

// The rate at a global step, counted from 0. As a cell it takes the step as a number tensor and
// gives the rate as a float32 tensor of rank 0.
class LAMELLA_API LearningRateSchedule : public nn::Layer {
 public:
  std::string class_name() const override { return "LearningRateSchedule"; }
  virtual double rate(int64_t step) const = 0;
  using Cell::construct;
  Tensor construct(const Tensor& step) override;
};

// Whether a rate moves at every step, or in stairs of `decay_steps`.
enum class Decay : uint8_t { Smooth, Stairs };

// rate * decay_rate^p, where p = step / decay_steps.
class LAMELLA_API ExponentialDecayLR : public LearningRateSchedule {
 public:
  ExponentialDecayLR(double learning_rate, double decay_rate, int64_t decay_steps,
                     Decay decay = Decay::Smooth);
  double rate(int64_t step) const override;

 private:
  double learning_rate_, decay_rate_;
  int64_t decay_steps_;
  Decay decay_;
};

// rate * exp(-decay_rate * step), the step in stairs of decay_steps if asked for.
class LAMELLA_API NaturalExpDecayLR : public LearningRateSchedule {
 public:
  NaturalExpDecayLR(double learning_rate, double decay_rate, int64_t decay_steps,
                    Decay decay = Decay::Smooth);
  double rate(int64_t step) const override;

 private:
  double learning_rate_, decay_rate_;
  int64_t decay_steps_;
  Decay decay_;
};

// rate / (1 + decay_rate * p), where p = step / decay_steps.
class LAMELLA_API InverseDecayLR : public LearningRateSchedule {
 public:
  InverseDecayLR(double learning_rate, double decay_rate, int64_t decay_steps,
                 Decay decay = Decay::Smooth);
  double rate(int64_t step) const override;

 private:
  double learning_rate_, decay_rate_;
  int64_t decay_steps_;
  Decay decay_;
};

// Half a cosine from max_lr at step 0 to min_lr at decay_steps, and min_lr from there on.
class LAMELLA_API CosineDecayLR : public LearningRateSchedule {
 public:
  CosineDecayLR(double min_lr, double max_lr, int64_t decay_steps);
  double rate(int64_t step) const override;

 private:
  double min_lr_, max_lr_;
  int64_t decay_steps_;
};

// What becomes of a polynomial decay after its end: it stays, or begins again over a multiple of
// the steps.
enum class AfterDecay : uint8_t { Stay, Stretch };

// (rate - end) * (1 - step / decay_steps)^power + end.
class LAMELLA_API PolynomialDecayLR : public LearningRateSchedule {
 public:
  PolynomialDecayLR(double learning_rate, double end_learning_rate, int64_t decay_steps,
                    double power, AfterDecay after = AfterDecay::Stay);
  double rate(int64_t step) const override;

 private:
  double learning_rate_, end_learning_rate_;
  int64_t decay_steps_;
  double power_;
  AfterDecay after_;
};

// A straight line from 0 at step 0 to the rate at warmup_steps, and the rate from there on.
class LAMELLA_API WarmUpLR : public LearningRateSchedule {
 public:
  WarmUpLR(double learning_rate, int64_t warmup_steps);
  double rate(int64_t step) const override;

 private:
  double learning_rate_;
  int64_t warmup_steps_;
};

// ---- One rate a step ----

using Rates = std::vector<double>;

// How long a list is, in steps, and how many steps make the epoch by which rates change.
struct ScheduleLength {
  int64_t total_step = 1;
  int64_t step_per_epoch = 1;
};

// learning_rates[i] up to step milestone[i]. Throws Value unless both are equally long and
// milestones rise.
LAMELLA_API Rates piecewise_constant_lr(const std::vector<int64_t>& milestone,
                                        const std::vector<double>& learning_rates);
// The formulas of the schedules above with step replaced by the number of the epoch.
LAMELLA_API Rates exponential_decay_lr(double learning_rate, double decay_rate,
                                       ScheduleLength length, int64_t decay_epoch,
                                       Decay decay = Decay::Smooth);
LAMELLA_API Rates natural_exp_decay_lr(double learning_rate, double decay_rate,
                                       ScheduleLength length, int64_t decay_epoch,
                                       Decay decay = Decay::Smooth);
LAMELLA_API Rates inverse_decay_lr(double learning_rate, double decay_rate, ScheduleLength length,
                                   int64_t decay_epoch, Decay decay = Decay::Smooth);
LAMELLA_API Rates cosine_decay_lr(double min_lr, double max_lr, ScheduleLength length,
                                  int64_t decay_epoch);
LAMELLA_API Rates polynomial_decay_lr(double learning_rate, double end_learning_rate,
                                      ScheduleLength length, int64_t decay_epoch, double power,
                                      AfterDecay after = AfterDecay::Stay);
LAMELLA_API Rates warmup_lr(double learning_rate, ScheduleLength length, int64_t warmup_epoch);

// A rate as optimizers take it: a number, one a step (the last one stays), or a schedule.
using LearningRate = std::variant<double, Rates, Ref<LearningRateSchedule>>;
// The rate at a step.
LAMELLA_API double rate_at(const LearningRate& rate, int64_t step);
// Throws Value, in the name of `what`, for negative or non-finite rates and an empty list.
LAMELLA_API void check_rate(const LearningRate& rate, std::string_view what);

}  // namespace lamella::optim
