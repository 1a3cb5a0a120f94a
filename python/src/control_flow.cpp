// Bodies over flat lists of tensors; the package flattens what users carry or batch.
#include "python/src/control_flow.h"

#include "python/src/errors.h"
#include "python/src/host_lock.h"
#include "python/src/source_location.h"
#include "python/src/tensor_object.h"
#include <nanobind/stl/optional.h>

#include "lamella/transform/control_flow.h"
#include "lamella/transform/vmap.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace lamella::python {

namespace {

std::vector<Tensor> tensors_in(nb::handle sequence, const char* what) {
  std::vector<Tensor> tensors;
  for (nb::handle item : sequence) {
    if (!is_tensor(item.ptr())) {
      fail(ErrorKind::Type, "[{}] tensors are expected, got {}", what,
           Py_TYPE(item.ptr())->tp_name);
    }
    tensors.push_back(tensor_of(item.ptr()));
  }
  return tensors;
}

nb::list to_list(const std::vector<Tensor>& tensors) {
  nb::list list;
  for (const Tensor& tensor : tensors) list.append(nb::steal(wrap(tensor)));
  return list;
}

nb::object run_scan(const nb::object& body, nb::handle initial, nb::handle sequences,
                    std::optional<int64_t> length, bool reverse) {
  const ScanResult result = scan(
      [&](const std::vector<Tensor>& carried, const std::vector<Tensor>& slices) {
        const auto pair = nb::cast<nb::tuple>(body(to_list(carried), to_list(slices)));
        return ScanResult{tensors_in(pair[0], "scan"), tensors_in(pair[1], "scan")};
      },
      tensors_in(initial, "scan"), tensors_in(sequences, "scan"),
      {.length = length, .direction = reverse ? Direction::Reverse : Direction::Forward},
      caller_location());
  return nb::make_tuple(to_list(result.carried), to_list(result.stacked));
}

nb::object run_cond(nb::handle condition, const nb::object& then, const nb::object& otherwise) {
  const auto branch = [](const nb::object& function) {
    return [&function] { return tensors_in(function(), "cond"); };
  };
  return to_list(
      cond(tensor_of(condition.ptr()), branch(then), branch(otherwise), caller_location()));
}

nb::object run_while(const nb::object& condition, const nb::object& body, nb::handle initial) {
  return to_list(while_loop(
      [&](const std::vector<Tensor>& carried) {
        return tensors_in(condition(to_list(carried)), "while_loop").at(0);
      },
      [&](const std::vector<Tensor>& carried) {
        return tensors_in(body(to_list(carried)), "while_loop");
      },
      tensors_in(initial, "while_loop"), caller_location()));
}

std::vector<BatchAxis> axes_in(nb::handle sequence) {
  std::vector<BatchAxis> axes;
  for (nb::handle item : sequence) axes.push_back(nb::cast<BatchAxis>(item));
  return axes;
}

nb::object run_vmap(const nb::object& function, nb::handle arguments, nb::handle in_axes) {
  const ExampleFunction one = [&](const std::vector<Tensor>& examples) {
    const auto pair = nb::cast<nb::tuple>(function(to_list(examples)));
    return ExampleResult{.tensors = tensors_in(pair[0], "vmap"), .out_axes = axes_in(pair[1])};
  };
  return to_list(vmap(one, tensors_in(arguments, "vmap"), axes_in(in_axes), caller_location()));
}

}  // namespace

void add_control_flow(nb::module_& module) {
  module.def("scan", run_scan, "body"_a, "initial"_a, "sequences"_a, "length"_a.none(), "reverse"_a,
             "body(carried, slices) -> (carried, stacked), all lists of tensors.");
  module.def("cond", run_cond, "condition"_a, "then"_a, "otherwise"_a,
             "then() or otherwise(): lists of tensors.");
  module.def("while_loop", run_while, "condition"_a, "body"_a, "initial"_a,
             "condition(carried) -> [one bool], body(carried) -> carried.");
  module.def("vmap", run_vmap, "function"_a, "arguments"_a, "in_axes"_a,
             "function(examples) -> (results, out_axes), all lists; an axis is an int or None.");
}

}  // namespace lamella::python
