// Steps, loops, metrics and checkpoints.
#include "python/src/train.h"

#include "python/src/cell.h"
#include "python/src/dataset.h"
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "lamella/train/checkpoint.h"
#include "lamella/train/model.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace lamella::python {

namespace {

using nn::Cell;

// A metric written in Python.
class PythonMetric : public train::Metric {
 public:
  NB_TRAMPOLINE(train::Metric);
  void clear() override {
    const HostLock lock;
    nb_trampoline.base().attr("clear")();
  }
  void update(const std::vector<Tensor>& inputs) override {
    const HostLock lock;
    nb::list arguments;
    for (const Tensor& input : inputs) arguments.append(input);
    nb_trampoline.base().attr("update")(*nb::tuple(arguments));
  }
  double eval() override {
    const HostLock lock;
    return nb::cast<double>(nb::float_(nb_trampoline.base().attr("eval")()));
  }
  bool takes_loss() const override {
    const HostLock lock;
    return nb::getattr(nb_trampoline.base(), "_takes_loss", nb::bool_(false)).is(nb::bool_(true));
  }
};

template <typename T>
auto metric_class(nb::module_& module, const char* name) {
  return nb::class_<T, train::Metric>(module, name)
      .def("clear", [](T& self) { self.clear(); })
      .def("update",
           [](T& self, const nb::args& inputs) { self.update(tensors_from(inputs, "metric")); })
      .def("eval", [](T& self) { return self.eval(); });
}

void add_metrics(nb::module_& module) {
  nb::class_<train::Metric, PythonMetric>(
      module, "Metric", nb::dynamic_attr(), nb::is_weak_referenceable(),
      shared_object<train::Metric>(),
      "A figure over a whole dataset: clear(), update(*outputs) for each batch, eval() at the end.")
      .def(nb::init<>());
  metric_class<train::Accuracy>(module, "Accuracy")
      .def(
          "__init__",
          [](train::Accuracy* self, bool multilabel) {
            new (self) train::Accuracy(multilabel ? train::AccuracyKind::Multilabel
                                                  : train::AccuracyKind::Classification);
          },
          "multilabel"_a);
  metric_class<train::Loss>(module, "Loss").def(nb::init<>());
  metric_class<train::TopKCategoricalAccuracy>(module, "TopKCategoricalAccuracy")
      .def(nb::init<int64_t>(), "k"_a);
  module.def("get_metric", train::get_metric, "name"_a);
}

void add_steps(nb::module_& module) {
  layer_class<train::WithLossCell>(module, "WithLossCell")
      .def(nb::init<Ref<Cell>, Ref<Cell>>(), "backbone"_a, "loss_fn"_a);
  layer_class<train::WithEvalCell>(module, "WithEvalCell")
      .def(nb::init<Ref<Cell>, Ref<Cell>>(), "network"_a, "loss_fn"_a);
  layer_class<train::TrainOneStepCell>(module, "TrainOneStepCell")
      .def(nb::init<Ref<Cell>, Ref<optim::Optimizer>, double>(), "network"_a, "optimizer"_a,
           "sens"_a);
}

// ---- Checkpoints ----

nb::dict contents(const train::Checkpoint& checkpoint) {
  nb::dict parameters;
  for (const auto& [name, tensor] : checkpoint.parameters) parameters[name.c_str()] = tensor;
  return parameters;
}

std::optional<train::RunState> run_state_from(nb::handle run) {
  if (run.is_none()) return std::nullopt;
  const auto numbers = nb::cast<std::vector<int64_t>>(run);
  return train::RunState{.epoch = numbers.at(0),
                         .step = numbers.at(1),
                         .random = random_state(),
                         .data = {.epoch = numbers.at(2), .batch = numbers.at(3)}};
}

void add_checkpoints(nb::module_& module) {
  module.def(
      "save_checkpoint",
      [](nb::list parameters, const std::string& path, nb::handle run,
         const std::map<std::string, std::string>& extra) {
        train::NamedTensors named;
        for (nb::handle row : parameters) {
          const auto pair = nb::cast<nb::tuple>(row);
          named.emplace_back(nb::cast<std::string>(pair[0]), nb::cast<Tensor>(pair[1]));
        }
        const auto state = run_state_from(run);
        const HostReleased released;
        train::save_checkpoint(named, path, state, extra);
      },
      "parameters"_a, "path"_a, "run"_a.none(), "extra"_a);
  module.def(
      "load_checkpoint",
      [](const std::string& path) {
        train::Checkpoint checkpoint;
        {
          const HostReleased released;
          checkpoint = train::load_checkpoint(path);
        }
        return nb::make_tuple(contents(checkpoint), checkpoint.extra);
      },
      "path"_a);
  module.def(
      "load_param_into_net",
      [](Cell& network, nb::dict parameters, bool strict) {
        train::Checkpoint checkpoint;
        for (auto [name, tensor] : parameters) {
          checkpoint.parameters.emplace_back(nb::cast<std::string>(name), nb::cast<Tensor>(tensor));
        }
        const train::NotLoaded left = train::load_param_into_net(
            network, checkpoint, strict ? train::Match::Strict : train::Match::Lenient);
        return nb::make_tuple(left.parameters, left.checkpoint);
      },
      "network"_a, "parameters"_a, "strict"_a);
}

// ---- Loops: they run without Python's lock, which callbacks and workers take when they need it
// ----

Ref<data::Dataset> dataset_of(const DatasetHandle* handle) {
  return handle == nullptr ? Ref<data::Dataset>() : handle->dataset;
}

void fit(train::Model& self, int64_t epoch, const DatasetHandle* dataset,
         const DatasetHandle* valid, int64_t valid_frequency, train::Callbacks callbacks, bool sink,
         int64_t sink_size, int64_t initial_epoch) {
  const train::FitOptions options{.train = {.callbacks = std::move(callbacks),
                                            .dataset_sink_mode = sink,
                                            .sink_size = sink_size,
                                            .initial_epoch = initial_epoch},
                                  .valid_frequency = valid_frequency};
  const HostReleased released;
  self.fit(epoch, dataset_of(dataset), dataset_of(valid), options);
}

void add_model(nb::module_& module) {
  nb::class_<train::Model>(module, "Model", nb::dynamic_attr(), shared_object<train::Model>())
      .def(
          "__init__",
          [](train::Model* self, Ref<Cell> network, Ref<Cell> loss, Ref<optim::Optimizer> optimizer,
             const train::Metrics& metrics, Ref<Cell> eval_network) {
            new (self) train::Model(std::move(network), {.loss_fn = std::move(loss),
                                                         .optimizer = std::move(optimizer),
                                                         .metrics = metrics,
                                                         .eval_network = std::move(eval_network)});
          },
          "network"_a, "loss_fn"_a.none(), "optimizer"_a.none(), "metrics"_a,
          "eval_network"_a.none())
      .def("_fit", fit, "epoch"_a, "train_dataset"_a, "valid_dataset"_a.none(), "valid_frequency"_a,
           "callbacks"_a, "sink"_a, "sink_size"_a, "initial_epoch"_a)
      .def(
          "_eval",
          [](train::Model& self, const DatasetHandle& dataset, train::Callbacks callbacks) {
            const HostReleased released;
            return self.eval(dataset.dataset, callbacks);
          },
          "dataset"_a, "callbacks"_a)
      .def("_predict",
           [](train::Model& self, const nb::args& inputs) {
             return outputs_of(self.predict(tensors_from(inputs, "predict")));
           })
      .def_prop_ro("train_network", [](train::Model& self) { return self.train_network(); })
      .def_prop_ro("predict_network", [](train::Model& self) { return self.predict_network(); })
      .def_prop_ro("_network", [](train::Model& self) { return self.network(); });
}

}  // namespace

void add_train(nb::module_& module) {
  add_steps(module);
  add_metrics(module);
  add_checkpoints(module);
  add_model(module);
}

}  // namespace lamella::python
