// What the gradients of loops and branches are made from: recorded nodes recorded again with other
// operands, and the walk back over them.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "lamella/base/pointer_map.h"
#include "lamella/ir/call_site.h"
#include "lamella/ir/tensor.h"

namespace lamella {

using Tensors = std::vector<Tensor>;

// The nodes recorded again on the current recorder, with other tensors for some of their operands.
class Replay {
 public:
  void set(const Ref<Value>& value, Tensor tensor) { made_[value.get()] = std::move(tensor); }
  void set(std::span<const Ref<Value>> values, const Tensors& tensors);

  void run(std::span<const Ref<Node>> nodes);

  // What stands for the value now; itself for one of outside.
  Tensor of(const Ref<Value>& value) const;

 private:
  PointerMap<Value, Tensor> made_;
};

// The cotangents of `wrt` by those of results (undefined: none), walking back over the current
// tape from number `first` on; undefined where nothing depends on it.
Tensors pull_back(const Tensors& results, const Tensors& cotangents, const Tensors& wrt,
                  size_t first);

// The gradient in the layout of `like`, zeros where there is none.
Tensor or_zeros(const Tensor& gradient, const Tensor& like);

Tensor in_layout(const Tensor& tensor, Layout layout);
// What a turn gives in the layouts of what it was given, where the shapes agree.
Tensors as_carried(Tensors next, const Tensors& carried);

std::vector<Ref<Value>> values_of(const Tensors& tensors);
Tensors tensors_of(std::span<const Ref<Value>> values);

template <typename T>
void append(std::vector<T>& to, const std::vector<T>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

// The line that the node of a loop or branch bears, unless library code recorded it for a layer.
class NodeLocation {
 public:
  explicit NodeLocation(const SourceLocation& where) {
    if (!current_call_site().known()) scope_.emplace(where);
  }

 private:
  std::optional<CallSiteScope> scope_;
};

}  // namespace lamella
