// Tensor handles: storages, views, reading.
#include "lamella/ir/tensor.h"

#include <cstring>

#include <fmt/format.h>

#include "lamella/ir/runtime_interface.h"
#include "lamella/ir/window.h"

namespace lamella {

Storage::Storage(Ref<Value> value) {
  hold(std::move(value));
}

Storage::Storage(Ref<Storage> base, ViewFunctions functions)
    : base_(std::move(base)), view_(std::move(functions)) {
  hold(view_.read(Tensor(base_)).value());
  base_version_ = base_->version();
}

Storage::~Storage() {
  if (value_) value_->drop_handle();
}

void Storage::hold(Ref<Value> value) {
  value->add_handle();
  if (value_) value_->drop_handle();
  value_ = std::move(value);
}

const Ref<Value>& Storage::current() {
  if (base_) {
    base_->current();  // brings a chain of views up to date
    if (base_->version() != base_version_) {
      hold(view_.read(Tensor(base_)).value());
      base_version_ = base_->version();
      ++version_;
    }
  }
  return value_;
}

void Storage::replace(Ref<Value> value) {
  if (base_) {
    base_->replace(view_.write(Tensor(base_), Tensor(value)).value());
    base_version_ = base_->version();
  }
  Window::of_thread().journal(*this);
  hold(std::move(value));
  ++version_;
}

void Storage::restore(Ref<Value> value, uint64_t version) {
  hold(std::move(value));
  version_ = version;
}

Tensor Tensor::from_data(DType dtype, const Shape& shape, const void* data) {
  const int64_t bytes = element_count(shape).value() * size_of(dtype);
  Buffer buffer = runtime().allocate(bytes, "tensor");
  if (bytes > 0) std::memcpy(buffer.data(), data, static_cast<size_t>(bytes));
  return Tensor(Value::from_buffer({dtype, Layout::RowMajor, shape}, std::move(buffer)));
}

const Ref<Value>& Tensor::value() const {
  if (!storage_) fail(ErrorKind::Value, "[tensor] this tensor holds nothing");
  return storage_->current();
}

Dim Tensor::size(int64_t axis) const {
  return shape()[static_cast<size_t>(normalize_axis(axis, rank(), "size"))];
}

void Tensor::assign(const Tensor& source) const {
  if (source.dtype() != dtype()) {
    fail(ErrorKind::Type, "[assign] a value of dtype {} cannot be written to a tensor of dtype {}",
         name(source.dtype()), name(dtype()));
  }
  if (source.shape() != shape()) {
    fail(ErrorKind::Value, "[assign] a value of shape {} cannot be written to a tensor of shape {}",
         text(source.shape()), text(shape()));
  }
  storage_->replace(source.value());
}

void ensure_ready(const Ref<Value>& value) {
  if (Window* window = value->window()) window->flush();
  if (value->state() == Value::State::Failed) {
    fail(ErrorKind::Value, "[read] this value was never computed, because its run failed: {}",
         Window::of_thread().last_failure());
  }
  LAMELLA_CHECK(value->state() != Value::State::Pending);
}

void Tensor::wait() const {
  ensure_ready(value());
}

Buffer Tensor::data() const {
  const Ref<Value> held = value();
  ensure_ready(held);
  return runtime().row_major(*held);
}

double Tensor::item() const {
  const Ref<Value> held = value();
  if (!element_count(held->type().shape).is(1)) {
    fail(ErrorKind::Value, "[item] only a tensor of one element is a number, this one has shape {}",
         text(held->type().shape));
  }
  if (held->is_number()) return double_from_scalar_bits(dtype(), held->scalar_bits());
  uint64_t bits = 0;
  const Buffer element = data();
  std::memcpy(&bits, element.data(), static_cast<size_t>(size_of(dtype())));
  return double_from_scalar_bits(dtype(), bits);
}

Ref<Value> Operand::number_as(DType dtype) const {
  return kind_ == DTypeKind::Float ? Value::scalar_of(dtype, number_)
                                   : Value::scalar_of(dtype, integer_);
}

namespace detail {

void fail_element_type(DType held, DType asked) {
  fail(ErrorKind::Type, "[to_vector] the tensor holds {}, but {} was asked for", name(held),
       name(asked));
}

void fail_element_count(const Shape& shape, size_t given) {
  fail(ErrorKind::Value, "[from_vector] shape {} needs {} elements, got {}", text(shape),
       element_count(shape).text(), given);
}

}  // namespace detail

}  // namespace lamella
