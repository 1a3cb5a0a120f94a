// Calling hooks on the way back.
#include "lamella/nn/backward_hooks.h"

#include "lamella/ops/custom_gradient.h"
#include "lamella/ops/functions.h"

namespace lamella::nn {

class BackwardHooks::Rule final : public CustomGradientRule {
 public:
  using Handler = Tensors (BackwardHooks::*)(Tensors);
  Rule(BackwardHooks* hooks, Handler handler) : hooks_(hooks), handler_(handler) {}

  void apply(VjpCall& call) const override {
    const size_t count = call.node().results().size();
    Tensors gradients;
    for (size_t i = 0; i < count; ++i) gradients.push_back(call.cotangent(i));
    if (hooks_ != nullptr) gradients = (hooks_->*handler_)(std::move(gradients));
    for (size_t i = 0; i < count; ++i) call.give(i, gradients[i]);
  }
  void forget() { hooks_ = nullptr; }

 private:
  BackwardHooks* hooks_;  // null once the cell is gone
  Handler handler_;
};

BackwardHooks::BackwardHooks(Cell& cell)
    : cell_(cell),
      input_rule_(new Rule(this, &BackwardHooks::at_inputs)),
      output_rule_(new Rule(this, &BackwardHooks::at_outputs)) {}

BackwardHooks::~BackwardHooks() {
  static_cast<Rule&>(*input_rule_).forget();
  static_cast<Rule&>(*output_rule_).forget();
}

Tensors BackwardHooks::pass(const Tensors& tensors, const Ref<AttributeObject>& rule) const {
  Tensors joined;
  for (const Tensor& tensor : tensors) {
    if (is_float(tensor.dtype())) joined.push_back(tensor);
  }
  const size_t count = joined.size();
  if (count == 0) return tensors;
  for (size_t i = 0; i < count; ++i) joined.push_back(ops::stop_gradient(joined[i]));
  const Tensors passed = ops::with_custom_gradient(joined, static_cast<int64_t>(count), rule);
  Tensors all = tensors;
  size_t next = 0;
  for (Tensor& tensor : all) {
    if (is_float(tensor.dtype())) tensor = passed[next++];
  }
  return all;
}

Tensors BackwardHooks::around_inputs(const Tensors& inputs) {
  return hooks_.empty() ? inputs : pass(inputs, input_rule_);
}

Tensors BackwardHooks::around_outputs(const Tensors& outputs) {
  return pass(outputs, output_rule_);
}

namespace {

void check_count(const Cell& cell, const Tensors& given, size_t expected) {
  if (given.size() != expected) {
    fail(ErrorKind::Value, "[{}] a backward hook must give {} gradients, got {}", cell.class_name(),
         expected, given.size());
  }
}

}  // namespace

Tensors BackwardHooks::at_outputs(Tensors gradients) {
  for (const BackwardPreHook& hook : pre_hooks_) {
    if (std::optional<Tensors> other = hook(cell_, gradients)) {
      check_count(cell_, *other, gradients.size());
      gradients = std::move(*other);
    }
  }
  output_gradients_ = gradients;
  return gradients;
}

Tensors BackwardHooks::at_inputs(Tensors gradients) {
  const Tensors outputs = std::move(output_gradients_);
  output_gradients_.clear();
  for (const BackwardHook& hook : hooks_) {
    if (std::optional<Tensors> other = hook(cell_, gradients, outputs)) {
      check_count(cell_, *other, gradients.size());
      gradients = std::move(*other);
    }
  }
  return gradients;
}

}  // namespace lamella::nn
