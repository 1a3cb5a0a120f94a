// Binding of profile::Explainer.
#include "lamella/profile/explanation.h"

#include "python/src/explanation.h"
#include "python/src/host_lock.h"
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace lamella::python {

namespace {

nb::list launch_rows(const profile::Explainer& explainer) {
  nb::list rows;
  for (const profile::ExplainedLaunch& launch : explainer.launches()) {
    nb::dict row;
    row["layers"] = launch.layers;
    row["operations"] = launch.operations;
    row["phases"] = launch.phases;
    row["programs"] = launch.remarks;
    row["runs"] = launch.runs;
    row["seconds"] = launch.total_seconds();
    row["seconds_a_run"] = launch.mean_seconds();
    row["flops"] = launch.flops;
    row["bytes"] = launch.bytes;
    rows.append(row);
  }
  return rows;
}

}  // namespace

void add_explanation(nb::module_& module) {
  nb::class_<profile::Explainer>(module, "Explainer")
      .def(nb::init<std::string>(), "layer"_a)
      .def("start", &profile::Explainer::start)
      .def("stop", &profile::Explainer::stop)
      .def("launches", launch_rows)
      .def(
          "text",
          [](const profile::Explainer& self, size_t count) {
            const HostReleased released;
            return profile::explanation(self.launches(), peak_rates(), count);
          },
          "count"_a);
}

}  // namespace lamella::python
