// The module lamella._native: the binding, split by topic.
#include "python/src/amp.h"
#include "python/src/argument_errors.h"
#include "python/src/array_exchange.h"
#include "python/src/autodiff.h"
#include "python/src/cell.h"
#include "python/src/context.h"
#include "python/src/control_flow.h"
#include "python/src/dataset.h"
#include "python/src/dtype_object.h"
#include "python/src/errors.h"
#include "python/src/explanation.h"
#include "python/src/function_object.h"
#include "python/src/host_lock.h"
#include "python/src/indexing.h"
#include "python/src/jit.h"
#include "python/src/object_reference.h"
#include "python/src/parameter_object.h"
#include "python/src/profile.h"
#include "python/src/random.h"
#include "python/src/selection.h"
#include "python/src/tensor_object.h"
#include "python/src/train.h"
#include "python/src/user_function.h"
#include "python/src/worker_pool.h"
#include <nanobind/nanobind.h>

#include "lamella/base/env.h"

NB_MODULE(_native, module) {
  namespace bind = lamella::python;
  // Objects that outlive the interpreter are told about only where somebody looks for them.
  nanobind::set_leak_warnings(lamella::environment_integer("LAMELLA_LEAKS", 0, 0, 1) == 1);
  bind::install_host();
  bind::add_error_translation();
  bind::add_dtypes(module);
  bind::add_tensor_type(module);
  bind::add_array_exchange(module);
  bind::add_function_type(module);
  bind::add_random(module);
  bind::add_jit(module);
  bind::add_indexing(module);
  bind::add_selection(module);
  bind::add_autodiff(module);
  bind::add_context(module);
  nanobind::module_ control = module.def_submodule("control_flow");
  bind::add_control_flow(control);
  nanobind::module_ nn = module.def_submodule("nn");
  bind::install_object_owner();
  bind::add_parameter_type(nn);
  bind::add_cells(nn);
  bind::add_layers(nn);
  bind::add_losses(nn);
  bind::add_optimizers(nn);
  nanobind::module_ data = module.def_submodule("data");
  bind::add_user_functions(data);
  bind::add_worker_pool(data);
  bind::add_datasets(data);
  bind::add_transforms(data);
  nanobind::module_ amp = module.def_submodule("amp");
  bind::add_amp(amp);
  nanobind::module_ train = module.def_submodule("train");
  bind::add_callbacks(train);
  bind::add_metrics(train);
  bind::add_train(train);
  nanobind::module_ profile = module.def_submodule("profile");
  bind::add_profiler(profile);
  bind::add_explanation(profile);
  nanobind::module_ memory = module.def_submodule("memory");
  bind::add_memory(memory);
  bind::explain_arguments(module);
}
