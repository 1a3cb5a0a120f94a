// Losses under their C++ names.
#include "python/src/arguments.h"
#include "python/src/cell.h"
#include "python/src/source_location.h"
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "lamella/nn/loss.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace lamella::python {

namespace {

struct LossAccess : nn::LossBase {
  using LossBase::get_loss;
};

using OptionalTensor = std::optional<Tensor>;

template <typename Loss>
void reduced(nb::module_& module, const char* name) {
  layer_class<Loss, nn::LossBase>(module, name)
      .def(
          "__init__",
          [name](Loss* self, const std::string& reduction) {
            new (self) Overridable<Loss>(nn::reduction_from_name(reduction, name));
          },
          "reduction"_a);
}

}  // namespace

void add_losses(nb::module_& module) {
  using nn::reduction_from_name;
  layer_class<nn::LossBase>(module, "LossBase")
      .def(
          "__init__",
          [](nn::LossBase* self, const std::string& reduction) {
            new (self) Overridable<nn::LossBase>(reduction_from_name(reduction, "LossBase"));
          },
          "reduction"_a = "mean")
      .def(
          "get_loss",
          [](nn::LossBase& self, const Tensor& losses, nb::handle weights) {
            Operand operand;
            if (!to_operand(weights.ptr(), caller_location(), operand)) {
              fail(ErrorKind::Type, "[get_loss] weights must be a tensor or a number");
            }
            return (self.*(&LossAccess::get_loss))(losses, operand);
          },
          "x"_a, "weights"_a = 1.0);
  reduced<nn::MSELoss>(module, "MSELoss");
  reduced<nn::L1Loss>(module, "L1Loss");
  layer_class<nn::SmoothL1Loss, nn::LossBase>(module, "SmoothL1Loss")
      .def(
          "__init__",
          [](nn::SmoothL1Loss* self, double beta, const std::string& reduction) {
            new (self)
                Overridable<nn::SmoothL1Loss>(beta, reduction_from_name(reduction, "SmoothL1Loss"));
          },
          "beta"_a, "reduction"_a);
  layer_class<nn::SoftmaxCrossEntropyWithLogits, nn::LossBase>(module,
                                                               "SoftmaxCrossEntropyWithLogits")
      .def(
          "__init__",
          [](nn::SoftmaxCrossEntropyWithLogits* self, bool sparse, const std::string& reduction) {
            new (self) Overridable<nn::SoftmaxCrossEntropyWithLogits>(
                sparse ? nn::Labels::Classes : nn::Labels::OneHot,
                reduction_from_name(reduction, "SoftmaxCrossEntropyWithLogits"));
          },
          "sparse"_a, "reduction"_a);
  layer_class<nn::CrossEntropyLoss, nn::LossBase>(module, "CrossEntropyLoss")
      .def(
          "__init__",
          [](nn::CrossEntropyLoss* self, const OptionalTensor& weight, int64_t ignore_index,
             const std::string& reduction, double smoothing) {
            new (self) Overridable<nn::CrossEntropyLoss>(nn::CrossEntropyOptions{
                .weight = weight.value_or(Tensor()),
                .ignore_index = ignore_index,
                .reduction = reduction_from_name(reduction, "CrossEntropyLoss"),
                .label_smoothing = smoothing});
          },
          "weight"_a.none(), "ignore_index"_a, "reduction"_a, "label_smoothing"_a);
  layer_class<nn::BCEWithLogitsLoss, nn::LossBase>(module, "BCEWithLogitsLoss")
      .def(
          "__init__",
          [](nn::BCEWithLogitsLoss* self, const std::string& reduction,
             const OptionalTensor& weight, const OptionalTensor& pos_weight) {
            new (self) Overridable<nn::BCEWithLogitsLoss>(nn::BCEWithLogitsOptions{
                .reduction = reduction_from_name(reduction, "BCEWithLogitsLoss"),
                .weight = weight.value_or(Tensor()),
                .pos_weight = pos_weight.value_or(Tensor())});
          },
          "reduction"_a, "weight"_a.none(), "pos_weight"_a.none());
  layer_class<nn::NLLLoss, nn::LossBase>(module, "NLLLoss")
      .def(
          "__init__",
          [](nn::NLLLoss* self, const OptionalTensor& weight, int64_t ignore_index,
             const std::string& reduction) {
            new (self) Overridable<nn::NLLLoss>(
                nn::NllOptions{.weight = weight.value_or(Tensor()),
                               .ignore_index = ignore_index,
                               .reduction = reduction_from_name(reduction, "NLLLoss")});
          },
          "weight"_a.none(), "ignore_index"_a, "reduction"_a);
  layer_class<nn::BCELoss, nn::LossBase>(module, "BCELoss")
      .def(
          "__init__",
          [](nn::BCELoss* self, const OptionalTensor& weight, const std::string& reduction) {
            new (self) Overridable<nn::BCELoss>(weight.value_or(Tensor()),
                                                reduction_from_name(reduction, "BCELoss"));
          },
          "weight"_a.none(), "reduction"_a);
  layer_class<nn::HuberLoss, nn::LossBase>(module, "HuberLoss")
      .def(
          "__init__",
          [](nn::HuberLoss* self, const std::string& reduction, double delta) {
            new (self)
                Overridable<nn::HuberLoss>(reduction_from_name(reduction, "HuberLoss"), delta);
          },
          "reduction"_a, "delta"_a);
  layer_class<nn::RMSELoss, nn::LossBase>(module, "RMSELoss")
      .def("__init__", [](nn::RMSELoss* self) { new (self) Overridable<nn::RMSELoss>(); });
}

}  // namespace lamella::python
