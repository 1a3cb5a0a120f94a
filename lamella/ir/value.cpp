// Values and nodes: construction, numbers as values, detaching.
#include "lamella/ir/value.h"

#include <bit>
#include <cstring>
#include <new>

#include "lamella/types/half.h"

namespace lamella {

namespace {

thread_local Provenance provenance_of_thread;
thread_local uint64_t next_sequence = 1;

// Saturating conversion, NaN to 0: what the Cast instruction of tile programs does.
template <typename T>
T integer_from(double number) {
  if (number != number) return 0;
  constexpr double low = static_cast<double>(std::numeric_limits<T>::min());
  constexpr double high = static_cast<double>(std::numeric_limits<T>::max());
  if (number <= low) return std::numeric_limits<T>::min();
  if (number >= high) return std::numeric_limits<T>::max();
  return static_cast<T>(number);
}

template <typename T>
uint64_t bits_of(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

}  // namespace

const Provenance& current_provenance() {
  return provenance_of_thread;
}
void set_current_provenance(const Provenance& provenance) {
  provenance_of_thread = provenance;
}
void set_current_layer(const char* interned_path) {
  provenance_of_thread.layer = interned_path;
}

const char* name(Phase phase) {
  switch (phase) {
    case Phase::Forward:
      return "forward";
    case Phase::Backward:
      return "backward";
    case Phase::Update:
      return "update";
  }
  return "";
}

uint64_t scalar_bits_from(DType dtype, double number) {
  switch (dtype) {
    case DType::Bool:
      return number != 0;
    case DType::Int8:
      return bits_of(integer_from<int8_t>(number));
    case DType::UInt8:
      return bits_of(integer_from<uint8_t>(number));
    case DType::Int16:
      return bits_of(integer_from<int16_t>(number));
    case DType::Int32:
      return bits_of(integer_from<int32_t>(number));
    case DType::Int64:
      return bits_of(integer_from<int64_t>(number));
    case DType::Float16:
      return float16_bits_from_float(float_round_to_odd(number));
    case DType::BFloat16:
      return bfloat16_bits_from_float(float_round_to_odd(number));
    case DType::Float32:
      return bits_of(static_cast<float>(number));
    case DType::Float64:
      return bits_of(number);
    default:
      fail(ErrorKind::Unsupported, "numbers of dtype {} are not supported", name(dtype));
  }
}

uint64_t scalar_bits_from(DType dtype, int64_t number) {
  switch (dtype) {
    case DType::Bool:
      return number != 0;
    // Integers wrap, as arithmetic on them does.
    case DType::Int8:
      return bits_of(static_cast<int8_t>(number));
    case DType::UInt8:
      return bits_of(static_cast<uint8_t>(number));
    case DType::Int16:
      return bits_of(static_cast<int16_t>(number));
    case DType::Int32:
      return bits_of(static_cast<int32_t>(number));
    case DType::Int64:
      return bits_of(number);
    default:
      return scalar_bits_from(dtype, static_cast<double>(number));
  }
}

double double_from_scalar_bits(DType dtype, uint64_t bits) {
  switch (dtype) {
    case DType::Bool:
      return (bits & 0xFF) != 0;
    case DType::Int8:
      return static_cast<int8_t>(bits);
    case DType::UInt8:
      return static_cast<uint8_t>(bits);
    case DType::Int16:
      return static_cast<int16_t>(bits);
    case DType::Int32:
      return static_cast<int32_t>(bits);
    case DType::Int64:
      return static_cast<double>(static_cast<int64_t>(bits));
    case DType::Float16:
      return float_from_float16_bits(static_cast<uint16_t>(bits));
    case DType::BFloat16:
      return float_from_bfloat16_bits(static_cast<uint16_t>(bits));
    case DType::Float32:
      return std::bit_cast<float>(static_cast<uint32_t>(bits));
    case DType::Float64:
      return std::bit_cast<double>(bits);
    default:
      fail(ErrorKind::Unsupported, "numbers of dtype {} are not supported", name(dtype));
  }
}

Ref<Value> Value::from_buffer(TensorType type, Buffer buffer) {
  auto value = make_ref<Value>(type, State::Ready);
  value->buffer_ = std::move(buffer);
  return value;
}

namespace {

thread_local bool numbers_are_written = false;

}  // namespace

WrittenNumbers::WrittenNumbers(bool written) : outer_(numbers_are_written) {
  numbers_are_written = written;
}

WrittenNumbers::~WrittenNumbers() {
  numbers_are_written = outer_;
}

Ref<Value> Value::scalar(DType dtype, uint64_t bits) {
  auto value = make_ref<Value>(TensorType{dtype, Layout::RowMajor, {}}, State::Scalar);
  value->scalar_bits_ = bits;
  value->written_ = numbers_are_written;
  return value;
}

Ref<Value> Value::scalar_of(DType dtype, double number) {
  return scalar(dtype, scalar_bits_from(dtype, number));
}

Ref<Value> Value::scalar_of(DType dtype, int64_t number) {
  return scalar(dtype, scalar_bits_from(dtype, number));
}

Ref<Value> Value::size(DType dtype, Dim size) {
  auto value = make_ref<Value>(TensorType{dtype, Layout::RowMajor, {}}, State::Size);
  value->size_ = size;
  if (size.known()) value->scalar_bits_ = scalar_bits_from(dtype, size.value());
  return value;
}

Ref<Value> Value::input(TensorType type) {
  return make_ref<Value>(type, State::Input);
}

Ref<Value> Value::number_input(DType dtype) {
  return make_ref<Value>(TensorType{dtype, Layout::RowMajor, {}}, State::NumberInput);
}

void Value::fulfil(Buffer buffer) {
  buffer_ = std::move(buffer);
  state_.store(State::Ready, std::memory_order_release);
  window_.store(nullptr, std::memory_order_release);
}

void Value::mark_failed(Ref<Failure> failure) {
  failure_ = std::move(failure);
  state_.store(State::Failed, std::memory_order_release);
  window_.store(nullptr, std::memory_order_release);
}

Ref<Node> Node::make(const Operator& op, std::span<Value* const> operands,
                     Ref<const Attributes> attributes, std::span<const TensorType> results,
                     SourceLocation location) {
  static_assert(alignof(Node) >= alignof(Ref<Value>) && sizeof(Node) % alignof(Ref<Value>) == 0);
  void* memory = take_small(bytes_of(operands.size() + results.size()));
  Ref<Node> node(new (memory) Node);
  node->op_ = &op;
  node->attributes_ = std::move(attributes);
  node->location_ = location;
  node->provenance_ = provenance_of_thread;
  node->sequence_ = next_sequence++;
  node->operand_count_ = static_cast<uint32_t>(operands.size());
  node->result_count_ = static_cast<uint32_t>(results.size());
  Ref<Value>* slot = node->operand_array();
  for (Value* operand : operands) new (slot++) Ref<Value>(operand);
  for (size_t i = 0; i < results.size(); ++i) {
    auto value = make_ref<Value>(results[i], Value::State::Pending);
    value->producer_ = node.get();
    value->result_index_ = static_cast<int16_t>(i);
    new (slot++) Ref<Value>(std::move(value));
  }
  return node;
}

void Node::detach() {
  for (uint32_t i = 0; i < operand_count_; ++i) operand_array()[i].reset();
  for (uint32_t i = 0; i < result_count_; ++i) {
    Ref<Value>& result = operand_array()[operand_count_ + i];
    if (result && result->producer_ == this) result->producer_ = nullptr;
  }
}

void Node::release_last() {
  detach();
  Ref<Value>* slots = operand_array();
  const size_t count = operand_count_ + result_count_;
  for (size_t i = 0; i < count; ++i) slots[i].~Ref<Value>();
  this->~Node();
  give_small(this, bytes_of(count));
}

}  // namespace lamella
