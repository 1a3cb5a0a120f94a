// Binding of arguments without dictionaries or overload resolution.
#include "python/src/function_object.h"

#include <array>
#include <cstddef>
#include <memory>

#include "python/src/arguments.h"
#include "python/src/errors.h"
#include "python/src/source_location.h"
#include "python/src/tensor_object.h"
#include <nanobind/stl/string.h>

// After Python.h:
#include <structmember.h>

namespace nb = nanobind;

namespace lamella::python {

namespace {

constexpr size_t kMostParameters = 24;

// One parameter of a function, as its caller sees it.
struct FunctionParameter {
  PyObject* name;                  // interned
  std::vector<PyObject*> aliases;  // interned; other keywords for the same parameter
  PyObject* default_value;         // null: required; Py_None may stand for the operator's default
  size_t target;                   // the operator's parameter
  bool keyword_only;
};

// Attributes made before, found again by the identity of the immutable objects they came from.
struct AttributeCache {
  std::array<PyObject*, 6> from{};
  Ref<const Attributes> attributes;
};

struct FunctionData {
  const OpDef* op;
  std::string name;
  PyObject* doc;
  PyObject* signature;  // text such as "(x, axis=None)"
  std::vector<FunctionParameter> parameters;
  size_t positional = 0;  // how many may be given by position
  bool variadic = false;  // the first parameter takes all positional arguments as a list
  Ref<const Attributes> all_default;  // null if an attribute has no default
  std::array<AttributeCache, 2> cache;
  size_t next_cache = 0;
};

struct FunctionObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* weak_references;
  PyObject* dictionary;
  FunctionData* data;
};

PyTypeObject* function_type = nullptr;

FunctionData& data_of(PyObject* self) {
  return *reinterpret_cast<FunctionObject*>(self)->data;
}

bool is_constant(PyObject* object) {
  if (object == nullptr || object == Py_None || PyBool_Check(object) || PyLong_CheckExact(object) ||
      PyFloat_CheckExact(object) || PyUnicode_CheckExact(object)) {
    return true;
  }
  if (!PyTuple_CheckExact(object)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) {
    if (!PyLong_CheckExact(PyTuple_GET_ITEM(object, i))) return false;
  }
  return true;
}

Ref<const Attributes> attributes_from(const OpDef& op, std::span<PyObject* const> arguments) {
  std::vector<AttributeValue> values;
  const auto parameters = op.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].is_operand()) continue;
    if (arguments[i] != nullptr) {
      values.push_back(to_attribute(arguments[i], parameters[i], op.name()));
    } else if (!parameters[i].default_text.empty()) {
      values.push_back(default_attribute(parameters[i]));
    } else {
      fail(ErrorKind::Type, "[{}] argument '{}' is missing", op.name(), parameters[i].name);
    }
  }
  return values.empty() ? nullptr : make_attributes(std::move(values));
}

// The same through the function's cache.
Ref<const Attributes> cached_attributes(FunctionData& data, std::span<PyObject* const> arguments) {
  const auto parameters = data.op->parameters();
  std::array<PyObject*, 6> from{};
  size_t count = 0;
  bool all_default = true, cacheable = true;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].is_operand()) continue;
    all_default = all_default && arguments[i] == nullptr;
    if (count == from.size()) {
      cacheable = false;
      break;
    }
    from[count++] = arguments[i];
  }
  if (count == 0) return nullptr;
  if (all_default && data.all_default) return data.all_default;
  if (!cacheable) return attributes_from(*data.op, arguments);
  for (const AttributeCache& entry : data.cache) {
    if (entry.attributes && entry.from == from) return entry.attributes;
  }
  Ref<const Attributes> made = attributes_from(*data.op, arguments);
  for (PyObject* object : from) cacheable = cacheable && is_constant(object);
  if (cacheable) {
    AttributeCache& entry = data.cache[data.next_cache];
    data.next_cache = (data.next_cache + 1) % data.cache.size();
    for (PyObject* object : from) Py_XINCREF(object);
    std::swap(entry.from, from);
    entry.attributes = made;
    for (PyObject* object : from) Py_XDECREF(object);
  }
  return made;
}

PyObject* call_operands(const OpDef& op, std::span<PyObject* const> arguments,
                        Ref<const Attributes> attributes, const SourceLocation& location) {
  const auto parameters = op.parameters();
  constexpr size_t kFew = 8;
  std::array<Operand, kFew> few;
  std::array<const Operand*, kFew> few_pointers;
  size_t count = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i].is_operand()) break;
    PyObject* argument = arguments[i];
    if (parameters[i].kind == ParameterKind::Tensors) {
      if (argument == nullptr) {
        fail(ErrorKind::Type, "[{}] argument '{}' is missing", op.name(), parameters[i].name);
      }
      nb::object sequence = nb::steal(PySequence_Fast(argument, ""));
      if (!sequence.is_valid()) {
        PyErr_Clear();
        fail(ErrorKind::Type, "[{}] {} must be a list or tuple of tensors, got {}", op.name(),
             parameters[i].name, Py_TYPE(argument)->tp_name);
      }
      const auto size = static_cast<size_t>(PySequence_Fast_GET_SIZE(sequence.ptr()));
      std::vector<Operand> many(size);
      std::vector<const Operand*> pointers(size);
      for (size_t item = 0; item < size; ++item) {
        PyObject* element = PySequence_Fast_GET_ITEM(sequence.ptr(), static_cast<Py_ssize_t>(item));
        if (!to_operand(element, location, many[item])) {
          fail(ErrorKind::Type, "[{}] {}[{}] must be a tensor, got {}", op.name(),
               parameters[i].name, item, Py_TYPE(element)->tp_name);
        }
        pointers[item] = &many[item];
      }
      return wrap(call_operator(op, pointers, std::move(attributes)));
    }
    const bool optional = parameters[i].kind == ParameterKind::Optional;
    if (argument == nullptr || (argument == Py_None && optional)) {
      if (!optional) {
        fail(ErrorKind::Type, "[{}] argument '{}' is missing", op.name(), parameters[i].name);
      }
    } else if (!to_operand(argument, location, few[count])) {
      fail(ErrorKind::Type, "[{}] {} must be a tensor or a number, got {}", op.name(),
           parameters[i].name, Py_TYPE(argument)->tp_name);
    }
    few_pointers[count] = &few[count];
    ++count;
  }
  return wrap(call_operator(op, std::span(few_pointers).first(count), std::move(attributes)));
}

[[noreturn]] void fail_keyword(const FunctionData& data, PyObject* keyword) {
  fail(ErrorKind::Type, "{}() got an unexpected keyword argument '{}'", data.name,
       PyUnicode_AsUTF8(keyword));
}

size_t parameter_of_keyword(const FunctionData& data, PyObject* keyword) {
  for (size_t i = 0; i < data.parameters.size(); ++i) {
    if (data.parameters[i].name == keyword) return i;
    for (PyObject* alias : data.parameters[i].aliases) {
      if (alias == keyword) return i;
    }
  }
  // A keyword that was not interned.
  for (size_t i = 0; i < data.parameters.size(); ++i) {
    if (PyUnicode_Compare(data.parameters[i].name, keyword) == 0) return i;
    for (PyObject* alias : data.parameters[i].aliases) {
      if (PyUnicode_Compare(alias, keyword) == 0) return i;
    }
  }
  fail_keyword(data, keyword);
}

PyObject* call(PyObject* self, PyObject* const* given, size_t flagged_count, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    FunctionData& data = data_of(self);
    const auto count = static_cast<size_t>(PyVectorcall_NARGS(flagged_count));
    std::array<PyObject*, kMostParameters> arguments{};  // by the operator's parameters
    std::array<bool, kMostParameters> bound{};           // by the function's
    nb::object all;
    if (data.variadic) {
      const bool one_list = count == 1 && (PyTuple_Check(given[0]) || PyList_Check(given[0]));
      if (!one_list) {
        all = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(count)));
        for (size_t i = 0; i < count; ++i) {
          PyTuple_SET_ITEM(all.ptr(), static_cast<Py_ssize_t>(i), Py_NewRef(given[i]));
        }
      }
      arguments[data.parameters[0].target] = one_list ? given[0] : all.ptr();
      bound[0] = true;
    } else {
      if (count > data.positional) {
        fail(ErrorKind::Type, "{}() takes {} positional arguments but {} were given", data.name,
             data.positional, count);
      }
      for (size_t i = 0; i < count; ++i) {
        arguments[data.parameters[i].target] = given[i];
        bound[i] = true;
      }
    }
    const size_t keyword_count =
        keywords == nullptr ? 0 : static_cast<size_t>(PyTuple_GET_SIZE(keywords));
    for (size_t k = 0; k < keyword_count; ++k) {
      PyObject* keyword = PyTuple_GET_ITEM(keywords, static_cast<Py_ssize_t>(k));
      const size_t parameter = parameter_of_keyword(data, keyword);
      if (bound[parameter]) {
        fail(ErrorKind::Type, "{}() got multiple values for argument '{}'", data.name,
             PyUnicode_AsUTF8(keyword));
      }
      bound[parameter] = true;
      arguments[data.parameters[parameter].target] = given[count + k];
    }
    for (size_t i = 0; i < data.parameters.size(); ++i) {
      const FunctionParameter& parameter = data.parameters[i];
      if (bound[i]) continue;
      if (parameter.default_value == nullptr) {
        fail(ErrorKind::Type, "{}() missing required argument: '{}'", data.name,
             PyUnicode_AsUTF8(parameter.name));
      }
      if (parameter.default_value != Py_None) {
        arguments[parameter.target] = parameter.default_value;
      }
    }
    const auto parameters = data.op->parameters();
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (arguments[i] == Py_None && !parameters[i].is_operand()) arguments[i] = nullptr;
    }
    return call_operands(*data.op, arguments, cached_attributes(data, arguments),
                         caller_location());
  });
}

// ---- The type ----

PyObject* repr(PyObject* self) {
  return PyUnicode_FromFormat("<function %s>", data_of(self).name.c_str());
}
PyObject* bind(PyObject* self, PyObject* instance, PyObject*) {
  if (instance == nullptr || instance == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, instance);
}
PyObject* get_name(PyObject* self, void*) {
  return PyUnicode_FromString(data_of(self).name.c_str());
}
PyObject* get_doc(PyObject* self, void*) {
  return Py_NewRef(data_of(self).doc);
}
PyObject* get_signature(PyObject* self, void*) {
  return guarded([&] {
    nb::object read = nb::module_::import_("lamella._signatures").attr("read_signature");
    return read(nb::handle(data_of(self).signature)).release().ptr();
  });
}
PyObject* get_operator(PyObject* self, void*) {
  const std::string name(data_of(self).op->name());
  return PyUnicode_FromString(name.c_str());
}

PyGetSetDef properties[] = {
    {"__name__", get_name, nullptr, nullptr, nullptr},
    {"__qualname__", get_name, nullptr, nullptr, nullptr},
    {"__doc__", get_doc, nullptr, nullptr, nullptr},
    {"__signature__", get_signature, nullptr, nullptr, nullptr},
    {"operator", get_operator, nullptr, "The operator that is called.", nullptr},
    {}};
PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(FunctionObject, vectorcall), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(FunctionObject, weak_references), READONLY,
     nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(FunctionObject, dictionary), READONLY, nullptr},
    {}};

PyObject* interned(std::string_view text) {
  PyObject* made = PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
  if (made == nullptr) throw_python_error();
  PyUnicode_InternInPlace(&made);
  return made;
}

size_t target_of(const OpDef& op, std::string_view name) {
  const auto parameters = op.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].name == name) return i;
  }
  fail(ErrorKind::Value, "[{}] has no parameter '{}'", op.name(), name);
}

nb::object make(std::unique_ptr<FunctionData> data) {
  bool has_attributes = false, all_have_defaults = true;
  const std::vector<PyObject*> none(data->op->parameters().size(), nullptr);
  for (const Parameter& parameter : data->op->parameters()) {
    if (parameter.is_operand()) continue;
    has_attributes = true;
    all_have_defaults = all_have_defaults && !parameter.default_text.empty();
  }
  if (has_attributes && all_have_defaults) data->all_default = attributes_from(*data->op, none);
  auto* object = reinterpret_cast<FunctionObject*>(function_type->tp_alloc(function_type, 0));
  if (object == nullptr) throw_python_error();
  object->vectorcall = call;
  object->data = data.release();  // functions live as long as the process
  return nb::steal(reinterpret_cast<PyObject*>(object));
}

PyObject* doc_of(const OpDef& op) {
  const std::string_view doc = op.fields().doc.value;
  return PyUnicode_FromStringAndSize(doc.data(), static_cast<Py_ssize_t>(doc.size()));
}

// The operator under its own name and parameters.
nb::object canonical_function(const OpDef& op) {
  auto data = std::make_unique<FunctionData>();
  data->op = &op;
  data->name = op.name();
  data->doc = doc_of(op);
  std::string signature = "(";
  size_t index = 0;
  for (const Parameter& parameter : op.parameters()) {
    FunctionParameter made{interned(parameter.name), {}, nullptr, index++, false};
    if (!signature.ends_with('(')) signature += ", ";
    signature += parameter.name;
    if (parameter.kind == ParameterKind::Optional) {
      made.default_value = Py_None;
      signature += "=None";
    } else if (!parameter.default_text.empty() && !parameter.is_operand()) {
      made.default_value = Py_None;  // the operator's own default
      signature += "=";
      signature += nb::repr(to_python(default_attribute(parameter))).c_str();
    }
    data->parameters.push_back(std::move(made));
  }
  data->positional = data->parameters.size();
  data->signature = PyUnicode_FromString((signature + ")").c_str());
  return make(std::move(data));
}

// A dialect's function: `parameters` is a list of (name, aliases, has_default, default, operator's
// parameter, keyword_only).
nb::object dialect_function(const std::string& name, const std::string& op,
                            const std::string& signature, const nb::list& parameters,
                            bool variadic) {
  auto data = std::make_unique<FunctionData>();
  data->op = &opdef(find_operator(op));
  data->name = name;
  data->doc = doc_of(*data->op);
  data->signature = PyUnicode_FromString(signature.c_str());
  data->variadic = variadic;
  for (nb::handle row : parameters) {
    const auto fields = nb::cast<nb::tuple>(row);
    FunctionParameter made{interned(nb::cast<std::string>(fields[0])),
                           {},
                           nullptr,
                           target_of(*data->op, nb::cast<std::string>(fields[4])),
                           nb::cast<bool>(fields[5])};
    for (nb::handle alias : fields[1])
      made.aliases.push_back(interned(nb::cast<std::string>(alias)));
    if (nb::cast<bool>(fields[2])) made.default_value = nb::object(fields[3]).release().ptr();
    if (!made.keyword_only) ++data->positional;
    data->parameters.push_back(std::move(made));
  }
  if (data->parameters.size() > kMostParameters) {
    fail(ErrorKind::Internal, "{} has too many parameters", name);
  }
  return make(std::move(data));
}

nb::dict describe(const OpDef& op) {
  nb::dict row;
  row["name"] = std::string(op.name());
  row["doc"] = std::string(op.fields().doc.value);
  nb::list parameters;
  size_t operand = 0;
  nb::list accepts;
  for (const Parameter& parameter : op.parameters()) {
    nb::dict described;
    described["name"] = std::string(parameter.name);
    described["kind"] = std::string(kind_name(parameter.kind));
    if (parameter.kind == ParameterKind::Optional) {
      described["default"] = nb::none();
    } else if (!parameter.default_text.empty() && !parameter.is_operand()) {
      described["default"] = to_python(default_attribute(parameter));
    }
    parameters.append(described);
    if (!parameter.is_operand()) continue;
    nb::list accepted;
    for (DType dtype : kComputeDTypes) {
      if (op.accepted(operand).has(dtype)) accepted.append(std::string(name(dtype)));
    }
    accepts.append(accepted);
    ++operand;
  }
  row["parameters"] = parameters;
  row["accepts"] = accepts;
  constexpr std::array promotions = {"none", "common", "float", "branches", "first"};
  row["promotion"] = promotions[static_cast<size_t>(op.fields().promotion)];
  row["reference"] = std::string(op.fields().reference.value.numpy);
  row["ulp"] = op.fields().reference.value.ulp;
  nb::list samples;
  for (std::string_view sample : op.fields().samples.value) samples.append(std::string(sample));
  row["samples"] = samples;
  const Gradient& gradient = op.fields().vjp.value;
  row["has_gradient"] = gradient.function != nullptr || gradient.through_composite;
  row["why_no_gradient"] = std::string(gradient.why_not);
  constexpr std::array lowerings = {"composite", "tile",   "reduction", "index",
                                    "view",      "kernel", "control"};
  row["lowering"] = lowerings[static_cast<size_t>(op.lowering().kind)];
  return row;
}

}  // namespace

PyObject* call_with(const OpDef& op, std::span<PyObject* const> arguments,
                    const SourceLocation& location) {
  return call_operands(op, arguments, attributes_from(op, arguments), location);
}

void add_function_type(nb::module_& module) {
  PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                         {Py_tp_repr, reinterpret_cast<void*>(repr)},
                         {Py_tp_descr_get, reinterpret_cast<void*>(bind)},
                         {Py_tp_getset, properties},
                         {Py_tp_members, members},
                         {0, nullptr}};
  PyType_Spec spec = {"lamella._native.Function", sizeof(FunctionObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION |
                          Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
                      slots};
  function_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (function_type == nullptr) throw_python_error();

  nb::module_ functions = module.def_submodule("operators_by_name");
  nb::dict by_name;
  for (const Operator* op : all_operators()) {
    const std::string name(op->name());
    nb::object function = canonical_function(opdef(*op));
    functions.attr(name.c_str()) = function;
    by_name[name.c_str()] = function;
  }
  functions.def(
      "__getattr__",
      [](const std::string& name) -> nb::object {
        throw nb::attribute_error(("[" + name + "] Lamella has no such operator").c_str());
      },
      nb::arg("name"));
  module.def(
      "operators",
      [] {
        nb::list rows;
        for (const Operator* op : all_operators()) rows.append(describe(opdef(*op)));
        return rows;
      },
      "Every operator with its parameters, accepted dtypes, reference, samples and rules.");
  module.def(
      "call",
      [by_name](const std::string& name, const nb::args& args, const nb::kwargs& kwargs) {
        if (!by_name.contains(name.c_str()))
          (void)find_operator(name);  // throws with close matches
        PyObject* result =
            PyObject_Call(nb::object(by_name[name.c_str()]).ptr(), args.ptr(), kwargs.ptr());
        if (result == nullptr) throw_python_error();
        return nb::steal(result);
      },
      "Calls an operator by its name.");
  module.def("dialect_function", dialect_function, nb::arg("name"), nb::arg("op"),
             nb::arg("signature"), nb::arg("parameters"), nb::arg("variadic"),
             "A function that calls an operator under other parameter names and defaults.");
}

}  // namespace lamella::python
