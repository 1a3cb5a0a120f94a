// Recording a scan, and its gradient: another scan, from the last turn to the first.
#include "lamella/ir/region.h"
#include "lamella/ops/custom_gradient.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/tensor_operators.h"
#include "lamella/transform/control_flow.h"
#include "lamella/transform/replay.h"

namespace lamella {

namespace {

Tensors row_major(Tensors tensors) {
  for (Tensor& tensor : tensors) tensor = in_layout(tensor, Layout::RowMajor);
  return tensors;
}

// A body recorded once: everything a backward pass is made from.
struct ScanTrace {
  std::shared_ptr<RegionTrace> trace;
  Tensors carried, slices;     // placeholders
  Tensors results;             // of the body: what is carried on, then what is stacked
  size_t body_nodes = 0;       // on the tape; behind them are those of backward passes
  size_t operands = SIZE_MAX;  // how many of the captured values are the node's operands
  std::string why_not;         // why there is no gradient
  Residuals kept = Residuals::Saved;
  // Values of the body that a backward pass reads, in the order of the further stacked results.
  std::vector<Ref<Value>> residuals;
  // Whether a gradient can be asked for each captured value: see note_differentiable.
  std::vector<bool> differentiable;

  // A number that no tensor stands for was written in the program; nobody can ask for its gradient,
  // and nothing is kept for that. To be called while the captured values are known.
  void note_differentiable() {
    for (size_t i = differentiable.size(); i < trace->captured().size(); ++i) {
      const Value& value = *trace->captured()[i];
      differentiable.push_back(is_float(value.type().dtype) &&
                               (!value.is_number() || value.handles() > 0));
    }
  }

  // All that the node gives, residuals too: a gradient's gradient reaches them.
  Tensors all_results() const {
    Tensors all = results;
    for (const Ref<Value>& residual : residuals) all.emplace_back(residual);
    return all;
  }
};

// The placeholders a gradient can be asked for.
struct Targets {
  std::vector<size_t> carried, slices, captured;

  Tensors tensors(const ScanTrace& traced) const {
    Tensors all;
    for (size_t i : carried) all.push_back(traced.carried[i]);
    for (size_t i : slices) all.push_back(traced.slices[i]);
    for (size_t i : captured) all.emplace_back(traced.trace->captured_inputs()[i]);
    return all;
  }
};

Targets all_targets(const ScanTrace& traced) {
  Targets targets;
  for (size_t i = 0; i < traced.carried.size(); ++i) {
    if (is_float(traced.carried[i].dtype())) targets.carried.push_back(i);
  }
  for (size_t i = 0; i < traced.slices.size(); ++i) {
    if (is_float(traced.slices[i].dtype())) targets.slices.push_back(i);
  }
  for (size_t i = 0; i < std::min(traced.operands, traced.differentiable.size()); ++i) {
    if (traced.differentiable[i]) targets.captured.push_back(i);
  }
  return targets;
}

// One turn's backward pass on the trace's tape.
struct BackwardTurn {
  Tensors cotangents;  // placeholders for those of the results; undefined where there is none
  Tensors gradients;   // of the targets; may be undefined
  std::vector<Ref<Node>> nodes;
};

// What the body computes and a backward turn is given.
PointerMap<Value, bool> saved_values(const ScanTrace& traced) {
  PointerMap<Value, bool> values;
  if (traced.kept == Residuals::Recomputed) return values;
  const auto tape = traced.trace->tape();
  for (size_t i = 0; i < traced.body_nodes; ++i) {
    for (const Ref<Value>& result : tape[i]->results()) values.insert(result.get());
  }
  return values;
}

BackwardTurn backward_turn(const ScanTrace& traced, const std::vector<bool>& arriving,
                           const Targets& targets) {
  RecorderScope scope(*traced.trace);
  BackwardTurn turn;
  const Tensors results = traced.all_results();
  for (size_t i = 0; i < results.size(); ++i) {
    const TensorType& type = results[i].type();
    const bool has = arriving[i] && is_float(type.dtype);
    turn.cotangents.push_back(has ? traced.trace->input(type) : Tensor());
  }
  turn.gradients = pull_back(results, turn.cotangents, targets.tensors(traced), 0);
  std::vector<Ref<Value>> asked;
  for (const Tensor& gradient : turn.gradients) {
    if (gradient.defined()) asked.push_back(gradient.value());
  }
  turn.nodes = needed_nodes(traced.trace->tape(), asked, saved_values(traced));
  return turn;
}

// What a backward turn reads of the forward one and cannot have otherwise.
std::vector<Ref<Value>> residuals_of(const ScanTrace& traced, const BackwardTurn& turn) {
  PointerMap<Value, bool> kept = saved_values(traced), seen;
  for (const Tensor& carried : traced.carried) kept.insert(carried.value().get());
  std::vector<Ref<Value>> residuals;
  const auto add = [&](const Ref<Value>& value) {
    if (kept.contains(value.get()) && seen.insert(value.get()).second) residuals.push_back(value);
  };
  for (const Ref<Node>& node : turn.nodes) {
    for (const Ref<Value>& operand : node->operands()) add(operand);
  }
  for (const Tensor& gradient : turn.gradients) {
    if (gradient.defined()) add(gradient.value());
  }
  return residuals;
}

void find_residuals(ScanTrace& traced) {
  const bool again = traced.trace->gradient_order() > 1;
  size_t known = 0;
  do {
    known = traced.residuals.size();
    traced.note_differentiable();
    const std::vector<bool> all(traced.results.size() + known, true);
    const BackwardTurn turn = backward_turn(traced, all, all_targets(traced));
    // Those known keep their places.
    for (const Ref<Value>& residual : residuals_of(traced, turn)) {
      if (std::find(traced.residuals.begin(), traced.residuals.end(), residual) ==
          traced.residuals.end()) {
        traced.residuals.push_back(residual);
      }
    }
  } while (again && traced.residuals.size() > known);
}

// A gradient whose sum over turns is one operation over the turns' matrices one below another: the
// product of the transposed `left` [n, i] and `right` [n, j], or without `right` the sum of left's
// rows.
struct SummedOverTurns {
  Tensor left, right;
  bool transposed = false;
  Shape shape;  // of the gradient

  Tensor of(const Tensor& all_left, const Tensor& all_right) const {
    const Tensor sum = right.defined() ? ops::matrix_product(ops::transpose(all_left), all_right)
                                       : ops::sum(all_left, {0});
    const Tensor turned = transposed ? ops::transpose(sum) : sum;
    return turned.shape() == shape ? turned : ops::reshape(turned, shape);
  }
};

std::optional<SummedOverTurns> as_summed_over_turns(const Tensor& gradient) {
  const auto is = [](const Node* node, std::string_view name) {
    return node != nullptr && node->op().name() == name;
  };
  SummedOverTurns found{.left = {}, .right = {}, .shape = gradient.shape()};
  const Node* node = gradient.value()->producer();
  if (is(node, "transpose") && gradient.rank() == 2) {
    found.transposed = true;
    node = node->operand(0)->producer();
  }
  if (is(node, "matrix_product")) {
    const Node* left = node->operand(0)->producer();
    if (!is(left, "transpose") || left->result()->type().shape.size() != 2 ||
        node->operand(1)->type().shape.size() != 2) {
      return std::nullopt;
    }
    found.left = Tensor(left->operands()[0]);
    found.right = Tensor(node->operands()[1]);
    return found;
  }
  if (is(node, "reshape")) node = node->operand(0)->producer();
  if (is(node, "sum") && node->operand(0)->type().shape.size() == 2 &&
      node->attribute<Axes>(0) == Axes{0} && !found.transposed) {
    found.left = Tensor(node->operands()[0]);
    return found;
  }
  return std::nullopt;
}

Tensor all_turns(const Tensor& stacked) {
  return ops::flatten(stacked, 0, 1);
}

// Takes away at its end what was recorded while it lived.
class TraceCut {
 public:
  explicit TraceCut(RegionTrace& trace) : trace_(trace), mark_(trace.mark()) {}
  ~TraceCut() { trace_.cut_back(mark_); }
  TraceCut(const TraceCut&) = delete;

 private:
  RegionTrace& trace_;
  RegionTrace::Mark mark_;
};

class ScanGradient final : public CustomGradientRule {
 public:
  ScanGradient(std::shared_ptr<ScanTrace> traced, int64_t length, Direction direction)
      : traced_(std::move(traced)), length_(length), direction_(direction) {}

  // The body, the length and the direction are attributes beside it.
  bool means_the_same(const AttributeObject& other) const override {
    const auto* scan = dynamic_cast<const ScanGradient*>(&other);
    return scan != nullptr && kept() == scan->kept();
  }

  Residuals kept() const { return traced_->kept; }

  void apply(VjpCall& call) const override {
    const ScanTrace& traced = *traced_;
    if (!traced.why_not.empty()) fail(ErrorKind::Unsupported, "{}", traced.why_not);
    const size_t carried = traced.carried.size(), sequences = traced.slices.size();
    Targets targets = all_targets(traced);
    const auto unneeded = [&](size_t offset) {
      return [&call, offset](size_t i) { return !call.needs(offset + i); };
    };
    std::erase_if(targets.slices, unneeded(carried));
    std::erase_if(targets.captured, unneeded(carried + sequences));
    std::vector<bool> arriving(traced.results.size() + traced.residuals.size());
    for (size_t i = 0; i < arriving.size(); ++i) {
      arriving[i] = i < carried || call.has_cotangent(i);
    }
    const TraceCut cut(*traced.trace);  // this may be asked for at every step
    const BackwardTurn turn = backward_turn(traced, arriving, targets);

    // Which captured tensors' gradients are sums carried along, and which come from all turns at
    // once.
    const size_t first_captured = targets.carried.size() + targets.slices.size();
    std::vector<size_t> summed;
    std::vector<std::pair<size_t, SummedOverTurns>> at_once;
    for (size_t i = 0; i < targets.captured.size(); ++i) {
      const Tensor& gradient = turn.gradients[first_captured + i];
      if (!gradient.defined()) continue;
      if (auto sum = as_summed_over_turns(gradient)) {
        at_once.emplace_back(i, *sum);
      } else {
        summed.push_back(i);
      }
    }

    Tensors initial, sequences_in;
    for (size_t i : targets.carried) initial.push_back(call.cotangent(i));
    for (size_t i : summed) {
      initial.push_back(
          ops::zeros_of(call.operand(carried + sequences + targets.captured[i]).type()));
    }
    for (size_t i = carried; i < arriving.size(); ++i) {
      if (turn.cotangents[i].defined()) sequences_in.push_back(call.cotangent(i));
    }
    for (size_t i = 0; i < traced.residuals.size(); ++i) {
      sequences_in.push_back(call.result(traced.results.size() + i));
    }
    for (size_t i = 0; i < sequences; ++i) sequences_in.push_back(call.operand(carried + i));

    std::vector<size_t> stacked_at;  // what is asked to be stacked, once each
    const ScanBody body = [&](const Tensors& state, const Tensors& slices) {
      Replay replay;
      size_t next = 0;
      for (size_t i : targets.carried) replay.set(turn.cotangents[i].value(), state[next++]);
      size_t slice = 0;
      for (size_t i = carried; i < arriving.size(); ++i) {
        if (turn.cotangents[i].defined()) replay.set(turn.cotangents[i].value(), slices[slice++]);
      }
      for (const Ref<Value>& residual : traced.residuals) {
        replay.set(residual, in_layout(slices[slice++], residual->type().layout));
      }
      for (const Tensor& placeholder : traced.slices)
        replay.set(placeholder.value(), slices[slice++]);
      // What was read when the node was made are its operands; what only the backward pass reads is
      // a value of outside.
      const auto& captured = traced.trace->captured_inputs();
      for (size_t i = 0; i < captured.size(); ++i) {
        replay.set(captured[i], i < traced.operands ? call.operand(carried + sequences + i)
                                                    : Tensor(traced.trace->captured()[i]));
      }
      replay.set(traced.trace->inputs()[0], current_turn());
      replay.run(turn.nodes);
      const auto gradient = [&](size_t i) {
        const Tensor& of_turn = turn.gradients[i];
        return of_turn.defined() ? replay.of(of_turn.value()) : Tensor();
      };
      ScanResult result;
      const auto stack = [&](const Tensor& tensor) {
        const auto same = [&](const Tensor& other) { return other.value() == tensor.value(); };
        const auto place = std::find_if(result.stacked.begin(), result.stacked.end(), same);
        stacked_at.push_back(static_cast<size_t>(place - result.stacked.begin()));
        if (place == result.stacked.end()) result.stacked.push_back(tensor);
      };
      for (size_t i = 0; i < targets.carried.size(); ++i) {
        result.carried.push_back(or_zeros(gradient(i), state[i]));
      }
      for (size_t i = 0; i < summed.size(); ++i) {
        const Tensor& sum = state[targets.carried.size() + i];
        result.carried.push_back(sum + gradient(first_captured + summed[i]));
      }
      for (size_t i = 0; i < targets.slices.size(); ++i) {
        stack(or_zeros(gradient(targets.carried.size() + i), traced.slices[targets.slices[i]]));
      }
      for (const auto& [target, sum] : at_once) {
        stack(replay.of(sum.left.value()));
        if (sum.right.defined()) stack(replay.of(sum.right.value()));
      }
      return result;
    };
    const Direction back =
        direction_ == Direction::Forward ? Direction::Reverse : Direction::Forward;
    const ScanResult result = scan(body, initial, sequences_in,
                                   {.length = length_, .direction = back}, call.node().location());

    for (size_t i = 0; i < targets.carried.size(); ++i) {
      call.give(targets.carried[i], result.carried[i]);
    }
    for (size_t i = 0; i < targets.slices.size(); ++i) {
      call.give(carried + targets.slices[i], result.stacked[stacked_at[i]]);
    }
    const size_t captured = carried + sequences;
    for (size_t i = 0; i < summed.size(); ++i) {
      call.give(captured + targets.captured[summed[i]], result.carried[targets.carried.size() + i]);
    }
    size_t stacked = targets.slices.size();
    for (const auto& [target, sum] : at_once) {
      const auto next = [&] { return all_turns(result.stacked[stacked_at[stacked++]]); };
      const Tensor left = next();
      const Tensor right = sum.right.defined() ? next() : Tensor();
      call.give(captured + targets.captured[target], sum.of(left, right));
    }
  }

 private:
  std::shared_ptr<ScanTrace> traced_;
  int64_t length_;
  Direction direction_;
};

int64_t scan_length(const Tensors& sequences, const ScanOptions& options) {
  std::optional<int64_t> length = options.length;
  for (const Tensor& sequence : sequences) {
    if (sequence.rank() == 0) {
      fail(ErrorKind::Value, "[scan] a sequence needs at least 1 axis, got {}",
           text(sequence.type()));
    }
    const int64_t size = sequence.shape()[0].value();
    if (length && *length != size) {
      fail(ErrorKind::Value, "[scan] a sequence of {} does not fit a length of {}: {}", size,
           *length, text(sequence.type()));
    }
    length = size;
  }
  if (!length) fail(ErrorKind::Value, "[scan] a length is needed where there is no sequence");
  if (*length < 0)
    fail(ErrorKind::Value, "[scan] the length must not be negative, got {}", *length);
  return *length;
}

}  // namespace

ScanResult scan(const ScanBody& body, const std::vector<Tensor>& initial,
                const std::vector<Tensor>& given_sequences, const ScanOptions& options,
                SourceLocation where) {
  const int64_t length = scan_length(given_sequences, options);
  const Tensors sequences = row_major(given_sequences);
  const auto traced = std::make_shared<ScanTrace>();
  traced->kept = options.residuals;
  traced->trace = std::make_shared<RegionTrace>("scan", Invariants::Hoisted);
  RegionTrace& trace = *traced->trace;
  size_t stacked = 0;
  {
    const Tensor turn = trace.number_input(DType::Int64);
    for (const Tensor& tensor : initial) traced->carried.push_back(trace.input(tensor.type()));
    for (const Tensor& sequence : sequences) {
      TensorType type = sequence.type();
      type.shape.erase(0);
      traced->slices.push_back(trace.input(type));
    }
    RecorderScope scope(trace);
    const TurnScope turns(turn);
    ScanResult turned = body(traced->carried, traced->slices);
    if (turned.carried.size() != initial.size()) {
      fail(ErrorKind::Value, "[scan] the body must give the {} tensors it carries, got {}",
           initial.size(), turned.carried.size());
    }
    stacked = turned.stacked.size();
    traced->results = as_carried(std::move(turned.carried), traced->carried);
    append(traced->results, row_major(std::move(turned.stacked)));
    for (Tensor& result : traced->results) {
      if (!result.defined()) fail(ErrorKind::Value, "[scan] the body gave an undefined tensor");
      result = Tensor(trace.inside(result.value()));
    }
    traced->body_nodes = trace.tape().size();
    trace.close();
  }
  std::vector<Ref<Value>> inputs = trace.inputs();
  std::vector<Ref<Value>> outputs = values_of(traced->results);
  if (trace.gradient_order() > 0) {
    try {
      find_residuals(*traced);
      // Stacks are row-major, whatever the layout of what is stacked.
      RecorderScope scope(trace);
      for (const Ref<Value>& residual : traced->residuals) {
        outputs.push_back(in_layout(Tensor(residual), Layout::RowMajor).value());
      }
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::Unsupported) throw;
      traced->why_not = error.message();
    }
  }
  traced->operands = trace.captured().size();
  traced->note_differentiable();
  append(inputs, trace.captured_inputs());
  const Ref<Region> region = Region::make(inputs, trace.tape(), outputs);
  Tensors values = initial;
  append(values, sequences);
  append(values, tensors_of(trace.captured()));
  const NodeLocation location(where);
  const Tensors results = ops::scan(
      values, region, static_cast<int64_t>(initial.size()), static_cast<int64_t>(sequences.size()),
      Shape{length}, options.direction == Direction::Reverse,
      Ref<AttributeObject>(new ScanGradient(traced, length, options.direction)));
  trace.forget_captured();
  const auto carried_end = results.begin() + static_cast<std::ptrdiff_t>(initial.size());
  return {.carried = {results.begin(), carried_end},
          .stacked = {carried_end, carried_end + static_cast<std::ptrdiff_t>(stacked)}};
}

Residuals residuals_of(const Node& scan) {
  const auto* rule =
      dynamic_cast<const ScanGradient*>(scan.attribute<Ref<AttributeObject>>(5).get());
  return rule == nullptr ? Residuals::Saved : rule->kept();
}

}  // namespace lamella
