// Cell itself: its tree, its modes, and how it is called.
#include "python/src/cell.h"

#include "python/src/dtype_object.h"
#include "python/src/parameter_object.h"
#include "python/src/source_location.h"
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "lamella/nn/container.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace lamella::python {

namespace {

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  PyObject** dictionary = _PyObject_GetDictPtr(self);
  if (dictionary != nullptr) Py_VISIT(*dictionary);
  if (!nb::inst_ready(self)) return 0;
  const auto* cell = nb::inst_ptr<nn::Cell>(self);
  for (const auto& [name, child] : cell->children()) {
    if (child) Py_VISIT(static_cast<PyObject*>(child->owner()));
  }
  for (const auto& [name, parameter] : cell->own_parameters()) {
    if (parameter) Py_VISIT(static_cast<PyObject*>(parameter->owner()));
  }
  return 0;
}

int clear(PyObject* self) {
  PyObject** dictionary = _PyObject_GetDictPtr(self);
  if (dictionary != nullptr) Py_CLEAR(*dictionary);
  if (!nb::inst_ready(self)) return 0;
  auto* cell = nb::inst_ptr<nn::Cell>(self);
  while (!cell->children().empty()) cell->remove(std::string(cell->children()[0].first));
  while (!cell->own_parameters().empty()) {
    cell->remove(std::string(cell->own_parameters()[0].first));
  }
  return 0;
}

Ref<nn::Parameter> parameter_from(nb::handle object) {
  if (!is_parameter(object.ptr())) fail(ErrorKind::Type, "[Cell] a Parameter is expected");
  return Ref<nn::Parameter>(&parameter_of(object.ptr()));
}

// The child, parameter or buffer of a name; None if there is none.
nb::object find(nn::Cell& self, const std::string& name) {
  if (Ref<nn::Cell> child = self.child(name)) return nb::cast(child);
  if (Ref<nn::Parameter> parameter = self.parameter(name)) {
    return nb::steal(wrap_parameter(parameter));
  }
  for (const auto& [each, buffer] : self.own_buffers()) {
    if (each == name && buffer.tensor.defined()) return nb::cast(buffer.tensor);
  }
  return nb::none();
}

nb::list named(const nn::Named<Ref<nn::Parameter>>& parameters) {
  nb::list list;
  for (const auto& [name, parameter] : parameters) {
    list.append(nb::make_tuple(name, nb::steal(wrap_parameter(parameter))));
  }
  return list;
}

template <typename Entries>
nb::list named_cells(const Entries& cells) {
  nb::list list;
  for (const auto& [name, cell] : cells) {
    list.append(nb::make_tuple(name, Ref<nn::Cell>(&*cell)));
  }
  return list;
}

nb::list named_buffers(const nn::Named<nn::CellBuffer>& buffers) {
  nb::list list;
  for (const auto& [name, buffer] : buffers) {
    list.append(nb::make_tuple(name, buffer.tensor, buffer.persistent));
  }
  return list;
}

nb::tuple to_tuple(const nn::Tensors& tensors) {
  nb::list list;
  for (const Tensor& tensor : tensors) {
    if (tensor.defined()) {
      list.append(tensor);
    } else {
      list.append(nb::none());
    }
  }
  return nb::tuple(list);
}

// Has the cell's Python hooks called with gradients, through its methods of these names.
void watch_gradients(nn::Cell& self) {
  const auto replacement = [](const nb::object& returned, nn::Cell& cell) {
    std::optional<nn::Tensors> tensors;
    if (!returned.is_none()) tensors = outputs_from(returned, cell.class_name());
    return tensors;
  };
  self.add_backward_pre_hook([replacement](nn::Cell& cell, const nn::Tensors& outputs) {
    const HostLock lock;
    return replacement(nb::cast(Ref<nn::Cell>(&cell)).attr("_output_gradients")(to_tuple(outputs)),
                       cell);
  });
  self.add_backward_hook(
      [replacement](nn::Cell& cell, const nn::Tensors& inputs, const nn::Tensors& outputs) {
        const HostLock lock;
        return replacement(nb::cast(Ref<nn::Cell>(&cell))
                               .attr("_input_gradients")(to_tuple(inputs), to_tuple(outputs)),
                           cell);
      });
}

}  // namespace

PyType_Slot cell_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                            {Py_tp_clear, reinterpret_cast<void*>(clear)},
                            {0, nullptr}};

nn::Tensors tensors_from(const nb::args& args, const std::string& layer) {
  nn::Tensors tensors;
  for (size_t i = 0; i < args.size(); ++i) {
    nb::object argument = args[i];
    if (!is_tensor(argument.ptr())) {
      fail(ErrorKind::Type, "[{}] argument {} must be a Tensor, got {}", layer, i,
           Py_TYPE(argument.ptr())->tp_name);
    }
    tensors.push_back(tensor_of(argument.ptr()));
  }
  return tensors;
}

nb::object outputs_of(const nn::Tensors& outputs) {
  if (outputs.size() == 1) return nb::cast(outputs[0]);
  nb::list list;
  for (const Tensor& output : outputs) list.append(output);
  return nb::tuple(list);
}

nn::Tensors outputs_from(nb::handle returned, const std::string& layer) {
  if (is_tensor(returned.ptr())) return {tensor_of(returned.ptr())};
  nn::Tensors outputs;
  if (PyTuple_Check(returned.ptr()) || PyList_Check(returned.ptr())) {
    for (nb::handle item : returned) {
      for (const Tensor& output : outputs_from(item, layer)) outputs.push_back(output);
    }
    return outputs;
  }
  if (returned.is_none()) return outputs;
  fail(ErrorKind::Type, "[{}] construct must return tensors, got {}", layer,
       Py_TYPE(returned.ptr())->tp_name);
}

void add_cells(nb::module_& module) {
  using nn::Cell;
  nb::class_<Cell, Overridable<Cell>>(
      module, "Cell", nb::dynamic_attr(), nb::is_weak_referenceable(), shared_object<Cell>(),
      nb::type_slots(cell_slots),
      "A layer, or a network of layers: a subclass assigns cells and parameters to attributes in\n"
      "__init__, and computes its outputs in construct(*inputs). Calling it runs hooks and "
      "construct.")
      .def(
          "__init__",
          [](Cell* self, bool auto_prefix, nb::handle) {
            new (self)
                Overridable<Cell>(auto_prefix ? nn::NamePrefix::Child : nn::NamePrefix::None);
          },
          "auto_prefix"_a = true, "flags"_a.none() = nb::none())
      .def("construct",
           [](Cell& self, const nb::args& inputs) {
             return outputs_of(self.Cell::construct(tensors_from(inputs, self.class_name())));
           })
      .def("_run",
           [](Cell& self, const nb::args& inputs) {
             return outputs_of(
                 self.call(tensors_from(inputs, self.class_name()), caller_location()));
           })
      .def("_scoped",
           [](Cell& self, nb::handle function, const nb::args& args, const nb::kwargs& kwargs) {
             const nn::CallScope scope(self, {});
             return function(*args, **kwargs);
           })
      .def("_find", find)
      .def("_set_cell", [](Cell& self, const std::string& name,
                           Ref<Cell> child) { self.set_cell(name, std::move(child)); })
      .def("_watch_gradients", watch_gradients)
      .def("_persistent_buffers",
           [](Cell& self) {
             nb::list list;
             for (const auto& [name, tensor] : self.persistent_buffers()) {
               list.append(nb::make_tuple(name, tensor));
             }
             return list;
           })
      .def("_around_inputs",
           [](Cell& self, const nb::args& inputs) {
             return to_tuple(self.around_inputs(tensors_from(inputs, self.class_name())));
           })
      .def("_around_outputs",
           [](Cell& self, const nb::args& outputs) {
             return to_tuple(self.around_outputs(tensors_from(outputs, self.class_name())));
           })
      .def("_note_revision", [](Cell& self) { self.note_revision(); })
      .def("_adopt_cell", [](Cell& self, const std::string& name,
                             Ref<Cell> child) { self.adopt_cell(name, std::move(child)); })
      .def("_set_parameter",
           [](Cell& self, const std::string& name, nb::handle parameter) {
             self.set_parameter(name, parameter_from(parameter));
           })
      .def("_set_buffer",
           [](Cell& self, const std::string& name, const Tensor& tensor, bool persistent) {
             self.remove(name);
             self.add_buffer(name, {tensor, persistent});
           })
      .def("_remove", [](Cell& self, const std::string& name) { return self.remove(name); })
      .def("_children", [](Cell& self) { return named_cells(self.children()); })
      .def("_own_parameters", [](Cell& self) { return named(self.own_parameters()); })
      .def("_own_buffers", [](Cell& self) { return named_buffers(self.own_buffers()); })
      .def("_buffers_and_names",
           [](Cell& self, const std::string& prefix) {
             return named_buffers(self.buffers_and_names(prefix));
           })
      .def("_cells_and_names",
           [](Cell& self, const std::string& prefix) {
             return named_cells(self.cells_and_names(prefix));
           })
      .def("_parameters_and_names",
           [](Cell& self, const std::string& prefix) {
             return named(self.parameters_and_names(prefix));
           })
      .def("_trainable", [](Cell& self) { return to_list(self.trainable_params()); })
      .def("_untrainable", [](Cell& self) { return to_list(self.untrainable_params()); })
      .def("_update_names",
           [](Cell& self, const std::string& prefix) { self.update_parameters_name(prefix); })
      .def("check_names", [](Cell& self) { self.check_names(); })
      .def("_set_train", [](Cell& self, bool training) { self.set_train(training); })
      .def("_set_grad", [](Cell& self, bool needed) { self.set_grad(needed); })
      .def("_to_float",
           [](Cell& self, nb::handle dtype) { self.to_float(dtype_from(dtype.ptr())); })
      .def("_give_float32", [](Cell& self) { self.give_float32(); })
      .def_prop_ro("_gives_float32", [](Cell& self) { return self.gives_float32(); })
      .def("_description", [](Cell& self) { return self.description(); })
      .def_prop_rw(
          "training", [](Cell& self) { return self.training(); },
          [](Cell& self, bool training) { self.set_train(training); })
      .def_prop_ro("requires_grad", [](Cell& self) { return self.requires_grad(); })
      .def_prop_ro("_compute_dtype", [](Cell& self) -> nb::object {
        if (!self.compute_dtype()) return nb::none();
        return nb::borrow(dtype_object(*self.compute_dtype()));
      });
  layer_class<nn::CellList>(module, "CellList")
      .def(
          "__init__",
          [](nn::CellList* self, bool auto_prefix) {
            new (self) Overridable<nn::CellList>(
                std::vector<Ref<Cell>>{},
                auto_prefix ? nn::NamePrefix::Child : nn::NamePrefix::None);
          },
          "auto_prefix"_a = true);
  layer_class<nn::SequentialCell, nn::CellList>(module, "SequentialCell")
      .def("__init__", [](nn::SequentialCell* self) {
        new (self) Overridable<nn::SequentialCell>(std::vector<Ref<Cell>>{});
      });
}

}  // namespace lamella::python
