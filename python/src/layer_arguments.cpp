// Conversion of what layers and optimizers are made with.
#include "python/src/layer_arguments.h"

#include "python/src/array_exchange.h"
#include "python/src/errors.h"
#include "python/src/object_reference.h"
#include "python/src/parameter_object.h"
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;

namespace lamella::python {

namespace {

std::vector<int64_t> integers_in(nb::handle object, const char* layer, const char* argument) {
  std::vector<int64_t> numbers;
  try {
    if (PyLong_Check(object.ptr())) {
      numbers.push_back(nb::cast<int64_t>(object));
    } else {
      for (nb::handle item : object) numbers.push_back(nb::cast<int64_t>(item));
    }
  } catch (const std::exception&) {
    fail(ErrorKind::Type, "[{}] {} must be an integer or a tuple of them, got {}", layer, argument,
         nb::repr(object).c_str());
  }
  return numbers;
}

}  // namespace

nn::Initial initial_from(nb::handle object) {
  if (object.is_none()) return {};
  if (nb::isinstance<nn::Initializer>(object)) {
    return nn::Initial(nb::cast<Ref<nn::Initializer>>(object));
  }
  if (PyUnicode_Check(object.ptr())) return nn::Initial(nb::cast<std::string>(object));
  if (is_tensor(object.ptr())) return nn::Initial(tensor_of(object.ptr()));
  if (PyFloat_Check(object.ptr()) || PyLong_Check(object.ptr())) {
    return nn::Initial(nb::cast<double>(object));
  }
  return nn::Initial(tensor_from(object.ptr(), std::nullopt));
}

nn::ActivationChoice activation_from(nb::handle object) {
  if (object.is_none()) return {};
  if (PyUnicode_Check(object.ptr())) return {nb::cast<std::string>(object)};
  if (nb::isinstance<nn::Cell>(object)) return {nb::cast<Ref<nn::Cell>>(object)};
  fail(ErrorKind::Type, "[activation] a name or a Cell is expected, got {}",
       Py_TYPE(object.ptr())->tp_name);
}

nn::Pair pair_from(nb::handle object, const char* layer, const char* argument) {
  const std::vector<int64_t> numbers = integers_in(object, layer, argument);
  if (numbers.size() == 1) return {numbers[0]};
  if (numbers.size() == 2) return {numbers[0], numbers[1]};
  if (numbers.size() == 4) return {numbers[2], numbers[3]};  // (1, 1, height, width)
  fail(ErrorKind::Value, "[{}] {} takes one number or two, got {}", layer, argument,
       nb::repr(object).c_str());
}

nn::Margins margins_from(nb::handle object, const char* layer) {
  const std::vector<int64_t> numbers = integers_in(object, layer, "padding");
  if (numbers.size() == 1) return {numbers[0]};
  if (numbers.size() == 2) return {numbers[0], numbers[0], numbers[1], numbers[1]};
  if (numbers.size() == 4) return {numbers[0], numbers[1], numbers[2], numbers[3]};
  fail(ErrorKind::Value, "[{}] padding takes one number or four, got {}", layer,
       nb::repr(object).c_str());
}

optim::LearningRate rate_from(nb::handle object) {
  if (PyFloat_Check(object.ptr()) || PyLong_Check(object.ptr())) return nb::cast<double>(object);
  if (nb::isinstance<optim::LearningRateSchedule>(object)) {
    return nb::cast<Ref<optim::LearningRateSchedule>>(object);
  }
  if (is_tensor(object.ptr()) && tensor_of(object.ptr()).rank() == 0) {
    return tensor_of(object.ptr()).item();
  }
  nb::object listed = nb::borrow(object);
  if (nb::hasattr(listed, "tolist")) listed = listed.attr("tolist")();
  if (PyFloat_Check(listed.ptr()) || PyLong_Check(listed.ptr())) return nb::cast<double>(listed);
  optim::Rates rates;
  if (PySequence_Check(listed.ptr())) {
    for (nb::handle item : listed) {
      if (!PyNumber_Check(item.ptr())) break;
      rates.push_back(nb::cast<double>(nb::float_(item)));
    }
    if (rates.size() == nb::len(listed)) return rates;
  }
  fail(
      ErrorKind::Type,
      "[optimizer] learning_rate and weight_decay take a number, one number a step, or a schedule, "
      "got {}",
      Py_TYPE(object.ptr())->tp_name);
}

optim::OptimizerParameters optimizer_parameters_from(nb::handle object) {
  nb::list items;
  for (nb::handle item : object) items.append(item);
  const bool grouped = items.size() > 0 && PyDict_Check(nb::object(items[0]).ptr());
  if (!grouped) return {parameters_from(items, "optimizer")};
  std::vector<optim::ParameterGroup> groups;
  nn::Parameters order;
  for (nb::handle item : items) {
    if (!PyDict_Check(item.ptr())) {
      fail(ErrorKind::Type, "[optimizer] groups of parameters are dictionaries, got {}",
           Py_TYPE(item.ptr())->tp_name);
    }
    const auto group = nb::borrow<nb::dict>(item);
    if (group.contains("order_params")) {
      order = parameters_from(group["order_params"], "optimizer");
      continue;
    }
    optim::ParameterGroup made;
    made.parameters = parameters_from(group["params"], "optimizer");
    if (group.contains("lr")) made.learning_rate = rate_from(group["lr"]);
    if (group.contains("weight_decay")) made.weight_decay = rate_from(group["weight_decay"]);
    if (group.contains("grad_centralization")) {
      made.centralize_gradients = nb::cast<bool>(group["grad_centralization"]);
    }
    if (group.contains("accumulation_steps")) {
      made.accumulation_steps = nb::cast<int64_t>(group["accumulation_steps"]);
    }
    groups.push_back(std::move(made));
  }
  return {std::move(groups), std::move(order)};
}

}  // namespace lamella::python
