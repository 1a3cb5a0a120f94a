// Datasets, samplers, transforms and iterators over them.
#pragma once

#include <nanobind/nanobind.h>

#include "lamella/data/dataset.h"
#include "lamella/data/sampler.h"
#include "lamella/data/transforms/transform.h"

namespace lamella::python {

// What Python holds: the reference itself.
struct DatasetHandle {
  Ref<data::Dataset> dataset;
};
struct SamplerHandle {
  Ref<data::Sampler> sampler;
};
struct TransformHandle {
  Ref<data::Transform> transform;
};

void add_datasets(nanobind::module_& module);
void add_transforms(nanobind::module_& module);

}  // namespace lamella::python
