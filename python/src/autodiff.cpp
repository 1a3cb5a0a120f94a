// Gradients of Python callables.
#include "python/src/autodiff.h"

#include <memory>

#include "python/src/errors.h"
#include "python/src/host_lock.h"
#include "python/src/tensor_object.h"

#include "lamella/transform/grad.h"

namespace nb = nanobind;

namespace lamella::python {

namespace {

std::vector<Tensor> tensors_in(nb::handle sequence, const char* what) {
  std::vector<Tensor> tensors;
  for (nb::handle item : sequence) {
    if (item.is_none()) {
      tensors.emplace_back();
    } else if (is_tensor(item.ptr())) {
      tensors.push_back(tensor_of(item.ptr()));
    } else {
      fail(ErrorKind::Type, "[{}] tensors are expected, got {}", what,
           Py_TYPE(item.ptr())->tp_name);
    }
  }
  return tensors;
}

nb::object to_objects(const std::vector<Tensor>& tensors) {
  nb::list list;
  for (const Tensor& tensor : tensors) {
    list.append(tensor.defined() ? nb::steal(wrap(tensor)) : nb::none());
  }
  return nb::tuple(list);
}

// Calls `function`, which returns a pair (what to give back, tensor to differentiate), and gives
// back (the former, gradients).
nb::object differentiate(const nb::object& function, const nb::object& wrt,
                         const nb::object& sensitivity) {
  nb::object returned;
  const std::vector<Tensor> inputs = tensors_in(wrt, "value_and_grad");
  const Tensor cotangent = sensitivity.is_none() ? Tensor() : tensor_of(sensitivity.ptr());
  const ValueAndGradients result = value_and_grad(
      [&] {
        nb::tuple pair = nb::cast<nb::tuple>(function());
        returned = pair[0];
        return std::vector{nb::cast<Tensor>(pair[1])};
      },
      inputs, cotangent);
  return nb::make_tuple(returned, to_objects(result.gradients));
}

// Calls `function`, which returns a pair (what to give back, list of tensors), and gives back (the
// former, function from a list of cotangents, None for zeros, to gradients).
nb::object vector_jacobian(const nb::object& function, const nb::object& wrt) {
  nb::object returned;
  const std::vector<Tensor> inputs = tensors_in(wrt, "vjp");
  const ValueAndPullback result = vjp(
      [&] {
        nb::tuple pair = nb::cast<nb::tuple>(function());
        returned = pair[0];
        return tensors_in(pair[1], "vjp");
      },
      inputs);
  return nb::make_tuple(
      returned, nb::cpp_function([pullback = result.pullback](const nb::object& cotangents) {
        return to_objects(pullback(tensors_in(cotangents, "vjp")));
      }));
}

// A Python object that C++ may drop from any thread.
struct HeldObject {
  explicit HeldObject(nb::object given) : object(std::move(given)) {}
  ~HeldObject() {
    if (!Py_IsInitialized()) {
      (void)object.release();
      return;
    }
    const HostLock lock;
    object.reset();
  }
  HeldObject(const HeldObject&) = delete;
  nb::object object;
};

nb::object with_gradient(const nb::object& operands, const nb::object& forward,
                         const nb::object& backward) {
  const auto held = std::make_shared<HeldObject>(backward);
  const std::vector<Tensor> results = custom_gradient(
      tensors_in(operands, "custom_gradient"),
      [&](const std::vector<Tensor>& inputs) {
        return tensors_in(forward(*nb::cast<nb::tuple>(to_objects(inputs))), "custom_gradient");
      },
      [held](const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs,
             const std::vector<Tensor>& cotangents) {
        const HostLock lock;
        return tensors_in(
            held->object(to_objects(inputs), to_objects(outputs), to_objects(cotangents)),
            "custom_gradient");
      });
  return to_objects(results);
}

}  // namespace

void add_autodiff(nb::module_& module) {
  module.def("differentiate", differentiate, nb::arg("function"), nb::arg("wrt"),
             nb::arg("sensitivity").none() = nb::none(),
             "Calls function, which returns (anything, tensor), and gives (anything, gradients of "
             "the tensor with respect to wrt).");
  module.def(
      "vjp", vector_jacobian, nb::arg("function"), nb::arg("wrt"),
      "Calls function, which returns (anything, tensors), and gives (anything, function from "
      "cotangents of the tensors to gradients with respect to wrt).");
  module.def("with_gradient", with_gradient, nb::arg("operands"), nb::arg("forward"),
             nb::arg("backward"),
             "forward(*operands), a tuple, with backward(operands, results, cotangents) as its "
             "gradient.");
}

}  // namespace lamella::python
