// Loss scales and mixed precision.
#include "python/src/amp.h"

#include "python/src/cell.h"
#include "python/src/dtype_object.h"
#include <nanobind/stl/string.h>

#include "lamella/amp/loss_scale.h"
#include "lamella/amp/mixed_precision.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace lamella::python {

namespace {

amp::CellTest test_from(nb::handle function) {
  return [function](nn::Cell& cell) { return nb::cast<bool>(function(Ref<nn::Cell>(&cell))); };
}

}  // namespace

void add_amp(nb::module_& module) {
  using namespace amp;
  module.def("all_finite",
             [](nb::handle tensors) { return all_finite(outputs_from(tensors, "all_finite")); });
  nb::class_<LossScaleUpdate, nn::Cell>(module, "LossScaleUpdate", nb::type_slots(cell_slots))
      .def_prop_ro("initial_scale", &LossScaleUpdate::initial_scale)
      .def(
          "adjust",
          [](LossScaleUpdate& self, const Tensor& scale, const Tensor& finite) {
            self.adjust(scale, finite);
          },
          "scale"_a, "finite"_a);
  layer_class<FixedLossScaleUpdate, LossScaleUpdate>(module, "FixedLossScaleUpdateCell")
      .def(nb::init<double>(), "loss_scale_value"_a);
  layer_class<DynamicLossScaleUpdate, LossScaleUpdate>(module, "DynamicLossScaleUpdateCell")
      .def(nb::init<double, double, int64_t>(), "loss_scale_value"_a, "scale_factor"_a,
           "scale_window"_a)
      .def_prop_ro("scale_factor", &DynamicLossScaleUpdate::factor)
      .def_prop_ro("scale_window", &DynamicLossScaleUpdate::window);
  module.def(
      "auto_mixed_precision",
      [](nn::Cell& network, int level, nb::handle dtype) {
        auto_mixed_precision(network, static_cast<Level>(level), dtype_from(dtype.ptr()));
      },
      "network"_a, "level"_a, "dtype"_a);
  module.def("convert_cells", [](nn::Cell& network, nb::handle dtype, nb::handle chosen) {
    convert_cells(network, dtype_from(dtype.ptr()), test_from(chosen));
  });
  module.def("convert_all_cells", [](nn::Cell& network, nb::handle dtype, nb::handle kept) {
    convert_all_cells(network, dtype_from(dtype.ptr()), test_from(kept));
  });
}

}  // namespace lamella::python
