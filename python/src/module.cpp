// The module lamella._native: the binding, split by topic.
#include "python/src/array_exchange.h"
#include "python/src/autodiff.h"
#include "python/src/context.h"
#include "python/src/dataset.h"
#include "python/src/dtype_object.h"
#include "python/src/errors.h"
#include "python/src/function_object.h"
#include "python/src/host_lock.h"
#include "python/src/random.h"
#include "python/src/tensor_object.h"
#include <nanobind/nanobind.h>

NB_MODULE(_native, module) {
  namespace bind = lamella::python;
  bind::install_host();
  bind::add_error_translation();
  bind::add_dtypes(module);
  bind::add_tensor_type(module);
  bind::add_array_exchange(module);
  bind::add_function_type(module);
  bind::add_random(module);
  bind::add_autodiff(module);
  bind::add_context(module);
  nanobind::module_ data = module.def_submodule("data");
  bind::add_datasets(data);
  bind::add_transforms(data);
}
