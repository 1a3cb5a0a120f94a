// Parameters: naming and writing.
#include "lamella/nn/parameter.h"

#include <atomic>

#include "lamella/ops/functions.h"

namespace lamella::nn {

namespace {

std::atomic<uint64_t> change_count{1};

}  // namespace

uint64_t changes() {
  return change_count.load(std::memory_order_relaxed);
}

void note_change() {
  change_count.fetch_add(1, std::memory_order_relaxed);
}

Parameter::Parameter(const Tensor& value, std::string name, ParameterOptions options)
    : name_(std::move(name)), options_(options) {
  if (!value.defined()) fail(ErrorKind::Value, "[Parameter] '{}' was given no value", name_);
  tensor_ = value.snapshot();
  if (name_ != kUnnamed) label();
}

void Parameter::set_name(std::string name) {
  if (name.empty()) fail(ErrorKind::Value, "[Parameter] the name of '{}' must not be empty", name_);
  name_ = std::move(name);
  label();
}

// Memory that its values take is reported under its name.
void Parameter::label() const {
  tensor_.storage()->set_label(intern_file_name(name_));
}

void Parameter::set_data(const Tensor& value) const {
  if (value.shape() != shape()) {
    fail(ErrorKind::Value, "[Parameter] '{}' has shape {}, it cannot take a value of shape {}",
         name_, text(shape()), text(value.shape()));
  }
  tensor_.assign(value.dtype() == dtype() ? value : ops::cast(value, dtype()));
}

}  // namespace lamella::nn
