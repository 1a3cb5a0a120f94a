// Hooks on the gradients that pass a cell. The operators they put around a call pass values on as
// they are; on the way back they call the hooks.
#pragma once

#include <vector>

#include "lamella/nn/cell.h"

namespace lamella::nn {

class LAMELLA_API BackwardHooks {
 public:
  explicit BackwardHooks(Cell& cell);
  ~BackwardHooks();
  BackwardHooks(const BackwardHooks&) = delete;
  BackwardHooks& operator=(const BackwardHooks&) = delete;

  void add(BackwardHook hook) { hooks_.push_back(std::move(hook)); }
  void add(BackwardPreHook hook) { pre_hooks_.push_back(std::move(hook)); }

  Tensors around_inputs(const Tensors& inputs);
  Tensors around_outputs(const Tensors& outputs);

 private:
  class Rule;
  Tensors pass(const Tensors& tensors, const Ref<AttributeObject>& rule) const;
  Tensors at_inputs(Tensors gradients);
  Tensors at_outputs(Tensors gradients);

  Cell& cell_;
  std::vector<BackwardHook> hooks_;
  std::vector<BackwardPreHook> pre_hooks_;
  // One object each for the cell's life: rules are part of a graph's key.
  Ref<AttributeObject> input_rule_, output_rule_;
  Tensors output_gradients_;  // of the call whose way back has reached its outputs
};

}  // namespace lamella::nn
