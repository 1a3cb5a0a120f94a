// Conversion of what layers and optimizers are made with.
#include "python/src/layer_arguments.h"

#include <algorithm>

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

// A plain number; True and False are none.
bool is_number(nb::handle object) {
  return (PyFloat_Check(object.ptr()) || PyLong_Check(object.ptr())) && !PyBool_Check(object.ptr());
}

// What the keys of a group of parameters mean.
constexpr std::string_view kGroupKeys[] = {
    "params", "lr", "weight_decay", "grad_centralization", "accumulation_steps", "order_params"};

void check_keys(const nb::dict& group) {
  for (nb::handle key : group.keys()) {
    const std::string name = nb::str(key).c_str();
    if (std::ranges::find(kGroupKeys, name) == std::end(kGroupKeys)) {
      fail(ErrorKind::Value, "[optimizer] a group of parameters has no key '{}'; accepted: {}",
           name, fmt::join(kGroupKeys, ", "));
    }
  }
  if (!group.contains("params") && !group.contains("order_params")) {
    fail(ErrorKind::Value, "[optimizer] a group of parameters needs the key 'params'");
  }
}

nn::Parameters parameters_under(const nb::dict& group, const char* key) {
  const nb::object given = group[key];
  if (is_tensor(given.ptr()) || !nb::hasattr(given, "__iter__")) {
    fail(ErrorKind::Type, "[optimizer] {} of a group must be a list of Parameters, got {}", key,
         Py_TYPE(given.ptr())->tp_name);
  }
  return parameters_from(given, "optimizer");
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
  if (is_number(object)) return nb::cast<double>(object);
  if (nb::isinstance<optim::LearningRateSchedule>(object)) {
    return nb::cast<Ref<optim::LearningRateSchedule>>(object);
  }
  if (is_tensor(object.ptr()) && !is_float(tensor_of(object.ptr()).dtype())) {
    fail(ErrorKind::Type,
         "[optimizer] learning_rate and weight_decay as a tensor must be of a float dtype, got {}",
         name(tensor_of(object.ptr()).dtype()));
  }
  nb::object listed = nb::borrow(object);
  if (nb::hasattr(listed, "tolist")) listed = listed.attr("tolist")();
  if (is_number(listed)) return nb::cast<double>(listed);
  optim::Rates rates;
  if (PySequence_Check(listed.ptr())) {
    for (nb::handle item : listed) {
      if (!PyNumber_Check(item.ptr()) || PyBool_Check(item.ptr())) break;
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
    check_keys(group);
    if (group.contains("order_params")) {
      order = parameters_under(group, "order_params");
      continue;
    }
    optim::ParameterGroup made;
    made.parameters = parameters_under(group, "params");
    if (group.contains("lr")) made.learning_rate = rate_from(group["lr"]);
    if (group.contains("weight_decay")) made.weight_decay = rate_from(group["weight_decay"]);
    if (group.contains("grad_centralization")) {
      const nb::object given = group["grad_centralization"];
      if (!PyBool_Check(given.ptr())) {
        fail(ErrorKind::Type, "[optimizer] grad_centralization of a group must be a bool, got {}",
             nb::repr(given).c_str());
      }
      made.centralize_gradients = nb::cast<bool>(given);
    }
    if (group.contains("accumulation_steps")) {
      const nb::object given = group["accumulation_steps"];
      if (!PyLong_Check(given.ptr()) || PyBool_Check(given.ptr())) {
        fail(ErrorKind::Type, "[optimizer] accumulation_steps of a group must be an int, got {}",
             nb::repr(given).c_str());
      }
      made.accumulation_steps = nb::cast<int64_t>(given);
    }
    groups.push_back(std::move(made));
  }
  return {std::move(groups), std::move(order)};
}

}  // namespace lamella::python
