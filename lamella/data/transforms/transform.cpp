// Transforms made of others, and the forms that simple ones share.
#include "lamella/data/transforms/transform.h"

#include <algorithm>

namespace lamella::data {

void Transform::require_numbers(const Array& column) const {
  if (column.type().is_text) {
    fail(ErrorKind::Type, "[{}] takes numbers, got a column of text", name());
  }
}

std::vector<Array> ArrayTransform::apply(std::vector<Array> inputs, RandomStream& random) const {
  const RandomStream start = random;
  for (Array& column : inputs) {
    require_numbers(column);
    random = start;
    column = apply_array(column, random);
  }
  return inputs;
}

Array BatchTransform::apply_array(const Array& sample, RandomStream&) const {
  if (sample.sizes().size() == Axes::capacity()) {
    fail(ErrorKind::Value, "[{}] a sample {} has too many axes", name(), text(sample.type()));
  }
  Axes sizes = sample.sizes();
  sizes.insert(0, 1);
  return apply_batch(sample.reshaped(sizes)).row(0);
}

Compose::Compose(std::vector<Ref<Transform>> transforms) : transforms_(std::move(transforms)) {
  if (transforms_.empty()) fail(ErrorKind::Value, "[Compose] the list of transforms is empty");
  for (const auto& transform : transforms_) {
    if (!transform) fail(ErrorKind::Type, "[Compose] a transform of the list is null");
  }
}

std::vector<Array> Compose::apply(std::vector<Array> inputs, RandomStream& random) const {
  for (const auto& transform : transforms_) inputs = transform->apply(std::move(inputs), random);
  return inputs;
}

bool Compose::pure() const {
  return std::all_of(transforms_.begin(), transforms_.end(),
                     [](const auto& transform) { return transform->pure(); });
}

std::vector<Ref<Transform>> Compose::parts() {
  std::vector<Ref<Transform>> flat;
  for (const auto& transform : transforms_) {
    for (auto& part : transform->parts()) flat.push_back(std::move(part));
  }
  return flat;
}

FunctionTransform::FunctionTransform(Function function, std::string name,
                                     StartProcesses start_processes)
    : function_(std::move(function)),
      name_(std::move(name)),
      start_processes_(std::move(start_processes)) {
  if (!function_) fail(ErrorKind::Type, "[map] the function is empty");
}

std::vector<Array> FunctionTransform::apply(std::vector<Array> inputs, RandomStream& random) const {
  return function_(std::move(inputs), random);
}

std::shared_ptr<ProcessGroup> FunctionTransform::start_processes(int workers) const {
  return start_processes_ ? start_processes_(workers) : nullptr;
}

}  // namespace lamella::data
