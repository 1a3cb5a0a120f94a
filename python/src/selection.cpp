// Masks, unique elements and splits as functions of lamella._native.
#include "python/src/selection.h"

#include "python/src/arguments.h"
#include "python/src/source_location.h"
#include "python/src/tensor_object.h"
#include <nanobind/stl/vector.h>

#include "lamella/ops/selection.h"

namespace nb = nanobind;

namespace lamella::python {

namespace {

Operand tensor_from(const nb::handle& value, const char* operation) {
  Operand operand;
  if (!to_operand(value.ptr(), caller_location(), operand) || !operand.is_tensor()) {
    fail(ErrorKind::Type, "[{}] a tensor is expected, got {}", operation,
         Py_TYPE(value.ptr())->tp_name);
  }
  return operand;
}

nb::tuple tuple_of(const std::vector<Tensor>& tensors) {
  nb::list list;
  for (const Tensor& tensor : tensors) list.append(nb::cast(tensor));
  return nb::tuple(list);
}

nb::tuple tuple_of(const ops::Unique& unique) {
  return nb::make_tuple(unique.values, unique.inverse, unique.counts);
}

}  // namespace

void add_selection(nb::module_& module) {
  module.def(
      "nonzero", [](nb::handle x) { return ops::nonzero(tensor_from(x, "nonzero")); }, nb::arg("x"),
      "The places of the elements that are not 0: [count, rank].");
  module.def(
      "nonzero_by_axis",
      [](nb::handle x) { return tuple_of(ops::nonzero_by_axis(tensor_from(x, "nonzero"))); },
      nb::arg("x"), "The same, a tensor for each axis.");
  module.def(
      "masked_select",
      [](nb::handle x, nb::handle mask) {
        return ops::masked_select(tensor_from(x, "masked_select"),
                                  tensor_from(mask, "masked_select"));
      },
      nb::arg("x"), nb::arg("mask"), "The elements where the mask holds.");
  module.def(
      "unique", [](nb::handle x) { return tuple_of(ops::unique(tensor_from(x, "unique"))); },
      nb::arg("x"), "(different elements in order, places of x's elements there, counts)");
  module.def(
      "unique_consecutive",
      [](nb::handle x) {
        return tuple_of(ops::unique_consecutive(tensor_from(x, "unique_consecutive")));
      },
      nb::arg("x"), "(the first of each run, the run of each element, lengths of runs)");
  module.def(
      "split_into",
      [](nb::handle x, const std::vector<int64_t>& sizes, int64_t axis) {
        return tuple_of(
            ops::split_into(tensor_from(x, "split"), {sizes.begin(), sizes.end()}, axis));
      },
      nb::arg("x"), nb::arg("sizes"), nb::arg("axis"), "x cut into parts of these sizes.");
}

}  // namespace lamella::python
