// Draws as functions of lamella._native.
#include "python/src/random.h"

#include "python/src/arguments.h"
#include "python/src/dtype_object.h"
#include "python/src/errors.h"
#include "python/src/source_location.h"
#include "python/src/tensor_object.h"

#include "lamella/ops/random.h"

namespace nb = nanobind;

namespace lamella::python {

namespace {

Shape shape_from(const nb::handle& sizes) {
  const Parameter parameter{ParameterKind::SizeList, "shape", {}};
  return std::get<Shape>(to_attribute(sizes.ptr(), parameter, "random"));
}

Operand operand_from(const nb::handle& value) {
  Operand operand;
  if (!to_operand(value.ptr(), caller_location(), operand)) {
    fail(ErrorKind::Type, "[random] a tensor or a number is expected, got {}",
         Py_TYPE(value.ptr())->tp_name);
  }
  return operand;
}

}  // namespace

void add_random(nb::module_& module) {
  module.def("set_seed", &set_seed, nb::arg("seed"), "Starts the generator anew.");
  module.def(
      "random_state",
      [] {
        const RandomState state = random_state();
        return nb::make_tuple(state.seed, state.offset);
      },
      "Where the generator stands: (seed, offset).");
  module.def(
      "set_random_state",
      [](uint64_t seed, uint64_t offset) { set_random_state({.seed = seed, .offset = offset}); },
      nb::arg("seed"), nb::arg("offset"), "Puts the generator where it stood.");
  module.def(
      "random_uniform",
      [](nb::handle shape, nb::handle low, nb::handle high, nb::handle dtype) {
        return ops::uniform(shape_from(shape), operand_from(low), operand_from(high),
                            dtype_from(dtype.ptr()));
      },
      nb::arg("shape"), nb::arg("low"), nb::arg("high"), nb::arg("dtype"),
      "Numbers in [low, high).");
  module.def(
      "random_normal",
      [](nb::handle shape, nb::handle mean, nb::handle sigma, nb::handle dtype) {
        return ops::normal(shape_from(shape), operand_from(mean), operand_from(sigma),
                           dtype_from(dtype.ptr()));
      },
      nb::arg("shape"), nb::arg("mean"), nb::arg("sigma"), nb::arg("dtype"), "Normal numbers.");
  module.def(
      "random_bernoulli",
      [](nb::handle shape, nb::handle p, nb::handle dtype) {
        return ops::bernoulli(shape_from(shape), operand_from(p), dtype_from(dtype.ptr()));
      },
      nb::arg("shape"), nb::arg("p"), nb::arg("dtype"), "1 with probability p, else 0.");
  module.def(
      "random_integers",
      [](nb::handle shape, nb::handle low, nb::handle high, nb::handle dtype) {
        return ops::integers(shape_from(shape), operand_from(low), operand_from(high),
                             dtype_from(dtype.ptr()));
      },
      nb::arg("shape"), nb::arg("low"), nb::arg("high"), nb::arg("dtype"),
      "Whole numbers in [low, high).");
  module.def(
      "random_permutation",
      [](int64_t n, nb::handle dtype) { return ops::permutation(n, dtype_from(dtype.ptr())); },
      nb::arg("n"), nb::arg("dtype"), "0 ... n-1 in random order.");
  module.def(
      "dropout",
      [](nb::handle x, nb::handle p) { return ops::dropout(operand_from(x), operand_from(p)); },
      nb::arg("x"), nb::arg("p"), "x with elements set to 0 with probability p.");
}

}  // namespace lamella::python
