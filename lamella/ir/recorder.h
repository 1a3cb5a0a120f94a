// Where operations go when they are called: into the thread's window, or into a graph being built.
#pragma once

#include <span>
#include <vector>

#include "lamella/base/api.h"
#include "lamella/ir/value.h"

namespace lamella {

// The results of one recorded operation, held until Tensors hold them.
class Results {
 public:
  Results() = default;
  explicit Results(std::span<const Ref<Value>> values) {
    if (values.empty()) return;
    first_ = HeldValue(values[0]);
    for (const Ref<Value>& value : values.subspan(1)) rest_.emplace_back(value);
  }

  size_t size() const { return first_.get() != nullptr ? 1 + rest_.size() : 0; }
  const Ref<Value>& operator[](size_t index) const {
    return index == 0 ? first_.ref() : rest_[index - 1].ref();
  }

 private:
  HeldValue first_;
  std::vector<HeldValue> rest_;
};

class LAMELLA_API Recorder {
 public:
  virtual ~Recorder() = default;
  // Checks the operands with the operator's type rule and makes its node. Throws what the rule
  // throws, with the location added.
  virtual Results record(const Operator& op, std::span<Value* const> operands,
                         Ref<const Attributes> attributes, const SourceLocation& location) = 0;
  // The operations whose gradients can be asked for, in order; nothing where they are not kept.
  virtual std::span<const Ref<Node>> tape() const { return {}; }
  // What stands for a value of outside in this recorder's operations: itself in a window.
  virtual Ref<Value> inside(const Ref<Value>& value) { return value; }
  // Whether a value may be an operand: not one of the body of a loop that has been recorded.
  virtual bool knows(const Value&) const { return true; }
  // How many times over what is recorded now may be differentiated; 0 if not at all.
  virtual int gradient_order() const { return 0; }
};

// The recorder of this thread: its window unless a RecorderScope says otherwise.
LAMELLA_API Recorder& current_recorder();

// Sends this thread's operations to another recorder while it lives.
class LAMELLA_API RecorderScope {
 public:
  explicit RecorderScope(Recorder& recorder);
  ~RecorderScope();
  RecorderScope(const RecorderScope&) = delete;

 private:
  Recorder* outer_;
};

// Runs the type rule and returns the result types; errors carry the location.
LAMELLA_API InferCall infer_types(const Operator& op, std::span<Value* const> operands,
                                  const Attributes* attributes,
                                  std::span<const TensorType*> operand_types,
                                  const SourceLocation& location);

// The node for operands whose result types are known.
LAMELLA_API Ref<Node> make_inferred_node(const Operator& op, std::span<Value* const> operands,
                                         Ref<const Attributes> attributes,
                                         const SourceLocation& location);

}  // namespace lamella
