// Declared costs at the sizes of a run.
#include "lamella/runtime/launch_work.h"

#include "lamella/ops/opdef.h"

namespace lamella {

namespace {

TensorType sized_type(const TensorType& type, std::span<const int64_t> bindings) {
  TensorType sized = type;
  for (Dim& size : sized.shape) size = size.evaluate(bindings);
  return sized;
}

double elements_of(const Value& value, std::span<const int64_t> bindings) {
  return static_cast<double>(element_count(value.type().shape).evaluate(bindings));
}

// What a cost function counts, which reads shapes that must be known.
double counted_flops(const Node& node, std::span<const int64_t> bindings) {
  std::vector<Ref<Value>> held;
  std::vector<Value*> operands;
  for (const Ref<Value>& operand : node.operands()) {
    held.push_back(operand->is_number() ? operand
                                        : Value::input(sized_type(operand->type(), bindings)));
    operands.push_back(held.back().get());
  }
  std::vector<TensorType> results;
  for (const Ref<Value>& result : node.results()) {
    results.push_back(sized_type(result->type(), bindings));
  }
  const Ref<Node> sized =
      Node::make(node.op(), operands, node.attributes_ref(), results, node.location());
  return opdef(node).fields().cost.value.flops(*sized);
}

double flops_of(const Node& node, std::span<const int64_t> bindings) {
  const Cost& cost = opdef(node).fields().cost.value;
  if (cost.flops != nullptr) return counted_flops(node, bindings);
  if (node.results().empty()) return 0;
  // A reduction works on what it reads.
  const bool reduces = opdef(node).lowering().kind == LoweringKind::Reduction;
  return cost.flops_per_element *
         elements_of(reduces ? *node.operand(0) : *node.result(), bindings);
}

int64_t bytes_of(const Step& step, const Instance::StepArguments& arguments) {
  int64_t bytes = 0;
  if (step.kernel != nullptr) {
    for (const TensorView& view : arguments.views) bytes += view.count() * size_of(view.dtype);
    return bytes;
  }
  for (size_t b = 0; b < step.buffers.size(); ++b) {
    bytes += elements_touched(arguments.launch, b) * size_of(step.buffers[b].dtype);
  }
  return bytes;
}

}  // namespace

LaunchWork work_of(std::span<const Step> steps, const Instance& sized, const Instance::Batch& batch,
                   std::span<const int64_t> bindings) {
  LaunchWork work;
  double flops = 0;
  for (const size_t step : batch.steps) {
    work.bytes += bytes_of(steps[step], sized.steps[step]);
    for (const Node* node : steps[step].nodes) {
      work.parts.push_back({.node = node, .flops = flops_of(*node, bindings)});
      flops += work.parts.back().flops;
    }
  }
  for (LaunchPart& part : work.parts) {
    part.share = flops > 0 ? part.flops / flops : 1 / static_cast<double>(work.parts.size());
  }
  return work;
}

}  // namespace lamella
