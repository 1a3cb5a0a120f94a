// The Parameter type, on which the package's class Parameter is built.
#include "python/src/parameter_object.h"

#include "python/src/array_exchange.h"
#include "python/src/errors.h"
#include "python/src/host_lock.h"
#include "python/src/object_reference.h"

namespace nb = nanobind;

namespace lamella::python {

namespace {

struct ParameterObject {
  TensorObject tensor;
  nn::Parameter* parameter;  // owned: its count is this object's
};

PyTypeObject* parameter_type = nullptr;
PyTypeObject* parameter_class = nullptr;  // the package's, once it said so

PyObject* take(PyTypeObject* type, nn::Parameter* parameter) {
  PyObject* self = wrap_as(type, parameter->tensor());
  if (self == nullptr) return nullptr;
  reinterpret_cast<ParameterObject*>(self)->parameter = parameter;
  parameter->hand_over(self);
  return self;
}

PyObject* make(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {
      "value", "name", "requires_grad", "layerwise_parallel", "parallel_optimizer", nullptr};
  PyObject* value = nullptr;
  const char* name = nullptr;
  int requires_grad = 1, layerwise = 0, parallel = 1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|zppp:Parameter", const_cast<char**>(names),
                                   &value, &name, &requires_grad, &layerwise, &parallel)) {
    return nullptr;
  }
  return guarded([&] {
    const Tensor tensor = is_tensor(value) ? tensor_of(value) : tensor_from(value, std::nullopt);
    auto* const parameter =
        new nn::Parameter(tensor, name == nullptr ? std::string(nn::Parameter::kUnnamed) : name,
                          {.requires_grad = requires_grad != 0,
                           .layerwise_parallel = layerwise != 0,
                           .parallel_optimizer = parallel != 0});
    PyObject* self = take(type, parameter);
    if (self == nullptr) delete parameter;
    return self;
  });
}

void destroy(PyObject* self) {
  auto* object = reinterpret_cast<ParameterObject*>(self);
  if (object->tensor.weak_references != nullptr) PyObject_ClearWeakRefs(self);
  delete object->parameter;
  object->tensor.tensor.~Tensor();
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* get_name(PyObject* self, void*) {
  return PyUnicode_FromString(parameter_of(self).name().c_str());
}
int set_name(PyObject* self, PyObject* value, void*) {
  return guarded(-1, [&] {
    const char* text = value == nullptr ? nullptr : PyUnicode_AsUTF8(value);
    if (text == nullptr) throw_python_error();
    parameter_of(self).set_name(text);
    return 0;
  });
}
PyObject* get_requires_grad(PyObject* self, void*) {
  return PyBool_FromLong(parameter_of(self).requires_grad());
}
int set_requires_grad(PyObject* self, PyObject* value, void*) {
  const int truth = value == nullptr ? -1 : PyObject_IsTrue(value);
  if (truth < 0) return -1;
  parameter_of(self).set_requires_grad(truth == 1);
  return 0;
}
PyObject* get_layerwise_parallel(PyObject* self, void*) {
  return PyBool_FromLong(parameter_of(self).options().layerwise_parallel);
}
PyObject* get_parallel_optimizer(PyObject* self, void*) {
  return PyBool_FromLong(parameter_of(self).options().parallel_optimizer);
}
PyObject* write(PyObject* self, PyObject* value) {
  return guarded([&]() -> PyObject* {
    const Tensor data =
        is_tensor(value) ? tensor_of(value) : tensor_from(value, tensor_of(self).dtype());
    parameter_of(self).set_data(data);
    return Py_NewRef(self);
  });
}

PyMethodDef methods[] = {
    {"_write", write, METH_O, "Writes a value of the same shape, cast to the dtype."}, {}};
PyGetSetDef properties[] = {
    {"name", get_name, set_name, "The name.", nullptr},
    {"requires_grad", get_requires_grad, set_requires_grad, "Whether it is trained.", nullptr},
    {"layerwise_parallel", get_layerwise_parallel, nullptr, nullptr, nullptr},
    {"parallel_optimizer", get_parallel_optimizer, nullptr, nullptr, nullptr},
    {}};

}  // namespace

bool is_parameter(PyObject* object) {
  return PyType_IsSubtype(Py_TYPE(object), parameter_type) != 0;
}

nn::Parameter& parameter_of(PyObject* object) {
  return *reinterpret_cast<ParameterObject*>(object)->parameter;
}

PyObject* wrap_parameter(const Ref<nn::Parameter>& parameter) {
  if (!parameter) return Py_NewRef(Py_None);
  if (void* owner = parameter->owner()) return Py_NewRef(static_cast<PyObject*>(owner));
  return take(parameter_class, parameter.get());
}

nn::Parameters parameters_from(nb::handle sequence, const char* what) {
  nn::Parameters parameters;
  for (nb::handle item : sequence) {
    if (!is_parameter(item.ptr())) {
      fail(ErrorKind::Type, "[{}] parameters are expected, got {}", what,
           Py_TYPE(item.ptr())->tp_name);
    }
    parameters.emplace_back(&parameter_of(item.ptr()));
  }
  return parameters;
}

nb::list to_list(const nn::Parameters& parameters) {
  nb::list list;
  for (const Ref<nn::Parameter>& each : parameters) list.append(nb::steal(wrap_parameter(each)));
  return list;
}

void install_object_owner() {
  Object::install_owner({.retain =
                             [](void* owner) {
                               if (!Py_IsInitialized()) return;
                               const HostLock lock;
                               Py_INCREF(static_cast<PyObject*>(owner));
                             },
                         .release =
                             [](void* owner) {
                               if (!Py_IsInitialized()) return;
                               const HostLock lock;
                               Py_DECREF(static_cast<PyObject*>(owner));
                             }});
}

void add_parameter_type(nb::module_& module) {
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(make)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                         {Py_tp_methods, methods},
                         {Py_tp_getset, properties},
                         {0, nullptr}};
  PyType_Spec spec = {"lamella._native.nn.Parameter", sizeof(ParameterObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  nb::object bases = nb::make_tuple(nb::handle(reinterpret_cast<PyObject*>(tensor_type)));
  parameter_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpecWithBases(&spec, bases.ptr()));
  if (parameter_type == nullptr) throw_python_error();
  parameter_class = parameter_type;
  module.attr("Parameter") = nb::handle(reinterpret_cast<PyObject*>(parameter_type));
  module.def(
      "set_parameter_class",
      [](nb::object type) {
        parameter_class = reinterpret_cast<PyTypeObject*>(type.release().ptr());
      },
      nb::arg("type"), "The class of parameters that C++ made.");
}

}  // namespace lamella::python
