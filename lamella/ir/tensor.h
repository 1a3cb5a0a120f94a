// Tensor: the handle users hold. It names a Storage, whose value a write replaces; two handles of
// one Storage see each other's writes.
#pragma once

#include <functional>
#include <source_location>
#include <vector>

#include "lamella/base/api.h"
#include "lamella/ir/value.h"

namespace lamella {

class Tensor;

// A view's way to its base: how it is read out of it and how a write goes back.
struct ViewFunctions {
  std::function<Tensor(const Tensor& base)> read;
  std::function<Tensor(const Tensor& base, const Tensor& part)> write;
};

class LAMELLA_API Storage : public RefCounted<Storage>, public SmallObject<Storage> {
 public:
  explicit Storage(Ref<Value> value);
  Storage(Ref<Storage> base, ViewFunctions functions);
  ~Storage();

  // The present value; a view whose base was written since is read anew, and so is memory shared
  // with a reader outside.
  const Ref<Value>& current();
  // The type, which no write changes.
  const TensorType& type() const { return value_->type(); }
  // Runs what is pending, then gives row-major memory that a reader outside may write at any time:
  // the caller pins it. Operations recorded later see what was written; those recorded before do
  // not, because they hold a value of their own. Empty if the value has another layout.
  Buffer share();
  // Memory that is shared from the start; pinned by the caller.
  static Ref<Storage> over_shared(const TensorType& type, Buffer memory);
  uint64_t version() const { return version_; }
  // The name its values are reported under when memory is: interned.
  void set_label(const char* interned);
  // Replaces the value, and for a view the base's part. The window can undo it until it has run.
  void replace(Ref<Value> value);
  // Puts an earlier value back; only for the window's undo.
  void restore(Ref<Value> value);

 private:
  void hold(Ref<Value> value);
  void take_in_writes();

  HeldValue value_;
  const char* label_ = nullptr;
  Ref<Value> shared_;  // over memory that a reader outside may write; null if there is none
  uint64_t version_ = 0;
  Ref<Storage> base_;
  uint64_t base_version_ = 0;
  ViewFunctions view_;
};

class LAMELLA_API Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Ref<Value> value) : storage_(make_ref<Storage>(std::move(value))) {}
  explicit Tensor(Ref<Storage> storage) : storage_(std::move(storage)) {}

  // A copy of `count(shape) * size_of(dtype)` bytes in row-major order.
  static Tensor from_data(DType dtype, const Shape& shape, const void* data);
  template <typename T>
  static Tensor from_vector(const Shape& shape, const std::vector<T>& elements);
  // A number as a tensor of rank 0.
  static Tensor scalar(DType dtype, double number) {
    return Tensor(Value::scalar_of(dtype, number));
  }

  bool defined() const { return static_cast<bool>(storage_); }
  const TensorType& type() const {
    if (!storage_) [[unlikely]]
      fail_undefined();
    return storage_->type();
  }
  const Shape& shape() const { return type().shape; }
  DType dtype() const { return type().dtype; }
  int rank() const { return lamella::rank(type().shape); }
  // The size of an axis, counted from the end if negative.
  Dim size(int64_t axis) const;

  const Ref<Value>& value() const;
  const Ref<Storage>& storage() const { return storage_; }

  // Writes `source` into this tensor's Storage: every handle of it sees the new value. Types must
  // agree in dtype and shape (Type, Value).
  void assign(const Tensor& source) const;
  // Another handle with a Storage of its own: later writes to either do not reach the other.
  Tensor snapshot() const { return Tensor(value()); }

  // Runs what is pending, then gives the elements in row-major order (shared memory if they lie
  // so).
  Buffer data() const;
  // Runs what is pending.
  void wait() const;
  template <typename T>
  std::vector<T> to_vector() const;
  // The one element of a tensor that has one (Value otherwise), as a double.
  double item() const;

 private:
  [[noreturn]] static void fail_undefined();

  Ref<Storage> storage_;
};

// Runs the value's window if it is pending. Throws if its run failed, now or earlier.
LAMELLA_API void ensure_ready(const Ref<Value>& value);

// An operand of an operator: a tensor or a plain number, and the line of the caller. A number takes
// the dtype the operator's promotion gives it.
class LAMELLA_API Operand {
 public:
  using Where = std::source_location;

  Operand() = default;                                           // an operand left out
  Operand(const Tensor& tensor, Where where = Where::current())  // NOLINT: meant to be implicit
      : tensor_(tensor), location_(from(where)) {}
  Operand(double number, Where where = Where::current())  // NOLINT
      : number_(number), kind_(DTypeKind::Float), location_(from(where)) {}
  Operand(float number, Where where = Where::current())  // NOLINT
      : Operand(static_cast<double>(number), where) {}
  Operand(int64_t number, Where where = Where::current())  // NOLINT
      : integer_(number), kind_(DTypeKind::SignedInteger), location_(from(where)) {}
  Operand(int number, Where where = Where::current())  // NOLINT
      : Operand(static_cast<int64_t>(number), where) {}
  Operand(bool number, Where where = Where::current())  // NOLINT
      : integer_(number), kind_(DTypeKind::Bool), location_(from(where)) {}

  bool is_tensor() const { return tensor_.defined(); }
  bool is_number() const { return kind_ != DTypeKind::Complex; }
  bool given() const { return is_tensor() || is_number(); }
  const Tensor& tensor() const { return tensor_; }
  DTypeKind number_kind() const { return kind_; }
  double number() const {
    return kind_ == DTypeKind::Float ? number_ : static_cast<double>(integer_);
  }
  int64_t integer() const { return integer_; }
  // The number as a value of `dtype`.
  Ref<Value> number_as(DType dtype) const;
  const SourceLocation& location() const { return location_; }
  void set_location(SourceLocation location) { location_ = location; }
  // The same operand said to come from another line.
  Operand at(SourceLocation location) const {
    Operand moved = *this;
    moved.location_ = location;
    return moved;
  }

 private:
  static SourceLocation from(const Where& where) {
    return {where.file_name(), static_cast<int32_t>(where.line())};
  }

  Tensor tensor_;
  double number_ = 0;
  int64_t integer_ = 0;
  DTypeKind kind_ = DTypeKind::Complex;  // Complex: not a number
  SourceLocation location_;
};

using Operands = std::vector<Tensor>;

namespace detail {
template <typename T>
struct DTypeOf;
#define LAMELLA_DTYPE_OF(type, dtype_name)            \
  template <>                                         \
  struct DTypeOf<type> {                              \
    static constexpr DType value = DType::dtype_name; \
  };
LAMELLA_DTYPE_OF(int8_t, Int8)
LAMELLA_DTYPE_OF(uint8_t, UInt8)
LAMELLA_DTYPE_OF(int16_t, Int16)
LAMELLA_DTYPE_OF(int32_t, Int32)
LAMELLA_DTYPE_OF(int64_t, Int64)
LAMELLA_DTYPE_OF(float, Float32)
LAMELLA_DTYPE_OF(double, Float64)
#undef LAMELLA_DTYPE_OF
[[noreturn]] LAMELLA_API void fail_element_type(DType held, DType asked);
[[noreturn]] LAMELLA_API void fail_element_count(const Shape& shape, size_t given);
}  // namespace detail

template <typename T>
Tensor Tensor::from_vector(const Shape& shape, const std::vector<T>& elements) {
  if (element_count(shape).value() != static_cast<int64_t>(elements.size())) {
    detail::fail_element_count(shape, elements.size());
  }
  return from_data(detail::DTypeOf<T>::value, shape, elements.data());
}

template <typename T>
std::vector<T> Tensor::to_vector() const {
  if (dtype() != detail::DTypeOf<T>::value) {
    detail::fail_element_type(dtype(), detail::DTypeOf<T>::value);
  }
  const Buffer elements = data();
  const T* first = static_cast<const T*>(elements.data());
  return std::vector<T>(first, first + element_count(shape()).value());
}

}  // namespace lamella
