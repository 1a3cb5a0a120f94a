// Optimizer: writes parameters by their gradients.
//
// A step is recorded with ordinary operators and runs with the rest of the step. Rates, decays and
// corrections are numbers that never enter a graph's key, and state exists from construction, so
// that every step is the same graph. All new values are recorded before the first is written:
// whatever fails, parameters and state stay as they were.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lamella/nn/cell.h"
#include "lamella/optim/learning_rate.h"
#include "lamella/optim/step_counter.h"

namespace lamella::optim {

using nn::Parameters;
using nn::Tensors;

// Parameters with settings of their own; what is not given is the optimizer's.
struct ParameterGroup {
  Parameters parameters;
  std::optional<LearningRate> learning_rate = {};
  std::optional<LearningRate> weight_decay = {};
  // Takes the mean over all axes but the first away from gradients of rank 2 and more (Yong et
  // al., "Gradient centralization", 2020).
  bool centralize_gradients = false;
  // With gradient accumulation: the micro-batches of one step of this group, at least 1. The group
  // then counts its own steps.
  std::optional<int64_t> accumulation_steps = {};
};

// What an optimizer is made for: parameters, or groups of them.
struct OptimizerParameters {
  std::vector<ParameterGroup> groups;
  // The order of gradients and updates; the groups' order if empty. Holds every parameter once.
  Parameters order = {};
  bool grouped = true;

  OptimizerParameters(Parameters parameters)  // NOLINT: parameters alone are one group
      : groups{{.parameters = std::move(parameters)}}, grouped(false) {}
  OptimizerParameters(std::vector<ParameterGroup> parts, Parameters ordered = {})  // NOLINT
      : groups(std::move(parts)), order(std::move(ordered)) {}
};

class LAMELLA_API Optimizer : public nn::Layer {
 public:
  std::string class_name() const override { return "Optimizer"; }

  // Updates every parameter by its gradient, given in the order of `parameters()`; where a gradient
  // is no tensor, parameter and state stay as they are. Throws Value, before anything is recorded,
  // for another number of gradients or one of another shape. Returns the parameters' tensors. The
  // window runs before the next operation that is recorded.
  using Cell::construct;
  Tensors construct(const Tensors& gradients) override;

  const Parameters& parameters() const { return parameters_; }
  // The number of steps made.
  int64_t global_step() const;
  // The rate of parameter `index` at the next step.
  double learning_rate(size_t index = 0) const;
  double weight_decay(size_t index) const;
  double loss_scale() const { return loss_scale_; }
  // The micro-batches of one step, where the parameter's group has a number of its own.
  std::optional<int64_t> accumulation_steps(size_t index) const {
    return plans_.at(index).accumulation_steps;
  }

 protected:
  // What the gradient of a decaying parameter takes in: decay times parameter, or nothing because
  // the subclass applies the decay by itself.
  enum class WeightDecay : uint8_t { InGradient, Decoupled };

  struct Settings {
    std::string name;  // in errors
    LearningRate learning_rate = 0.001;
    LearningRate weight_decay = 0.0;
    double loss_scale = 1;
    WeightDecay decay = WeightDecay::InGradient;
  };
  // Throws Value for lists of rates of several lengths, no parameters, one that occurs twice, two
  // of one name, dtypes that are no floats (Type), negative rates and decays, and a loss scale not
  // above 0.
  Optimizer(const OptimizerParameters& parameters, const Settings& settings);

  // A tensor of state for each parameter, of its shape, named "prefix.parameter"; of its dtype, but
  // float32 for 16-bit parameters.
  Parameters add_state(const std::string& prefix, double initial = 0);

  // One parameter's part of a step. Tensors are float32 for 16-bit parameters.
  struct Update {
    size_t index;
    Tensor parameter;
    Tensor gradient;  // with loss scale and weight decay taken in
    double rate;
    bool decays;
    double weight_decay;  // for Decoupled
    int64_t step;         // steps made before this one
  };
  // The parameter's new value; new state is noted with `write`.
  virtual Tensor update(const Update& update) = 0;
  // A number of this step as an operand that all updates share.
  Tensor number(double value, DType dtype);
  // Writes `value` into state when the step's new values are all recorded.
  void write(const Ref<nn::Parameter>& state, const Tensor& value);

 private:
  Tensors step(const Tensors& gradients);

  // A rate or decay; a number or list also is a parameter of that name, which a user may write.
  struct Schedule {
    LearningRate rate;
    std::string parameter;  // empty if it is none
    SeenValue seen;
  };
  struct Plan {
    size_t rate = 0, decay = 0;  // into schedules_
    bool decays = false;
    bool centralize = false;
    std::optional<int64_t> accumulation_steps;
    size_t counter = 0;  // of the steps that rates and corrections follow, into counters_
  };
  struct Counter {
    std::string parameter;
    StepCounter steps;
  };

  size_t add_counter(const std::string& name);
  int64_t steps_of(size_t counter) const;
  size_t add_schedule(const LearningRate& rate, const std::string& name);
  void check_lengths(std::string_view name) const;
  void order_parameters(const Parameters& order);
  double value_of(size_t schedule, int64_t step) const;
  Tensor prepared_gradient(size_t index, const Tensor& value, const Tensor& gradient,
                           double decay) const;

  Parameters parameters_;
  std::vector<Plan> plans_;  // one a parameter
  mutable std::vector<Schedule> schedules_;
  std::vector<size_t> sequence_;  // parameters with equal updates side by side
  double loss_scale_;
  WeightDecay decay_;
  mutable std::vector<Counter> counters_;  // the first is "global_step"
  std::vector<std::pair<Ref<nn::Parameter>, Tensor>> writes_;
  struct StepNumber {
    double value;
    DType dtype;
    Tensor tensor;
  };
  std::vector<StepNumber> numbers_;
};

// Calls `function`, and if a trace is being recorded, again at each of its replays: for steps whose
// numbers and decisions a trace cannot hold. Its results are no operands of what is traced, and
// the trace keeps `owner`, whose function it is, alive (unless it is a variable, which must live
// on).
LAMELLA_API Tensors called_at_each_replay(nn::Cell& owner, const Tensors& operands,
                                          const std::function<Tensors(const Tensors&)>& function);

// Whether weight decay applies to a parameter when the whole network has one: not to those whose
// name says beta or gamma.
LAMELLA_API bool decays_by_default(const nn::Parameter& parameter);

}  // namespace lamella::optim
