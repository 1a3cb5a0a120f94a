// Callbacks: those of C++, and subclasses written in Python.
#include "python/src/cell.h"
#include "python/src/dataset.h"
#include "python/src/dataset_arrays.h"
#include "python/src/train.h"
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "lamella/train/model_checkpoint.h"
#include "lamella/train/monitor.h"
#include "lamella/train/plateau.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace lamella::python {

namespace {

using train::Callback;
using train::RunContext;

#define LAMELLA_TURNS(apply)                                                                    \
  apply(begin) apply(epoch_begin) apply(step_begin) apply(step_end) apply(epoch_end) apply(end) \
      apply(on_train_begin) apply(on_train_epoch_begin) apply(on_train_step_begin)              \
          apply(on_train_step_end) apply(on_train_epoch_end) apply(on_train_end)                \
              apply(on_eval_begin) apply(on_eval_epoch_begin) apply(on_eval_step_begin)         \
                  apply(on_eval_step_end) apply(on_eval_epoch_end) apply(on_eval_end)

// A callback whose turns a Python subclass may replace.
template <typename Base>
class OverridableCallback : public Base {
 public:
  NB_TRAMPOLINE(Base);

  std::string class_name() const override {
    const HostLock lock;
    return nb::type_name(nb_trampoline.base().type()).c_str();
  }
  std::map<std::string, std::string> state() const override {
    const HostLock lock;
    const nb::detail::ticket ticket(nb_trampoline, "state", nb::detail::str_hash("state"), false);
    if (!ticket.key.is_valid()) return Base::state();
    return nb::cast<std::map<std::string, std::string>>(nb_trampoline.base().attr(ticket.key)());
  }
  void restore(const std::map<std::string, std::string>& state) override {
    const HostLock lock;
    const nb::detail::ticket ticket(nb_trampoline, "restore", nb::detail::str_hash("restore"),
                                    false);
    if (!ticket.key.is_valid()) return Base::restore(state);
    nb_trampoline.base().attr(ticket.key)(state);
  }

#define LAMELLA_TURN(turn)                                         \
  void turn(RunContext& context) override {                        \
    if (call(#turn, nb::detail::str_hash(#turn), context)) return; \
    Base::turn(context);                                           \
  }
  LAMELLA_TURNS(LAMELLA_TURN)
#undef LAMELLA_TURN

 private:
  // Whether Python defines the turn; then it was called.
  bool call(const char* turn, uint64_t hash, RunContext& context) {
    const HostLock lock;
    const nb::detail::ticket ticket(nb_trampoline, turn, hash, false);
    if (!ticket.key.is_valid()) return false;
    nb_trampoline.base().attr(ticket.key)(Ref<RunContext>(&context));
    return true;
  }
};

// Binds a callback's turns; they are the C++ ones, also when a subclass calls super().
template <typename Monitor, typename... Bases, typename... Extra>
auto callback_class(nb::module_& module, const char* name, const Extra&... extra) {
  nb::class_<Monitor, Bases..., OverridableCallback<Monitor>> bound(module, name, extra...);
#define LAMELLA_TURN(turn) \
  bound.def(#turn, [](Monitor& self, RunContext& context) { self.Monitor::turn(context); });
  LAMELLA_TURNS(LAMELLA_TURN)
#undef LAMELLA_TURN
  bound.def("state", [](Monitor& self) { return self.Monitor::state(); });
  bound.def("restore", [](Monitor& self, const std::map<std::string, std::string>& state) {
    self.Monitor::restore(state);
  });
  return bound;
}

// What original_args() gives: the run as it stands, read and written through.
struct RunParameters {
  Ref<RunContext> context;
  train::CallbackParams& operator*() const { return context->original_args(); }
};

template <typename T>
auto reader(T train::CallbackParams::* field) {
  return [field](RunParameters& self) { return (*self).*field; };
}

train::PlateauOptions plateau_from(const std::string& monitor, const std::string& mode,
                                   double min_delta, int64_t patience, bool verbose) {
  if (mode != "auto" && mode != "min" && mode != "max") {
    fail(ErrorKind::Value, "[callback] mode must be 'auto', 'min' or 'max', got '{}'", mode);
  }
  return {.monitor = monitor,
          .mode = mode == "auto"  ? train::Improvement::Auto
                  : mode == "min" ? train::Improvement::Less
                                  : train::Improvement::More,
          .min_delta = min_delta,
          .patience = patience,
          .verbose = verbose};
}

void add_parameters(nb::module_& module) {
  using train::CallbackParams;
  nb::class_<RunParameters>(module, "RunParameters", nb::dynamic_attr())
      .def_prop_ro("mode",
                   [](RunParameters& self) {
                     return (*self).mode == train::RunMode::Train ? "train" : "eval";
                   })
      .def_prop_ro("epoch_num", reader(&CallbackParams::epoch_num))
      .def_prop_ro("batch_num", reader(&CallbackParams::batch_num))
      .def_prop_ro("cur_epoch_num", reader(&CallbackParams::cur_epoch_num))
      .def_prop_ro("cur_step_num", reader(&CallbackParams::cur_step_num))
      .def_prop_ro("network", reader(&CallbackParams::network))
      .def_prop_ro("train_network", reader(&CallbackParams::train_network))
      .def_prop_ro("eval_network", reader(&CallbackParams::eval_network))
      .def_prop_ro("optimizer", reader(&CallbackParams::optimizer))
      .def_prop_ro("dataset_sink_mode", reader(&CallbackParams::dataset_sink_mode))
      .def_prop_ro("list_callback", reader(&CallbackParams::list_callback))
      .def_prop_ro("metrics", reader(&CallbackParams::metrics))
      .def_prop_ro("eval_results", reader(&CallbackParams::metrics))
      .def_prop_ro("train_dataset",
                   [](RunParameters& self) { return DatasetHandle{(*self).train_dataset}; })
      .def_prop_ro("valid_dataset",
                   [](RunParameters& self) { return DatasetHandle{(*self).valid_dataset}; })
      .def_prop_ro("net_outputs",
                   [](RunParameters& self) { return outputs_of((*self).net_outputs); });
}

}  // namespace

void add_callbacks(nb::module_& module) {
  nb::class_<RunContext>(
      module, "RunContext", shared_object<RunContext>(),
      "What callbacks are told: original_args() has cur_epoch_num, cur_step_num, batch_num,\n"
      "epoch_num, net_outputs (the loss), network, optimizer, ...; request_stop() ends the "
      "training\n"
      "after this turn.")
      .def("original_args", [](RunContext& self) { return RunParameters{Ref<RunContext>(&self)}; })
      .def("request_stop", &RunContext::request_stop)
      .def("get_stop_requested", &RunContext::get_stop_requested);
  add_parameters(module);
  callback_class<Callback>(module, "Callback", nb::dynamic_attr(), nb::is_weak_referenceable(),
                           shared_object<Callback>())
      .def(nb::init<>());
  callback_class<train::LossMonitor, Callback>(module, "LossMonitor")
      .def(nb::init<int64_t>(), "per_print_times"_a);
  callback_class<train::TimeMonitor, Callback>(module, "TimeMonitor")
      .def(nb::init<int64_t>(), "data_size"_a);
  callback_class<train::MemoryMonitor, Callback>(module, "MemoryMonitor")
      .def(nb::init<int64_t>(), "interval"_a);
  callback_class<train::History, Callback>(module, "History")
      .def(nb::init<>())
      .def_prop_ro("_epochs", &train::History::epochs)
      .def_prop_ro("_values", &train::History::values);
  callback_class<train::EarlyStopping, Callback>(module, "EarlyStopping")
      .def(
          "__init__",
          [](train::EarlyStopping* self, const std::string& monitor, const std::string& mode,
             double min_delta, int64_t patience, bool verbose, std::optional<double> baseline,
             bool restore_best_weights) {
            new (self) OverridableCallback<train::EarlyStopping>(train::EarlyStoppingOptions{
                .plateau = plateau_from(monitor, mode, min_delta, patience, verbose),
                .baseline = baseline,
                .restore_best_weights = restore_best_weights});
          },
          "monitor"_a, "mode"_a, "min_delta"_a, "patience"_a, "verbose"_a, "baseline"_a.none(),
          "restore_best_weights"_a);
  callback_class<train::ReduceLROnPlateau, Callback>(module, "ReduceLROnPlateau")
      .def(
          "__init__",
          [](train::ReduceLROnPlateau* self, const std::string& monitor, const std::string& mode,
             double min_delta, int64_t patience, bool verbose, double factor, int64_t cooldown,
             double min_lr) {
            new (self)
                OverridableCallback<train::ReduceLROnPlateau>(train::ReduceLROnPlateauOptions{
                    .plateau = plateau_from(monitor, mode, min_delta, patience, verbose),
                    .factor = factor,
                    .cooldown = cooldown,
                    .min_lr = min_lr});
          },
          "monitor"_a, "mode"_a, "min_delta"_a, "patience"_a, "verbose"_a, "factor"_a, "cooldown"_a,
          "min_lr"_a);
  callback_class<train::LearningRateScheduler, Callback>(module, "LearningRateScheduler")
      .def(
          "__init__",
          [](train::LearningRateScheduler* self, nb::object function) {
            new (self) OverridableCallback<train::LearningRateScheduler>(
                [function = SharedObject(std::move(function))](double rate, int64_t step) {
                  const HostLock lock;
                  return nb::cast<double>(nb::float_(nb::handle(function.get())(rate, step)));
                });
          },
          "function"_a);
  callback_class<train::ModelCheckpoint, Callback>(module, "ModelCheckpoint")
      .def(
          "__init__",
          [](train::ModelCheckpoint* self, const std::string& prefix, const std::string& directory,
             int64_t steps, int64_t seconds, int64_t keep, Ref<nn::Cell> network, bool async) {
            new (self) OverridableCallback<train::ModelCheckpoint>(
                prefix, directory,
                train::CheckpointConfig{.save_checkpoint_steps = steps,
                                        .save_checkpoint_seconds = seconds,
                                        .keep_checkpoint_max = keep,
                                        .saved_network = std::move(network),
                                        .async_save = async});
          },
          "prefix"_a, "directory"_a, "steps"_a, "seconds"_a, "keep"_a, "network"_a.none(),
          "async"_a)
      .def_prop_ro("latest_ckpt_file_name", &train::ModelCheckpoint::latest_ckpt_file_name);
  callback_class<train::SummaryMonitor, Callback>(module, "SummaryMonitor")
      .def(nb::init<const std::string&, int64_t>(), "folder"_a, "every_steps"_a = 10);
}

}  // namespace lamella::python
