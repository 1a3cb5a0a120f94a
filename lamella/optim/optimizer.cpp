// What all optimizers do: groups, rates, decay, and the order of writing.
#include "lamella/optim/optimizer.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "lamella/ir/call_site.h"
#include "lamella/ir/trace.h"
#include "lamella/ir/window.h"
#include "lamella/nn/initializer.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/tensor_operators.h"

namespace lamella::optim {

namespace {

bool never_decays(const LearningRate& decay) {
  const double* number = std::get_if<double>(&decay);
  return number != nullptr && *number == 0;
}

// A rate as the tensor that stands for it in checkpoints.
Tensor as_tensor(const LearningRate& rate) {
  if (const double* number = std::get_if<double>(&rate)) {
    const auto single = static_cast<float>(*number);
    return Tensor::from_data(DType::Float32, {}, &single);
  }
  const Rates& rates = std::get<Rates>(rate);
  return Tensor::from_vector<float>({static_cast<int64_t>(rates.size())},
                                    {rates.begin(), rates.end()});
}

LearningRate from_tensor(const Tensor& tensor) {
  if (tensor.rank() == 0) return tensor.item();
  const std::vector<float> rates = tensor.to_vector<float>();
  return Rates(rates.begin(), rates.end());
}

}  // namespace

bool decays_by_default(const nn::Parameter& parameter) {
  return parameter.name().find("beta") == std::string::npos &&
         parameter.name().find("gamma") == std::string::npos;
}

Optimizer::Optimizer(const OptimizerParameters& parameters, const Settings& settings)
    : Layer(nn::NamePrefix::None), loss_scale_(settings.loss_scale), decay_(settings.decay) {
  if (!(loss_scale_ > 0)) {
    fail(ErrorKind::Value, "[{}] loss_scale must be above 0, got {}", settings.name, loss_scale_);
  }
  const size_t rate = add_schedule(settings.learning_rate, "learning_rate");
  add_counter("global_step");
  const size_t decay = add_schedule(settings.weight_decay, "");
  std::unordered_map<const nn::Parameter*, size_t> seen;
  std::unordered_set<std::string> names;
  for (size_t g = 0; g < parameters.groups.size(); ++g) {
    const ParameterGroup& group = parameters.groups[g];
    Plan plan{.rate = rate,
              .decay = decay,
              .centralize = group.centralize_gradients,
              .accumulation_steps = group.accumulation_steps};
    if (group.accumulation_steps) {
      if (*group.accumulation_steps < 1) {
        fail(ErrorKind::Value, "[{}] accumulation_steps of group {} must be at least 1, got {}",
             settings.name, g, *group.accumulation_steps);
      }
      plan.counter = add_counter(fmt::format("global_step_group_{}", g));
    }
    if (group.learning_rate) {
      plan.rate = add_schedule(*group.learning_rate, fmt::format("learning_rate_group_{}", g));
    }
    if (group.weight_decay) plan.decay = add_schedule(*group.weight_decay, "");
    for (const Ref<nn::Parameter>& parameter : group.parameters) {
      if (!parameter)
        fail(ErrorKind::Type, "[{}] a group holds what is no parameter", settings.name);
      if (!is_float(parameter->dtype())) {
        fail(ErrorKind::Type, "[{}] only float parameters are trained, '{}' is {}", settings.name,
             parameter->name(), text(parameter->type()));
      }
      const auto [place, is_new] = seen.emplace(parameter.get(), g);
      if (!is_new) {
        fail(ErrorKind::Value, "[{}] the parameter '{}' is in group {} and in group {}",
             settings.name, parameter->name(), place->second, g);
      }
      if (!names.insert(parameter->name()).second) {
        fail(ErrorKind::Value,
             "[{}] two parameters have the name '{}': each needs one of its own, as a network "
             "gives them when its cells are added",
             settings.name, parameter->name());
      }
      plan.decays = !never_decays(schedules_[plan.decay].rate) &&
                    (parameters.grouped || decays_by_default(*parameter));
      parameters_.push_back(parameter);
      plans_.push_back(plan);
    }
  }
  check_lengths(settings.name);
  if (parameters_.empty()) fail(ErrorKind::Value, "[{}] there are no parameters", settings.name);
  if (!parameters.order.empty()) order_parameters(parameters.order);

  // Parameters whose updates are the same program follow one another, so that they run as one.
  sequence_.resize(parameters_.size());
  for (size_t i = 0; i < sequence_.size(); ++i) sequence_[i] = i;
  std::stable_sort(sequence_.begin(), sequence_.end(), [&](size_t a, size_t b) {
    const auto key = [&](size_t i) {
      return std::tuple(parameters_[i]->dtype(), plans_[i].decays, plans_[i].centralize);
    };
    return key(a) < key(b);
  });
  // First values are computed now, so that the first step is the same graph as the second.
  Window::of_thread().flush();
}

// Lists of rates end at the same step.
void Optimizer::check_lengths(std::string_view name) const {
  std::optional<size_t> length;
  for (const Schedule& schedule : schedules_) {
    const Rates* rates = std::get_if<Rates>(&schedule.rate);
    if (rates == nullptr || schedule.parameter.empty()) continue;
    if (rates->size() != length.value_or(rates->size())) {
      fail(ErrorKind::Value,
           "[{}] the lists of learning rates must be of one length, one rate a step, got {} and {}",
           name, *length, rates->size());
    }
    length = rates->size();
  }
}

void Optimizer::order_parameters(const Parameters& order) {
  std::unordered_map<const nn::Parameter*, size_t> places;
  for (size_t i = 0; i < parameters_.size(); ++i) places[parameters_[i].get()] = i;
  std::vector<Plan> plans;
  for (const Ref<nn::Parameter>& parameter : order) {
    const auto place = places.find(parameter.get());
    if (place == places.end()) {
      fail(ErrorKind::Value, "[Optimizer] order_params holds '{}' twice, or no group holds it",
           parameter ? parameter->name() : "nothing");
    }
    plans.push_back(plans_[place->second]);
    places.erase(place);
  }
  if (!places.empty()) {
    fail(ErrorKind::Value, "[Optimizer] order_params leaves out '{}'",
         parameters_[places.begin()->second]->name());
  }
  parameters_ = order;
  plans_ = std::move(plans);
}

size_t Optimizer::add_schedule(const LearningRate& rate, const std::string& name) {
  check_rate(rate, name.empty() ? "weight_decay" : "learning_rate");
  Schedule schedule{.rate = rate, .parameter = {}, .seen = {}};
  if (const auto* object = std::get_if<Ref<LearningRateSchedule>>(&rate)) {
    if (!*object) fail(ErrorKind::Type, "[{}] is no schedule", name);
  } else if (!name.empty()) {
    const auto parameter = make_ref<nn::Parameter>(as_tensor(rate), name,
                                                   nn::ParameterOptions{.requires_grad = false});
    add_parameter(name, parameter);
    // As the parameter holds it: a resumed run, which reads it there, goes on with the same bits.
    schedule.rate = from_tensor(parameter->tensor());
    schedule.parameter = name;
    schedule.seen = SeenValue::of(*parameter);
  }
  schedules_.push_back(std::move(schedule));
  return schedules_.size() - 1;
}

double Optimizer::value_of(size_t index, int64_t step) const {
  Schedule& schedule = schedules_[index];
  Tracer::cannot_repeat("it reads a learning rate or weight decay");
  if (!schedule.parameter.empty()) {
    const nn::Parameter& parameter = *own_parameter(schedule.parameter);
    if (SeenValue::of(parameter) != schedule.seen) {
      schedule.rate = from_tensor(parameter.tensor());
      schedule.seen = SeenValue::of(parameter);
    }
  }
  return rate_at(schedule.rate, step);
}

size_t Optimizer::add_counter(const std::string& name) {
  add_parameter(name, StepCounter::make_parameter(name));
  counters_.push_back({.parameter = name, .steps = {}});
  return counters_.size() - 1;
}

int64_t Optimizer::steps_of(size_t counter) const {
  Tracer::cannot_repeat("it reads an optimizer's counter of steps");
  return counters_[counter].steps.value(*own_parameter(counters_[counter].parameter));
}

int64_t Optimizer::global_step() const {
  return steps_of(0);
}

double Optimizer::learning_rate(size_t index) const {
  const Plan& plan = plans_.at(index);
  return value_of(plan.rate, steps_of(plan.counter));
}

double Optimizer::weight_decay(size_t index) const {
  const Plan& plan = plans_.at(index);
  return plan.decays ? value_of(plan.decay, steps_of(plan.counter)) : 0;
}

Parameters Optimizer::add_state(const std::string& prefix, double initial) {
  Parameters state;
  for (const Ref<nn::Parameter>& parameter : parameters_) {
    TensorType type = parameter->type();
    type.dtype = lamella::compute_dtype(type.dtype);
    state.push_back(make_ref<nn::Parameter>(nn::filled(type, initial),
                                            prefix + "." + parameter->name(),
                                            nn::ParameterOptions{.requires_grad = false}));
    adopt_parameter(state.back());
  }
  return state;
}

Tensors called_at_each_replay(nn::Cell& owner, const Tensors& operands,
                              const std::function<Tensors(const Tensors&)>& function) {
  Tracer* const tracer = Tracer::current();
  if (tracer == nullptr) return function(operands);
  std::vector<Ref<Value>> given;
  for (const Tensor& operand : operands) given.push_back(operand.value());
  Ref<nn::Cell> held(owner.is_held() ? &owner : nullptr);
  tracer->called(
      [function, held = std::move(held),
       line = current_call_site()](std::span<const Ref<Value>> values) {
        const CallSiteScope site(line);
        Tensors again;
        for (const Ref<Value>& value : values) again.emplace_back(value);
        function(again);
        return std::vector<Ref<Value>>();
      },
      given, {});
  const TracingPaused paused;
  return function(operands);
}

Tensor Optimizer::number(double value, DType dtype) {
  for (const StepNumber& known : numbers_) {
    if (known.value == value && known.dtype == dtype) return known.tensor;
  }
  numbers_.push_back({value, dtype, Tensor::scalar(dtype, value)});
  return numbers_.back().tensor;
}

void Optimizer::write(const Ref<nn::Parameter>& state, const Tensor& value) {
  writes_.emplace_back(state, value);
}

Tensor Optimizer::prepared_gradient(size_t index, const Tensor& value, const Tensor& gradient,
                                    double decay) const {
  Tensor prepared =
      gradient.dtype() == value.dtype() ? gradient : ops::cast(gradient, value.dtype());
  if (loss_scale_ != 1) prepared = prepared * (1 / loss_scale_);
  const Plan& plan = plans_[index];
  if (plan.decays && decay_ == WeightDecay::InGradient) prepared = prepared + value * decay;
  if (plan.centralize && prepared.rank() > 1) {
    Axes axes;
    for (int axis = 1; axis < prepared.rank(); ++axis) axes.push_back(axis);
    prepared = prepared - ops::mean(prepared, axes, true);
  }
  return prepared;
}

Tensors Optimizer::construct(const Tensors& gradients) {
  // Rates and counters of steps are numbers that a trace cannot hold.
  return called_at_each_replay(*this, gradients,
                               [this](const Tensors& given) { return step(given); });
}

Tensors Optimizer::step(const Tensors& gradients) {
  if (gradients.size() != parameters_.size()) {
    fail(ErrorKind::Value, "[{}] there are {} parameters, but {} gradients", class_name(),
         parameters_.size(), gradients.size());
  }
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].defined() && gradients[i].shape() != parameters_[i]->shape()) {
      fail(ErrorKind::Value, "[{}] '{}' has shape {}, its gradient {}", class_name(),
           parameters_[i]->name(), text(parameters_[i]->shape()), text(gradients[i].shape()));
    }
  }
  const ProvenanceScope scope({.layer = current_layer(), .phase = Phase::Update});
  std::vector<bool> counted(counters_.size(), false);
  counted[0] = true;
  writes_.clear();
  numbers_.clear();
  for (size_t index : sequence_) {
    if (!gradients[index].defined()) continue;
    const Tensor& tensor = parameters_[index]->tensor();
    const bool widened = is_low_precision(tensor.dtype());
    const Tensor value = widened ? ops::cast(tensor, DType::Float32) : tensor;
    const Plan& plan = plans_[index];
    const int64_t step = steps_of(plan.counter);
    counted[plan.counter] = true;
    const double decay = plan.decays ? value_of(plan.decay, step) : 0;
    const Tensor updated =
        update({.index = index,
                .parameter = value,
                .gradient = prepared_gradient(index, value, gradients[index], decay),
                .rate = value_of(plan.rate, step),
                .decays = plan.decays,
                .weight_decay = decay,
                .step = step});
    writes_.emplace_back(parameters_[index],
                         widened ? ops::cast(updated, tensor.dtype()) : updated);
  }
  for (size_t i = 0; i < counters_.size(); ++i) {
    if (!counted[i]) continue;
    counters_[i].steps.set(*own_parameter(counters_[i].parameter), steps_of(i) + 1);
  }
  for (const auto& [parameter, value] : writes_) parameter->tensor().assign(value);
  writes_.clear();
  Window::of_thread().request_flush();
  Tensors updated;
  for (const Ref<nn::Parameter>& parameter : parameters_) updated.push_back(parameter->tensor());
  return updated;
}

}  // namespace lamella::optim
