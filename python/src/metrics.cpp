// Metrics: those of C++, and subclasses written in Python.
#include "python/src/cell.h"
#include "python/src/train.h"
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "lamella/train/class_metrics.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace lamella::python {

namespace {

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

template <typename T>
auto class_metric(nb::module_& module, const char* name) {
  return metric_class<T>(module, name).def("_each_class", &T::each_class);
}

train::AccuracyKind kind_of(bool multilabel) {
  return multilabel ? train::AccuracyKind::Multilabel : train::AccuracyKind::Classification;
}

}  // namespace

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
            new (self) train::Accuracy(kind_of(multilabel));
          },
          "multilabel"_a);
  metric_class<train::Loss>(module, "Loss").def(nb::init<>());
  metric_class<train::TopKCategoricalAccuracy>(module, "TopKCategoricalAccuracy")
      .def(nb::init<int64_t>(), "k"_a);
  class_metric<train::Precision>(module, "Precision")
      .def(
          "__init__",
          [](train::Precision* self, bool multilabel) {
            new (self) train::Precision(kind_of(multilabel));
          },
          "multilabel"_a);
  class_metric<train::Recall>(module, "Recall")
      .def(
          "__init__",
          [](train::Recall* self, bool multilabel) {
            new (self) train::Recall(kind_of(multilabel));
          },
          "multilabel"_a);
  class_metric<train::Fbeta>(module, "Fbeta").def(nb::init<double>(), "beta"_a);
  metric_class<train::ConfusionMatrix>(module, "ConfusionMatrix")
      .def(
          "__init__",
          [](train::ConfusionMatrix* self, int64_t classes, int normalize, double threshold) {
            using Normalize = train::ConfusionMatrix::Normalize;
            new (self)
                train::ConfusionMatrix(classes, static_cast<Normalize>(normalize), threshold);
          },
          "num_classes"_a, "normalize"_a, "threshold"_a)
      .def("_matrix", &train::ConfusionMatrix::matrix)
      .def_prop_ro("num_classes", &train::ConfusionMatrix::classes);
  metric_class<train::MAE>(module, "MAE").def(nb::init<>());
  metric_class<train::MSE>(module, "MSE").def(nb::init<>());
  module.def("get_metric", train::get_metric, "name"_a);
  module.def("metric_names", train::metric_names);
}

}  // namespace lamella::python
