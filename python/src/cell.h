// Cells in Python: layers made in C++, and subclasses written in Python that C++ calls.
#pragma once

#include "python/src/errors.h"
#include "python/src/host_lock.h"
#include "python/src/object_reference.h"
#include "python/src/tensor_object.h"
#include <nanobind/nanobind.h>
#include <nanobind/trampoline.h>

#include "lamella/nn/cell.h"

namespace lamella::python {

// The tensors among positional arguments. Throws Type naming the position of anything else.
nn::Tensors tensors_from(const nanobind::args& args, const std::string& layer);
// One tensor, or a tuple of them.
nanobind::object outputs_of(const nn::Tensors& outputs);
// What a construct written in Python returned.
nn::Tensors outputs_from(nanobind::handle returned, const std::string& layer);

// A layer whose `construct` a Python subclass may replace.
template <typename Base>
class Overridable : public Base {
 public:
  NB_TRAMPOLINE(Base);
  using Base::construct;

  nn::Tensors construct(const nn::Tensors& inputs) override {
    {
      const HostLock lock;
      constexpr uint64_t hash = nanobind::detail::str_hash("construct");
      const nanobind::detail::ticket ticket(nb_trampoline, "construct", hash, false);
      if (ticket.key.is_valid()) {
        nanobind::list arguments;
        for (const Tensor& input : inputs) arguments.append(input);
        nanobind::object returned =
            nb_trampoline.base().attr("_construct")(*nanobind::tuple(arguments));
        return outputs_from(returned, this->class_name());
      }
    }
    return Base::construct(inputs);
  }
  std::string class_name() const override {
    const HostLock lock;
    const std::string name = nanobind::type_name(nb_trampoline.base().type()).c_str();
    return name.substr(name.rfind('.') + 1);
  }
};

// Garbage collection of cells: children and parameters are references that a collector must know.
extern PyType_Slot cell_slots[];

// Binds a layer; its construct is the C++ one, also when a subclass calls super().construct.
template <typename Layer, typename Parent = nn::Cell>
auto layer_class(nanobind::module_& module, const char* name) {
  return nanobind::class_<Layer, Parent, Overridable<Layer>>(module, name,
                                                             nanobind::type_slots(cell_slots))
      .def("construct", [](Layer& self, const nanobind::args& inputs) {
        return outputs_of(self.Layer::construct(tensors_from(inputs, self.class_name())));
      });
}

void add_cells(nanobind::module_& module);
void add_layers(nanobind::module_& module);
void add_losses(nanobind::module_& module);
void add_optimizers(nanobind::module_& module);

}  // namespace lamella::python
