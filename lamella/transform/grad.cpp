// The walk from results back to operands.
#include "lamella/transform/grad.h"

#include <algorithm>

#include "lamella/ir/call_site.h"
#include "lamella/ir/window.h"
#include "lamella/ops/custom_gradient.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/tensor_operators.h"
#include "lamella/ops/zero_gradient.h"
#include "lamella/transform/composite.h"
#include "lamella/transform/walk_back.h"

namespace lamella {

namespace {

size_t recorded() {
  return current_recorder().tape().size();
}

std::vector<Ref<Node>> recorded_since(size_t first) {
  const auto all = current_recorder().tape().subspan(first);
  return {all.begin(), all.end()};
}

// A composite's gradient: its body is recorded again, as nodes, and walked back through. Where the
// forward body is in the same graph the two become one.
std::vector<Tensor> through_composite(const Node& node, const std::vector<Tensor>& cotangents,
                                      const std::vector<bool>& needed) {
  const size_t first = recorded();
  const std::vector<Tensor> results =
      expand_composite(node, {node.operands().begin(), node.operands().end()});
  Cotangents inner;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!cotangents[i].defined()) continue;
    accumulate(inner, results[i].value().get(), cotangents[i]);
  }
  std::vector<Value*> wrt;
  for (size_t i = 0; i < needed.size(); ++i) {
    if (needed[i]) wrt.push_back(node.operand(i));
  }
  walk_back(inner, wrt, first);
  std::vector<Tensor> gradients(needed.size());
  PointerMap<Value, bool> given;
  for (size_t i = 0; i < needed.size(); ++i) {
    const Tensor* found = inner.find(node.operand(i));
    // An operand that appears twice gets its whole cotangent once.
    if (needed[i] && found != nullptr && given.insert(node.operand(i)).second) {
      gradients[i] = *found;
    }
  }
  return gradients;
}

const Gradient& gradient_rule(const Node& node) {
  return opdef(node).fields().vjp.value;
}

// What a gradient in `wrt` may pass through: the float values that depend on them, and which of the
// nodes give such, unless they let no gradient through.
struct Dependents {
  PointerMap<Value, bool> values;
  std::vector<bool> nodes;

  Dependents(std::span<Value* const> wrt, std::span<const Ref<Node>> recorded)
      : values(wrt.size() + recorded.size()), nodes(recorded.size(), false) {
    for (const Value* value : wrt) values.insert(value);
    for (size_t i = 0; i < recorded.size(); ++i) {
      const Node& node = *recorded[i];
      nodes[i] = std::ranges::any_of(node.operands(),
                                     [&](const auto& operand) { return has(operand.get()); }) &&
                 !is_zero(gradient_rule(node));
      if (!nodes[i]) continue;
      for (const Ref<Value>& result : node.results()) {
        if (is_float(result->type().dtype)) values.insert(result.get());
      }
    }
  }
  bool has(const Value* value) const { return values.contains(value); }
};

std::vector<Tensor> gradients_of(const Node& node, std::vector<Tensor> cotangents,
                                 std::vector<bool> needed) {
  const WrittenNumbers written;
  const Gradient& rule = gradient_rule(node);
  if (rule.through_composite) return through_composite(node, cotangents, needed);
  if (rule.function == nullptr) {
    throw Error(ErrorKind::Unsupported,
                fmt::format("[{}] has no gradient: {}", node.op().name(), rule.why_not),
                node.location());
  }
  VjpCall call(node, std::move(cotangents), std::move(needed));
  rule.function(call);
  return std::move(call.gradients());
}

}  // namespace

void accumulate(Cotangents& cotangents, const Value* value, const Tensor& cotangent) {
  Tensor& sum = cotangents[value];
  sum = sum.defined() ? sum + cotangent : cotangent;
}

void walk_back(Cotangents& cotangents, std::span<Value* const> wrt, size_t first) {
  walk_back(cotangents, wrt, recorded_since(first));
}

void walk_back(Cotangents& cotangents, std::span<Value* const> wrt,
               std::span<const Ref<Node>> nodes) {
  const Dependents dependents(wrt, nodes);
  const ProvenanceScope outer;
  for (size_t i = nodes.size(); i-- > 0;) {
    const Node& node = *nodes[i];
    if (!dependents.nodes[i]) continue;
    std::vector<Tensor> arriving(node.results().size());
    bool any = false;
    for (size_t r = 0; r < arriving.size(); ++r) {
      const Tensor* found = cotangents.find(node.result(r));
      if (found == nullptr) continue;
      arriving[r] = *found;
      any = true;
    }
    if (!any) continue;
    std::vector<bool> needed;
    for (const Ref<Value>& operand : node.operands()) {
      needed.push_back(dependents.has(operand.get()) && is_float(operand->type().dtype));
    }
    // Gradients belong to the layer and the line whose gradients they are.
    set_current_provenance({.layer = node.layer(), .phase = Phase::Backward});
    const CallSiteScope line(node.location());
    const std::vector<Tensor> gradients = gradients_of(node, std::move(arriving), needed);
    for (size_t o = 0; o < gradients.size(); ++o) {
      if (gradients[o].defined()) accumulate(cotangents, node.operand(o), gradients[o]);
    }
  }
}

namespace {

// Says that the window is on a walk back while it lives.
class WalkScope {
 public:
  WalkScope() { Window::of_thread().begin_walk(); }
  ~WalkScope() { Window::of_thread().end_walk(); }
  WalkScope(const WalkScope&) = delete;
};

class CustomRule final : public CustomGradientRule {
 public:
  CustomRule(CustomBackward backward, size_t operand_count)
      : backward_(std::move(backward)), operand_count_(operand_count) {}

  void apply(VjpCall& call) const override {
    std::vector<Tensor> operands, results, cotangents;
    const size_t all = call.node().operands().size();
    for (size_t i = 0; i < operand_count_; ++i) operands.push_back(call.operand(i));
    for (size_t i = operand_count_; i < all; ++i) {
      results.push_back(call.operand(i));
      cotangents.push_back(call.cotangent(i - operand_count_));
    }
    const CallSiteScope own_lines({});
    const WrittenNumbers given(false);  // by the user, who may give others next time
    const std::vector<Tensor> gradients = backward_(operands, results, cotangents);
    if (gradients.size() != operand_count_) {
      fail(ErrorKind::Value,
           "[custom_gradient] backward must give {} gradients, one an operand, got {}",
           operand_count_, gradients.size());
    }
    for (size_t i = 0; i < operand_count_; ++i) {
      if (!gradients[i].defined() || !call.needs(i)) continue;
      if (gradients[i].shape() != operands[i].shape()) {
        fail(ErrorKind::Value, "[custom_gradient] gradient {} has shape {}, its operand {}", i,
             text(gradients[i].shape()), text(operands[i].shape()));
      }
      call.give(i, gradients[i]);
    }
  }

 private:
  CustomBackward backward_;
  size_t operand_count_;
};

}  // namespace

struct Pullback::Kept {
  std::vector<Ref<Value>> wrt, results;
  std::vector<Ref<Node>> nodes;     // between the two
  std::vector<HeldValue> operands;  // theirs that are yet to be computed, by whichever node

  Kept(std::span<const Tensor> tensors, const char* name) {
    for (const Tensor& tensor : tensors) {
      if (!is_float(tensor.dtype())) {
        fail(ErrorKind::Type, "[{}] only float tensors have gradients, got {}", name,
             text(tensor.type()));
      }
      wrt.push_back(current_recorder().inside(tensor.value()));
    }
  }
  Kept(const Kept&) = delete;
  ~Kept() {
    for (const Ref<Node>& node : nodes) node->let_go();
  }

  // Takes what a walk back from the results needs of a run.
  void keep(std::span<const Ref<Node>> run) {
    const Dependents dependents(pointers(), run);
    PointerMap<Value, bool> reached(results.size() + run.size());
    for (const Ref<Value>& result : results) reached.insert(result.get());
    for (size_t i = run.size(); i-- > 0;) {
      const Ref<Node>& node = run[i];
      const bool is_between =
          dependents.nodes[i] && std::ranges::any_of(node->results(), [&](const auto& result) {
            return reached.contains(result.get());
          });
      if (!is_between) continue;
      nodes.push_back(node);
      node->keep();
      for (const Ref<Value>& operand : node->operands()) {
        if (dependents.has(operand.get())) reached.insert(operand.get());
        if (operand->state() == Value::State::Pending) operands.emplace_back(operand);
      }
    }
    std::ranges::reverse(nodes);
  }

  // The gradients for what is known of the results. Needs an open gradient scope.
  std::vector<Tensor> gradients(Cotangents cotangents, std::span<const Ref<Node>> between) const {
    {
      const WalkScope walk;
      walk_back(cotangents, pointers(), between);
    }
    std::vector<Tensor> found;
    for (const Ref<Value>& value : wrt) {
      const Tensor* cotangent = cotangents.find(value.get());
      found.push_back(cotangent == nullptr ? ops::zeros_of(value->type()) : *cotangent);
    }
    return found;
  }

 private:
  std::vector<Value*> pointers() const {
    std::vector<Value*> values;
    for (const Ref<Value>& value : wrt) values.push_back(value.get());
    return values;
  }
};

std::vector<Tensor> Pullback::operator()(std::span<const Tensor> cotangents) const {
  const std::vector<Ref<Value>>& results = kept_->results;
  if (cotangents.size() != results.size()) {
    fail(ErrorKind::Value, "[vjp] the function returned {} tensors, got cotangents for {}",
         results.size(), cotangents.size());
  }
  const GradientScope scope;
  Cotangents known;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!cotangents[i].defined()) continue;
    const TensorType &given = cotangents[i].type(), &type = results[i]->type();
    if (given.shape != type.shape || given.dtype != type.dtype) {
      const ErrorKind kind = given.dtype != type.dtype ? ErrorKind::Type : ErrorKind::Value;
      fail(kind, "[vjp] the cotangent of result {} must be {} like it, got {}", i, text(type),
           text(given));
    }
    accumulate(known, results[i].get(), cotangents[i]);
  }
  return kept_->gradients(std::move(known), kept_->nodes);
}

ValueAndPullback vjp(const std::function<std::vector<Tensor>()>& function,
                     std::span<const Tensor> wrt) {
  const GradientScope scope;
  const size_t first = recorded();
  const auto kept = std::make_shared<Pullback::Kept>(wrt, "vjp");
  std::vector<Tensor> values = function();
  for (const Tensor& value : values) kept->results.push_back(value.value());
  kept->keep(recorded_since(first));
  return {.values = std::move(values), .pullback = Pullback(kept)};
}

ValueAndGradients value_and_grad(const std::function<std::vector<Tensor>()>& function,
                                 std::span<const Tensor> wrt, const Tensor& sensitivity) {
  const GradientScope scope;
  const size_t first = recorded();
  const Pullback::Kept kept(wrt, "value_and_grad");
  ValueAndGradients result{.values = function(), .gradients = {}};
  if (result.values.empty())
    fail(ErrorKind::Value, "[value_and_grad] the function returned nothing");
  const Tensor& target = result.values[0];
  if (!is_float(target.dtype())) {
    fail(ErrorKind::Type, "[value_and_grad] the first result must be of a float dtype, got {}",
         text(target.type()));
  }
  Cotangents cotangents;
  const Tensor one = ops::broadcast_to(Tensor::scalar(target.dtype(), 1), target.shape());
  cotangents[target.value().get()] = sensitivity.defined() ? sensitivity : one;
  result.gradients = kept.gradients(std::move(cotangents), recorded_since(first));
  return result;
}

std::vector<Tensor> grad(const std::function<Tensor()>& function, std::span<const Tensor> wrt) {
  return value_and_grad([&] { return std::vector{function()}; }, wrt).gradients;
}

std::vector<Tensor> custom_gradient(
    const std::vector<Tensor>& operands,
    const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& forward,
    CustomBackward backward) {
  const std::vector<Tensor> results = forward(operands);
  std::vector<Tensor> joined = operands;
  for (const Tensor& result : results) joined.push_back(ops::stop_gradient(result));
  return ops::with_custom_gradient(
      joined, static_cast<int64_t>(operands.size()),
      Ref<AttributeObject>(new CustomRule(std::move(backward), operands.size())));
}

}  // namespace lamella
