// Steps, loops, metrics and checkpoints.
#include "python/src/train.h"

#include "python/src/cell.h"
#include "python/src/dataset.h"
#include "python/src/source_location.h"
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "lamella/amp/loss_scale.h"
#include "lamella/train/model.h"
#include "lamella/train/model_checkpoint.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace lamella::python {

namespace {

using nn::Cell;

// Calls `make` with the optimizer, or the accumulation around one.
template <typename Make>
void with_updater(const Ref<Cell>& updater, const Make& make) {
  if (auto* const sums = dynamic_cast<train::GradientAccumulation*>(updater.get())) {
    make(Ref<train::GradientAccumulation>(sums));
  } else {
    make(Ref<optim::Optimizer>(dynamic_cast<optim::Optimizer*>(updater.get())));
  }
}

void add_steps(nb::module_& module) {
  layer_class<train::WithLossCell>(module, "WithLossCell")
      .def(nb::init<Ref<Cell>, Ref<Cell>>(), "backbone"_a, "loss_fn"_a);
  layer_class<train::WithEvalCell>(module, "WithEvalCell")
      .def(nb::init<Ref<Cell>, Ref<Cell>>(), "network"_a, "loss_fn"_a);
  layer_class<train::GradientAccumulation>(module, "GradientAccumulation")
      .def(nb::init<Ref<optim::Optimizer>, int64_t>(), "optimizer"_a, "steps"_a)
      .def("finish", [](train::GradientAccumulation& self) { self.finish(); });
  using train::TrainOneStepCell;
  layer_class<TrainOneStepCell>(module, "TrainOneStepCell")
      .def(
          "__init__",
          [](TrainOneStepCell* self, Ref<Cell> network, Ref<Cell> updater, double sens) {
            with_updater(updater, [&](auto kind) {
              new (self) Overridable<TrainOneStepCell>(std::move(network), std::move(kind), sens);
            });
          },
          "network"_a, "optimizer"_a, "sens"_a);
  using train::TrainOneStepWithLossScaleCell;
  layer_class<TrainOneStepWithLossScaleCell, TrainOneStepCell>(module,
                                                               "TrainOneStepWithLossScaleCell")
      .def(
          "__init__",
          [](TrainOneStepWithLossScaleCell* self, Ref<Cell> network, Ref<Cell> updater,
             Ref<amp::LossScaleUpdate> loss_scale) {
            with_updater(updater, [&](auto kind) {
              new (self) Overridable<TrainOneStepWithLossScaleCell>(
                  std::move(network), std::move(kind), std::move(loss_scale));
            });
          },
          "network"_a, "optimizer"_a, "scale_sense"_a);
}

// ---- Checkpoints ----

nb::dict contents(const train::Checkpoint& checkpoint) {
  nb::dict parameters;
  for (const auto& [name, tensor] : checkpoint.parameters) parameters[name.c_str()] = tensor;
  return parameters;
}

void add_checkpoints(nb::module_& module) {
  module.def(
      "save_checkpoint",
      [](nb::list parameters, const std::string& path,
         const std::map<std::string, std::string>& extra) {
        train::NamedTensors named;
        for (nb::handle row : parameters) {
          const auto pair = nb::cast<nb::tuple>(row);
          named.emplace_back(nb::cast<std::string>(pair[0]), nb::cast<Tensor>(pair[1]));
        }
        const HostReleased released;
        train::save_checkpoint(named, path, {}, extra);
      },
      "parameters"_a, "path"_a, "extra"_a);
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

// Where the newest checkpoint of a folder, or a checkpoint, stands; everything is as it was then.
train::RunState resume_from_newest(train::Model& model, const std::string& path) {
  if (!model.train_network()) {
    fail(ErrorKind::Value, "[Model.train] the model was made without an optimizer");
  }
  const std::optional<std::string> newest = train::newest_checkpoint(path);
  if (!newest) {
    fail(ErrorKind::Io,
         "[Model.train] resume_from: '{}' is no checkpoint of a run, nor a folder "
         "that holds one",
         path);
  }
  return train::resume(*model.train_network(), *newest);
}

void fit(train::Model& self, int64_t epoch, const DatasetHandle* dataset,
         const DatasetHandle* valid, int64_t valid_frequency, train::Callbacks callbacks, bool sink,
         int64_t sink_size, int64_t initial_epoch, const std::string& resume_from) {
  train::FitOptions options{.train = {.callbacks = std::move(callbacks),
                                      .dataset_sink_mode = sink,
                                      .sink_size = sink_size,
                                      .initial_epoch = initial_epoch,
                                      .resume = {},
                                      .called_from = caller_location()},
                            .valid_frequency = valid_frequency};
  const HostReleased released;
  if (!resume_from.empty()) options.train.resume = resume_from_newest(self, resume_from);
  self.fit(epoch, dataset_of(dataset), dataset_of(valid), options);
}

void add_model(nb::module_& module) {
  nb::class_<train::Model>(module, "Model", nb::dynamic_attr(), shared_object<train::Model>())
      .def(
          "__init__",
          [](train::Model* self, Ref<Cell> network, Ref<Cell> loss, Ref<optim::Optimizer> optimizer,
             const train::Metrics& metrics, Ref<Cell> eval_network,
             Ref<amp::LossScaleUpdate> loss_scale, double sens, int64_t accumulation_steps) {
            new (self) train::Model(std::move(network), {.loss_fn = std::move(loss),
                                                         .optimizer = std::move(optimizer),
                                                         .metrics = metrics,
                                                         .eval_network = std::move(eval_network),
                                                         .loss_scale = std::move(loss_scale),
                                                         .sens = sens,
                                                         .accumulation_steps = accumulation_steps});
          },
          "network"_a, "loss_fn"_a.none(), "optimizer"_a.none(), "metrics"_a,
          "eval_network"_a.none(), "loss_scale"_a.none(), "sens"_a, "accumulation_steps"_a)
      .def("_fit", fit, "epoch"_a, "train_dataset"_a, "valid_dataset"_a.none(), "valid_frequency"_a,
           "callbacks"_a, "sink"_a, "sink_size"_a, "initial_epoch"_a, "resume_from"_a)
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
  add_checkpoints(module);
  add_model(module);
}

}  // namespace lamella::python
