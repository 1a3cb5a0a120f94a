// Value and Node: the one representation of tensor computation.
//
// A Node is one operation; it owns its results and holds its operands. A Value does not own its
// producer: pending nodes belong to the window (or the gradient scope, or the graph) they were
// recorded in, so long chains are never destroyed recursively.
#pragma once

#include <atomic>
#include <span>
#include <string>

#include "lamella/base/api.h"
#include "lamella/base/error.h"
#include "lamella/base/free_list.h"
#include "lamella/base/ref.h"
#include "lamella/device/allocation.h"
#include "lamella/ir/operator.h"

namespace lamella {

class Node;
class Window;

// Why values were never computed, as their errors say it.
struct Failure : RefCounted<Failure> {
  explicit Failure(std::string text) : why(std::move(text)) {}
  const std::string why;
};

// A write-once cell for one result: its type, then (once run) its data.
class LAMELLA_API Value : public RefCounted<Value>, public SmallObject<Value> {
 public:
  enum class State : uint8_t {
    Pending,      // will be computed by its producer
    Ready,        // has a buffer
    Scalar,       // a number known when it was made: an operand that never enters a cache key
    Size,         // like Scalar, but its value is the size expression `size()` (inside graphs)
    Failed,       // the run that should have computed it failed
    Input,        // a placeholder of a graph
    NumberInput,  // a placeholder of a graph for a number
  };

  Value(TensorType type, State state) : type_(type), state_(state) {}
  ~Value() = default;

  static Ref<Value> from_buffer(TensorType type, Buffer buffer);
  // A number of rank 0; `bits` holds the value's bytes, low first.
  static Ref<Value> scalar(DType dtype, uint64_t bits);
  static Ref<Value> scalar_of(DType dtype, double number);
  static Ref<Value> scalar_of(DType dtype, int64_t number);
  // A size as a number of rank 0, known at launch if it is an expression.
  static Ref<Value> size(DType dtype, Dim size);
  static Ref<Value> input(TensorType type);
  static Ref<Value> number_input(DType dtype);

  const TensorType& type() const { return type_; }
  State state() const { return state_.load(std::memory_order_acquire); }
  bool is_number() const {
    const State now = state();
    return now == State::Scalar || now == State::Size || now == State::NumberInput;
  }

  // Whether it is of a graph being recorded: it has no elements.
  bool is_traced() const {
    const State now = state();
    return now == State::Input || now == State::NumberInput ||
           (now == State::Pending && window() == nullptr);
  }
  // The node that computes the value, while it is pending or kept by a gradient scope.
  Node* producer() const { return producer_; }
  int result_index() const { return result_index_; }
  Window* window() const { return window_.load(std::memory_order_acquire); }

  const Buffer& buffer() const { return buffer_; }
  uint64_t scalar_bits() const { return scalar_bits_; }
  Dim size_expression() const { return size_; }
  // Whether the number was written in an operator's rule, not given by a caller: it may enter keys.
  bool written() const { return written_; }

  // Called by the run that computed the value, once.
  void fulfil(Buffer buffer);
  // Said once of a value that will not be computed; and why that is so.
  void mark_failed(Ref<Failure> failure);
  const std::string& failure() const { return failure_->why; }

  // How many Storages hold the value: the results a flush must deliver.
  int32_t handles() const { return handles_.load(std::memory_order_acquire); }
  void add_handle() { handles_.fetch_add(1, std::memory_order_acq_rel); }
  void drop_handle() { handles_.fetch_sub(1, std::memory_order_acq_rel); }

  // The name of the parameter it is a value of, interned; null for others.
  const char* label() const { return label_; }
  void set_label(const char* interned) { label_ = interned; }

  // Scratch numbering for the passes that hold the window's lock; meaningless between them.
  uint32_t mark = 0;

 private:
  friend class Node;
  friend class Window;

  TensorType type_;
  Node* producer_ = nullptr;
  std::atomic<Window*> window_{nullptr};
  int16_t result_index_ = 0;
  std::atomic<State> state_;
  std::atomic<int32_t> handles_{0};
  const char* label_ = nullptr;
  uint64_t scalar_bits_ = 0;
  bool written_ = false;
  Dim size_ = 0;
  Buffer buffer_;
  Ref<Failure> failure_;
};

// A reference that a flush delivers the value for, as it does for a Storage's. To be used wherever
// a value outlives the Tensor it came from while more is recorded: the window may run at any
// operation, and what only plain references are left of is not computed.
class HeldValue {
 public:
  HeldValue() = default;
  explicit HeldValue(Ref<Value> value) : value_(std::move(value)) {
    if (value_) value_->add_handle();
  }
  ~HeldValue() {
    if (value_) value_->drop_handle();
  }
  HeldValue(HeldValue&& other) noexcept : value_(std::move(other.value_)) {}
  HeldValue& operator=(HeldValue&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }

  const Ref<Value>& ref() const { return value_; }
  Value* get() const { return value_.get(); }
  Value* operator->() const { return get(); }
  void reset() { *this = HeldValue(); }

 private:
  Ref<Value> value_;
};

// Says of the numbers this thread makes while it lives whether they are written in an operator's
// rule. Those recorded from a rule are the same at every call, so they are constants of the graph.
class LAMELLA_API WrittenNumbers {
 public:
  explicit WrittenNumbers(bool written = true);
  ~WrittenNumbers();
  WrittenNumbers(const WrittenNumbers&) = delete;

 private:
  bool outer_;
};

// Bits of a number in a dtype, low bytes first, rounded as a cast would.
LAMELLA_API uint64_t scalar_bits_from(DType dtype, double number);
LAMELLA_API uint64_t scalar_bits_from(DType dtype, int64_t number);
LAMELLA_API double double_from_scalar_bits(DType dtype, uint64_t bits);

// Which part of training an operation belongs to.
enum class Phase : uint8_t { Forward, Backward, Update };
LAMELLA_API const char* name(Phase phase);

// Where a node comes from: never part of a key.
struct Provenance {
  const char* layer = nullptr;  // "backbone.conv1", interned; null outside of layers
  // In a graph being compiled: the number of the recorded operation the node was made for; else -1.
  int32_t operation = -1;
  Phase phase = Phase::Forward;
};

// One operation. Immutable, but for the operands that are let go of after it ran.
class LAMELLA_API Node : public RefCounted<Node> {
 public:
  // Operands are retained; results are made Pending with the inferred types.
  static Ref<Node> make(const Operator& op, std::span<Value* const> operands,
                        Ref<const Attributes> attributes, std::span<const TensorType> results,
                        SourceLocation location);

  const Operator& op() const { return *op_; }
  const Attributes* attributes() const { return attributes_.get(); }
  const Ref<const Attributes>& attributes_ref() const { return attributes_; }
  template <typename T>
  const T& attribute(size_t index) const {
    return attributes_->get<T>(index);
  }
  std::span<const Ref<Value>> operands() const { return {operand_array(), operand_count_}; }
  std::span<const Ref<Value>> results() const {
    return {operand_array() + operand_count_, result_count_};
  }
  Value* operand(size_t index) const { return operand_array()[index].get(); }
  Value* result(size_t index = 0) const { return operand_array()[operand_count_ + index].get(); }

  // Where the user's program made it, and what it belongs to.
  const SourceLocation& location() const { return location_; }
  const Provenance& provenance() const { return provenance_; }
  const char* layer() const { return provenance_.layer; }

  // The node's place in its thread's program order.
  uint64_t sequence() const { return sequence_; }

  // Lets go of the operands, and of the results' link back.
  void detach();

  // Who still needs the operands: from the beginning its recorder, a window until it has run; then
  // a gradient scope, and what a gradient is yet to be taken of. The last one to let go detaches
  // it.
  void keep() { keepers_.fetch_add(1, std::memory_order_relaxed); }
  void let_go() {
    if (keepers_.fetch_sub(1, std::memory_order_acq_rel) == 1) detach();
  }
  // Whether another than its recorder needs a node that has not run.
  bool is_kept() const { return keepers_.load(std::memory_order_relaxed) > 1; }

  void release_last();

 private:
  friend class Window;

  Node() = default;
  ~Node() = default;
  // Of the node and the array of operands and results behind it.
  static size_t bytes_of(size_t operands_and_results) {
    return sizeof(Node) + operands_and_results * sizeof(Ref<Value>);
  }
  Ref<Value>* operand_array() { return reinterpret_cast<Ref<Value>*>(this + 1); }
  const Ref<Value>* operand_array() const { return reinterpret_cast<const Ref<Value>*>(this + 1); }

  const Operator* op_ = nullptr;
  Ref<const Attributes> attributes_;
  SourceLocation location_;
  Provenance provenance_;
  uint64_t sequence_ = 0;
  uint32_t operand_count_ = 0;
  uint32_t result_count_ = 0;
  std::atomic<uint32_t> keepers_{1};
};

// What nodes made by this thread belong to.
LAMELLA_API const Provenance& current_provenance();
LAMELLA_API void set_current_provenance(const Provenance& provenance);

// The layer; a Cell sets it around its construct.
inline const char* current_layer() {
  return current_provenance().layer;
}
LAMELLA_API void set_current_layer(const char* interned_path);

// Keeps what nodes belong to while it lives, and puts it back.
class ProvenanceScope {
 public:
  ProvenanceScope() : outer_(current_provenance()) {}
  explicit ProvenanceScope(const Provenance& provenance) : ProvenanceScope() {
    set_current_provenance(provenance);
  }
  ~ProvenanceScope() { set_current_provenance(outer_); }
  ProvenanceScope(const ProvenanceScope&) = delete;
  ProvenanceScope& operator=(const ProvenanceScope&) = delete;

  const Provenance& outer() const { return outer_; }

 private:
  const Provenance outer_;
};

}  // namespace lamella
