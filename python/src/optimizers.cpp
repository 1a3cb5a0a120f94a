// Optimizers and schedules of rates under their C++ names.
#include "python/src/cell.h"
#include "python/src/layer_arguments.h"
#include "python/src/parameter_object.h"
#include <nanobind/stl/string.h>

#include "lamella/optim/adam.h"
#include "lamella/optim/adaptive.h"
#include "lamella/optim/sgd.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace lamella::python {

namespace {

// An optimizer whose construct is written in Python.
class PythonOptimizer : public optim::Optimizer {
 public:
  PythonOptimizer(nb::handle learning_rate, nb::handle parameters, nb::handle weight_decay,
                  double loss_scale)
      : Optimizer(optimizer_parameters_from(parameters), {.name = "Optimizer",
                                                          .learning_rate = rate_from(learning_rate),
                                                          .weight_decay = rate_from(weight_decay),
                                                          .loss_scale = loss_scale}) {}

 protected:
  Tensor update(const Update&) override {
    fail(ErrorKind::Unsupported, "[Optimizer] a subclass must define construct");
  }
};

// A schedule whose construct is written in Python: a step's tensor in, a rate's tensor out.
class PythonSchedule : public optim::LearningRateSchedule {
 public:
  NB_TRAMPOLINE(optim::LearningRateSchedule);
  double rate(int64_t step) const override {
    const HostLock lock;
    Tensor global_step = Tensor(Value::scalar_of(DType::Int32, step));
    nb::object rate = nb_trampoline.base().attr("construct")(global_step);
    return is_tensor(rate.ptr()) ? tensor_of(rate.ptr()).item() : nb::cast<double>(rate);
  }
};

optim::Nesterov nesterov_of(bool on) {
  return on ? optim::Nesterov::On : optim::Nesterov::Off;
}
optim::Decay decay_of(bool stairs) {
  return stairs ? optim::Decay::Stairs : optim::Decay::Smooth;
}

template <typename Schedule>
auto schedule(nb::module_& module, const char* name) {
  return nb::class_<Schedule, optim::LearningRateSchedule>(module, name);
}

void add_schedules(nb::module_& module) {
  using namespace optim;
  nb::class_<LearningRateSchedule, nn::Cell, PythonSchedule>(
      module, "LearningRateSchedule",
      "The rate of each step, counted from 0: a subclass computes it in construct(global_step).")
      .def(nb::init<>())
      .def("construct",
           [](LearningRateSchedule& self, const Tensor& step) {
             return self.LearningRateSchedule::construct(step);
           })
      .def("_rate", [](LearningRateSchedule& self, int64_t step) { return self.rate(step); });
  schedule<ExponentialDecayLR>(module, "ExponentialDecayLR")
      .def(
          "__init__",
          [](ExponentialDecayLR* self, double rate, double decay, int64_t steps, bool stairs) {
            new (self) ExponentialDecayLR(rate, decay, steps, decay_of(stairs));
          },
          "learning_rate"_a, "decay_rate"_a, "decay_steps"_a, "is_stair"_a);
  schedule<NaturalExpDecayLR>(module, "NaturalExpDecayLR")
      .def(
          "__init__",
          [](NaturalExpDecayLR* self, double rate, double decay, int64_t steps, bool stairs) {
            new (self) NaturalExpDecayLR(rate, decay, steps, decay_of(stairs));
          },
          "learning_rate"_a, "decay_rate"_a, "decay_steps"_a, "is_stair"_a);
  schedule<InverseDecayLR>(module, "InverseDecayLR")
      .def(
          "__init__",
          [](InverseDecayLR* self, double rate, double decay, int64_t steps, bool stairs) {
            new (self) InverseDecayLR(rate, decay, steps, decay_of(stairs));
          },
          "learning_rate"_a, "decay_rate"_a, "decay_steps"_a, "is_stair"_a);
  schedule<CosineDecayLR>(module, "CosineDecayLR")
      .def(nb::init<double, double, int64_t>(), "min_lr"_a, "max_lr"_a, "decay_steps"_a);
  schedule<PolynomialDecayLR>(module, "PolynomialDecayLR")
      .def(
          "__init__",
          [](PolynomialDecayLR* self, double rate, double end, int64_t steps, double power,
             bool stretch) {
            new (self) PolynomialDecayLR(rate, end, steps, power,
                                         stretch ? AfterDecay::Stretch : AfterDecay::Stay);
          },
          "learning_rate"_a, "end_learning_rate"_a, "decay_steps"_a, "power"_a,
          "update_decay_steps"_a);
  schedule<WarmUpLR>(module, "WarmUpLR")
      .def(nb::init<double, int64_t>(), "learning_rate"_a, "warmup_steps"_a);
}

}  // namespace

void add_optimizers(nb::module_& module) {
  using namespace optim;
  add_schedules(module);
  nb::class_<Optimizer, nn::Cell>(module, "OptimizerBase", nb::type_slots(cell_slots),
                                  "What all optimizers share: optimizer(gradients) makes a step, "
                                  "`parameters` are what it writes, `global_step` counts.")
      .def(
          "construct",
          [](Optimizer& self, nb::handle gradients) {
            return outputs_of(self.construct(outputs_from(gradients, "optimizer")));
          },
          "gradients"_a)
      .def_prop_ro("_parameters", [](Optimizer& self) { return to_list(self.parameters()); })
      .def_prop_ro("_step", [](Optimizer& self) { return self.global_step(); })
      .def_prop_ro("loss_scale", [](Optimizer& self) { return self.loss_scale(); })
      .def("_learning_rate",
           [](Optimizer& self, size_t index) { return self.learning_rate(index); })
      .def("_weight_decay", [](Optimizer& self, size_t index) { return self.weight_decay(index); });
  layer_class<PythonOptimizer, Optimizer>(module, "Optimizer")
      .def(nb::init<nb::handle, nb::handle, nb::handle, double>(), "learning_rate"_a.none(),
           "parameters"_a.none(), "weight_decay"_a.none(), "loss_scale"_a);
  layer_class<Adam, Optimizer>(module, "Adam")
      .def(
          "__init__",
          [](Adam* self, nb::handle parameters, nb::handle rate, double beta1, double beta2,
             double eps, bool nesterov, nb::handle weight_decay, double loss_scale, bool amsgrad) {
            new (self) Overridable<Adam>(optimizer_parameters_from(parameters),
                                         AdamOptions{.learning_rate = rate_from(rate),
                                                     .beta1 = beta1,
                                                     .beta2 = beta2,
                                                     .eps = eps,
                                                     .nesterov = nesterov_of(nesterov),
                                                     .amsgrad = amsgrad,
                                                     .weight_decay = rate_from(weight_decay),
                                                     .loss_scale = loss_scale});
          },
          "params"_a.none(), "learning_rate"_a.none(), "beta1"_a, "beta2"_a, "eps"_a,
          "use_nesterov"_a, "weight_decay"_a.none(), "loss_scale"_a, "use_amsgrad"_a);
  layer_class<AdamWeightDecay, Optimizer>(module, "AdamWeightDecay")
      .def(
          "__init__",
          [](AdamWeightDecay* self, nb::handle parameters, nb::handle rate, double beta1,
             double beta2, double eps, nb::handle weight_decay) {
            new (self) Overridable<AdamWeightDecay>(
                optimizer_parameters_from(parameters),
                AdamWeightDecayOptions{.learning_rate = rate_from(rate),
                                       .beta1 = beta1,
                                       .beta2 = beta2,
                                       .eps = eps,
                                       .weight_decay = rate_from(weight_decay)});
          },
          "params"_a.none(), "learning_rate"_a.none(), "beta1"_a, "beta2"_a, "eps"_a,
          "weight_decay"_a.none());
  layer_class<AdamW, Optimizer>(module, "AdamW")
      .def(
          "__init__",
          [](AdamW* self, nb::handle parameters, nb::handle rate, double beta1, double beta2,
             double eps, nb::handle weight_decay, bool decoupled, bool amsgrad) {
            new (self) Overridable<AdamW>(
                optimizer_parameters_from(parameters),
                AdamWOptions{.learning_rate = rate_from(rate),
                             .beta1 = beta1,
                             .beta2 = beta2,
                             .eps = eps,
                             .weight_decay = rate_from(weight_decay),
                             .decay = decoupled ? DecayForm::Decoupled : DecayForm::InGradient,
                             .amsgrad = amsgrad});
          },
          "params"_a.none(), "learning_rate"_a.none(), "beta1"_a, "beta2"_a, "eps"_a,
          "weight_decay"_a.none(), "decoupled"_a, "amsgrad"_a);
  layer_class<SGD, Optimizer>(module, "SGD")
      .def(
          "__init__",
          [](SGD* self, nb::handle parameters, nb::handle rate, double momentum, double dampening,
             nb::handle weight_decay, bool nesterov, double loss_scale) {
            new (self) Overridable<SGD>(optimizer_parameters_from(parameters),
                                        SgdOptions{.learning_rate = rate_from(rate),
                                                   .momentum = momentum,
                                                   .dampening = dampening,
                                                   .weight_decay = rate_from(weight_decay),
                                                   .nesterov = nesterov_of(nesterov),
                                                   .loss_scale = loss_scale});
          },
          "params"_a.none(), "learning_rate"_a.none(), "momentum"_a, "dampening"_a,
          "weight_decay"_a.none(), "nesterov"_a, "loss_scale"_a);
  layer_class<Momentum, Optimizer>(module, "Momentum")
      .def(
          "__init__",
          [](Momentum* self, nb::handle parameters, nb::handle rate, double momentum,
             nb::handle weight_decay, double loss_scale, bool nesterov) {
            new (self) Overridable<Momentum>(
                optimizer_parameters_from(parameters), rate_from(rate), momentum,
                MomentumOptions{.weight_decay = rate_from(weight_decay),
                                .loss_scale = loss_scale,
                                .nesterov = nesterov_of(nesterov)});
          },
          "params"_a.none(), "learning_rate"_a.none(), "momentum"_a, "weight_decay"_a.none(),
          "loss_scale"_a, "use_nesterov"_a);
  layer_class<RMSProp, Optimizer>(module, "RMSProp")
      .def(
          "__init__",
          [](RMSProp* self, nb::handle parameters, nb::handle rate, double decay, double momentum,
             double epsilon, bool centered, double loss_scale, nb::handle weight_decay) {
            new (self) Overridable<RMSProp>(
                optimizer_parameters_from(parameters),
                RmsPropOptions{.learning_rate = rate_from(rate),
                               .decay = decay,
                               .momentum = momentum,
                               .epsilon = epsilon,
                               .centering = centered ? Centering::On : Centering::Off,
                               .loss_scale = loss_scale,
                               .weight_decay = rate_from(weight_decay)});
          },
          "params"_a.none(), "learning_rate"_a.none(), "decay"_a, "momentum"_a, "epsilon"_a,
          "centered"_a, "loss_scale"_a, "weight_decay"_a.none());
  layer_class<Adagrad, Optimizer>(module, "Adagrad")
      .def(
          "__init__",
          [](Adagrad* self, nb::handle parameters, double accum, nb::handle rate, double loss_scale,
             nb::handle weight_decay) {
            new (self)
                Overridable<Adagrad>(optimizer_parameters_from(parameters),
                                     AdagradOptions{.accum = accum,
                                                    .learning_rate = rate_from(rate),
                                                    .loss_scale = loss_scale,
                                                    .weight_decay = rate_from(weight_decay)});
          },
          "params"_a.none(), "accum"_a, "learning_rate"_a.none(), "loss_scale"_a,
          "weight_decay"_a.none());
  layer_class<AdaMax, Optimizer>(module, "AdaMax")
      .def(
          "__init__",
          [](AdaMax* self, nb::handle parameters, nb::handle rate, double beta1, double beta2,
             double eps, nb::handle weight_decay, double loss_scale) {
            new (self) Overridable<AdaMax>(optimizer_parameters_from(parameters),
                                           AdaMaxOptions{.learning_rate = rate_from(rate),
                                                         .beta1 = beta1,
                                                         .beta2 = beta2,
                                                         .eps = eps,
                                                         .weight_decay = rate_from(weight_decay),
                                                         .loss_scale = loss_scale});
          },
          "params"_a.none(), "learning_rate"_a.none(), "beta1"_a, "beta2"_a, "eps"_a,
          "weight_decay"_a.none(), "loss_scale"_a);
  layer_class<Lamb, Optimizer>(module, "Lamb")
      .def(
          "__init__",
          [](Lamb* self, nb::handle parameters, nb::handle rate, double beta1, double beta2,
             double eps, nb::handle weight_decay) {
            new (self) Overridable<Lamb>(optimizer_parameters_from(parameters), rate_from(rate),
                                         LambOptions{.beta1 = beta1,
                                                     .beta2 = beta2,
                                                     .eps = eps,
                                                     .weight_decay = rate_from(weight_decay)});
          },
          "params"_a.none(), "learning_rate"_a.none(), "beta1"_a, "beta2"_a, "eps"_a,
          "weight_decay"_a.none());
}

}  // namespace lamella::python
