// Arguments of layers and optimizers out of Python objects.
#pragma once

#include <nanobind/nanobind.h>

#include "lamella/nn/dense.h"
#include "lamella/nn/initializer.h"
#include "lamella/nn/window.h"
#include "lamella/optim/optimizer.h"

namespace lamella::python {

// None, a name, a number, a tensor or array, or an initializer.
nn::Initial initial_from(nanobind::handle object);
// None, a name, or a cell.
nn::ActivationChoice activation_from(nanobind::handle object);
// One number, or one for each of two axes.
nn::Pair pair_from(nanobind::handle object, const char* layer, const char* argument);
// One number, or (top, bottom, left, right).
nn::Margins margins_from(nanobind::handle object, const char* layer);
// A number, one number a step, or a schedule.
optim::LearningRate rate_from(nanobind::handle object);
// Parameters, or groups of them as dictionaries.
optim::OptimizerParameters optimizer_parameters_from(nanobind::handle object);

}  // namespace lamella::python
