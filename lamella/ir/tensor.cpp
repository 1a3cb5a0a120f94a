// Tensor handles: storages, views, reading.
#include "lamella/ir/tensor.h"

#include <cstring>

#include <fmt/format.h>

#include "lamella/ir/call_site.h"
#include "lamella/ir/runtime_interface.h"
#include "lamella/ir/trace.h"
#include "lamella/ir/window.h"

namespace lamella {

namespace {

Buffer copy_of(const Buffer& elements) {
  Buffer copy = runtime().allocate(elements.size, "copy shared with a reader");
  if (elements.size > 0) {
    std::memcpy(copy.data(), elements.data(), static_cast<size_t>(elements.size));
  }
  return copy;
}

}  // namespace

Storage::Storage(Ref<Value> value) {
  hold(std::move(value));
  if (Tracer* tracer = Tracer::current()) tracer->created(*this, value_->is_traced());
}

Storage::Storage(Ref<Storage> base, ViewFunctions functions)
    : base_(std::move(base)), view_(std::move(functions)) {
  hold(view_.read(Tensor(base_)).value());
  if (Tracer* tracer = Tracer::current()) tracer->created(*this, value_->is_traced());
  base_version_ = base_->version();
}

Storage::~Storage() {
  Tracer::destroyed(*this);
}

void Storage::hold(Ref<Value> value) {
  value_ = HeldValue(std::move(value));
  if (label_ != nullptr) value_->set_label(label_);
}

void Storage::set_label(const char* interned) {
  label_ = interned;
  value_->set_label(interned);
  if (value_->state() == Value::State::Ready && value_->buffer()) {
    value_->buffer().allocation->rename_holder(interned);
  }
}

const Ref<Value>& Storage::current() {
  if (shared_) [[unlikely]]
    take_in_writes();
  if (base_) {
    base_->current();  // brings a chain of views up to date
    if (base_->version() != base_version_) {
      hold(view_.read(Tensor(base_)).value());
      base_version_ = base_->version();
      ++version_;
    }
  }
  if (Tracer* tracer = Tracer::current()) tracer->read(*this, value_.ref());
  return value_.ref();
}

void Storage::replace(Ref<Value> value) {
  if (!base_ && value->is_traced() && !value_->is_traced()) {
    fail(ErrorKind::Value,
         "[assign] the body of a loop or branch and a function in vmap cannot write a tensor of "
         "outside; let it be carried from turn to turn, or returned");
  }
  if (base_) {
    base_->replace(view_.write(Tensor(base_), Tensor(value)).value());
    base_version_ = base_->version();
  } else if (Tracer* tracer = Tracer::current()) {
    tracer->wrote(*this, value);
  } else {
    Tracer::wrote_beside(*this);
  }
  Window::of_thread().journal(*this);
  shared_.reset();
  hold(std::move(value));
  ++version_;
}

void Storage::restore(Ref<Value> value) {
  shared_.reset();
  hold(std::move(value));
  ++version_;
}

Buffer Storage::share() {
  Tracer::cannot_repeat("it reads a tensor's values");
  const Ref<Value> held = current();
  ensure_ready(held);
  if (shared_) return shared_->buffer();
  if (held->type().layout != Layout::RowMajor) return {};
  const Buffer elements = runtime().row_major(*held);
  // The value's own memory, unless someone else reads it: then a copy.
  const bool alone = held->reference_count() == 2 && held->handles() == 1 &&
                     held->buffer().allocation && elements.allocation->reference_count() == 2;
  shared_ = alone ? held : Value::from_buffer(held->type(), copy_of(elements));
  return shared_->buffer();
}

Ref<Storage> Storage::over_shared(const TensorType& type, Buffer memory) {
  Ref<Storage> storage = make_ref<Storage>(Value::from_buffer(type, std::move(memory)));
  storage->shared_ = storage->value_.ref();
  return storage;
}

void Storage::take_in_writes() {
  const Buffer memory = shared_->buffer();
  const bool never_read = value_.ref() == shared_;
  const bool changed = [&] {
    if (never_read) return true;
    const Buffer seen = runtime().row_major(*value_.ref());
    return memory.size > 0 &&
           std::memcmp(seen.data(), memory.data(), static_cast<size_t>(memory.size)) != 0;
  }();
  if (memory.pinned()) {
    if (!changed) return;
    hold(Value::from_buffer(shared_->type(), copy_of(memory)));
  } else {
    // The reader is gone; what it wrote last stays.
    if (changed && !never_read) hold(shared_);
    shared_.reset();
  }
  if (changed) ++version_;
}

Tensor Tensor::from_data(DType dtype, const Shape& shape, const void* data) {
  const int64_t bytes = element_count(shape).value() * size_of(dtype);
  const TensorType type{dtype, Layout::RowMajor, shape};
  Buffer buffer = runtime().allocate(bytes, {"tensor", current_call_site(), type});
  if (bytes > 0) std::memcpy(buffer.data(), data, static_cast<size_t>(bytes));
  Ref<Value> value = Value::from_buffer(type, std::move(buffer));
  if (Tracer* tracer = Tracer::current()) tracer->constant(value);
  return Tensor(std::move(value));
}

const Ref<Value>& Tensor::value() const {
  if (!storage_) fail_undefined();
  return storage_->current();
}

void Tensor::fail_undefined() {
  fail(ErrorKind::Value, "[tensor] this tensor holds nothing");
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
    fail(ErrorKind::Value, "[read] this value was never computed: {}", value->failure());
  }
  if (value->is_traced()) {
    fail(
        ErrorKind::Value,
        "[read] this tensor stands for a value in the body of a loop or branch, or for one example "
        "in vmap: it has no elements that can be read; compute with it instead");
  }
  if (value->state() == Value::State::Pending) {
    fail(ErrorKind::Value,
         "[read] this value is being computed by the run that this code interrupts");
  }
}

void Tensor::wait() const {
  Tracer::cannot_repeat("it waits for a tensor's values");
  ensure_ready(value());
}

Buffer Tensor::data() const {
  Tracer::cannot_repeat("it reads a tensor's values");
  const Ref<Value> held = value();
  ensure_ready(held);
  return runtime().row_major(*held);
}

double Tensor::item() const {
  Tracer::cannot_repeat("it reads a tensor's value");
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
