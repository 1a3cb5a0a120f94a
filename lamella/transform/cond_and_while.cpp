// Recording branches and while loops, and their gradients: both run what they differentiate again.
#include "lamella/ir/region.h"
#include "lamella/ops/custom_gradient.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/tensor_operators.h"
#include "lamella/transform/control_flow.h"
#include "lamella/transform/replay.h"

namespace lamella {

namespace {

// What a region recorded, and how its nodes are recorded again.
struct Recorded {
  std::shared_ptr<RegionTrace> trace;
  Tensors carried;  // placeholders
  Tensors results;
  size_t nodes = 0;
};

// Both regions read the union of what either reads: the captured values, and for each region its
// placeholders in that order (some of them unused).
class SharedCapture {
 public:
  explicit SharedCapture(std::initializer_list<RegionTrace*> traces) {
    PointerMap<Value, bool> seen;
    for (RegionTrace* trace : traces) {
      for (const Ref<Value>& value : trace->captured()) {
        if (seen.insert(value.get()).second) values_.push_back(value);
      }
    }
    for (RegionTrace* trace : traces) {
      std::vector<Ref<Value>>& inside = placeholders_.emplace_back(trace, 0).second;
      for (const Ref<Value>& value : values_) inside.push_back(trace->inside(value));
    }
  }

  size_t size() const { return placeholders_.front().second.size(); }
  const std::vector<Ref<Value>>& placeholders(const RegionTrace& trace) const {
    return std::ranges::find(placeholders_, &trace, [](const auto& each) { return each.first; })
        ->second;
  }
  // The captured values, which are the operands of a node from now on: nothing here or in the
  // traces holds them, since a gradient rule may be kept for longer than they are.
  std::vector<Ref<Value>> release() {
    for (const auto& [trace, inside] : placeholders_) trace->forget_captured();
    return std::move(values_);
  }

 private:
  std::vector<Ref<Value>> values_;
  std::vector<std::pair<RegionTrace*, std::vector<Ref<Value>>>> placeholders_;
};

Ref<Region> region_from(const Recorded& recorded, const SharedCapture& captured) {
  std::vector<Ref<Value>> inputs{recorded.trace->inputs()[0]};
  append(inputs, values_of(recorded.carried));
  append(inputs, captured.placeholders(*recorded.trace));
  return Region::make(inputs, recorded.trace->tape().first(recorded.nodes),
                      values_of(recorded.results));
}

// A loop's body has turns, and what is the same in all of them is done before; a branch is run or
// not.
enum class RegionKind : uint8_t { Branch, Loop };

Recorded record_region(std::string_view op, RegionKind kind, const Tensors& like,
                       const std::function<Tensors(const Tensors&)>& function) {
  const Invariants invariants = kind == RegionKind::Loop ? Invariants::Hoisted : Invariants::Inside;
  Recorded recorded{
      .trace = std::make_shared<RegionTrace>(op, invariants), .carried = {}, .results = {}};
  RegionTrace& trace = *recorded.trace;
  const Tensor turn = trace.number_input(DType::Int64);
  for (const Tensor& tensor : like) recorded.carried.push_back(trace.input(tensor.type()));
  RecorderScope scope(trace);
  std::optional<TurnScope> turns;
  if (kind == RegionKind::Loop) turns.emplace(turn);
  recorded.results = function(recorded.carried);
  for (Tensor& result : recorded.results) {
    if (!result.defined()) fail(ErrorKind::Value, "[{}] the body gave an undefined tensor", op);
    result = Tensor(trace.inside(result.value()));
  }
  recorded.nodes = trace.tape().size();
  trace.close();
  return recorded;
}

// Records the region's nodes again with these tensors for its placeholders.
Tensors record_again(const Recorded& recorded, const Tensors& carried,
                     const std::vector<Ref<Value>>& placeholders, const Tensors& captured) {
  Replay replay;
  replay.set(values_of(recorded.carried), carried);
  replay.set(placeholders, captured);
  if (current_turn().defined()) replay.set(recorded.trace->inputs()[0], current_turn());
  replay.run(recorded.trace->tape().first(recorded.nodes));
  Tensors results;
  for (const Tensor& result : recorded.results) results.push_back(replay.of(result.value()));
  return results;
}

class BranchGradient final : public CustomGradientRule {
 public:
  BranchGradient(Recorded then, Recorded otherwise, SharedCapture captured)
      : then_(std::move(then)), otherwise_(std::move(otherwise)), captured_(std::move(captured)) {}

  // The branches are attributes beside it.
  bool means_the_same(const AttributeObject& other) const override {
    return dynamic_cast<const BranchGradient*>(&other) != nullptr;
  }

  void apply(VjpCall& call) const override {
    Tensors outside, wrt;
    std::vector<size_t> places;
    for (size_t i = 1; i < call.node().operands().size(); ++i) {
      outside.push_back(call.operand(i));
      if (!call.needs(i)) continue;
      places.push_back(i);
    }
    Tensors cotangents;
    for (size_t i = 0; i < call.node().results().size(); ++i) {
      cotangents.push_back(call.has_cotangent(i) ? call.cotangent(i) : Tensor());
    }
    // The branch once more, and back through it.
    const auto back = [&](const Recorded& branch) {
      return [&] {
        Tensors inside, targets;
        auto& trace = static_cast<RegionTrace&>(current_recorder());
        for (const Tensor& tensor : outside) inside.emplace_back(trace.inside(tensor.value()));
        for (size_t place : places) targets.push_back(inside[place - 1]);
        const size_t first = current_recorder().tape().size();
        const Tensors results =
            record_again(branch, {}, captured_.placeholders(*branch.trace), inside);
        Tensors gradients = pull_back(results, cotangents, targets, first);
        for (size_t i = 0; i < gradients.size(); ++i) {
          gradients[i] = or_zeros(gradients[i], targets[i]);
        }
        return gradients;
      };
    };
    const Tensors gradients =
        cond(call.operand(0), back(then_), back(otherwise_), call.node().location());
    for (size_t i = 0; i < places.size(); ++i) call.give(places[i], gradients[i]);
  }

 private:
  Recorded then_, otherwise_;
  SharedCapture captured_;
};

class WhileGradient final : public CustomGradientRule {
 public:
  WhileGradient(Recorded body, Ref<Region> region, SharedCapture captured)
      : body_(std::move(body)), region_(std::move(region)), captured_(std::move(captured)) {}

  // The body is an attribute beside it.
  bool means_the_same(const AttributeObject& other) const override {
    return dynamic_cast<const WhileGradient*>(&other) != nullptr;
  }

  void apply(VjpCall& call) const override {
    const size_t carried = body_.carried.size(), captured = captured_.size();
    std::vector<size_t> state_of, sums_of;
    Tensors operands, state;
    for (size_t i = 0; i < carried + captured; ++i) operands.push_back(call.operand(i));
    for (size_t i = 0; i < carried; ++i) {
      if (!is_float(body_.carried[i].dtype())) continue;
      state_of.push_back(i);
      state.push_back(call.cotangent(i));
    }
    for (size_t i = carried; i < carried + captured; ++i) {
      if (!call.needs(i)) continue;
      sums_of.push_back(i);
      state.push_back(ops::zeros_of(operands[i].type()));
    }
    // One turn back: the body again from what it began with, then through it.
    Tensors placeholders(body_.carried);
    for (size_t i = carried; i < operands.size(); ++i) placeholders.push_back(operands[i]);
    append(placeholders, state);
    RegionTrace trace("while_loop");
    std::vector<Ref<Value>> inputs;
    Tensors begin, outside, arriving, next;
    {
      const Tensor turn = trace.number_input(DType::Int64);
      const auto place = [&](const Tensor& like) {
        return like.value()->is_number() ? trace.number_input(like.dtype())
                                         : trace.input(like.type());
      };
      for (const Tensor& like : body_.carried) begin.push_back(trace.input(like.type()));
      for (size_t i = carried; i < operands.size(); ++i) outside.push_back(place(operands[i]));
      for (const Tensor& like : state) arriving.push_back(trace.input(like.type()));
      inputs = trace.inputs();
      RecorderScope scope(trace);
      const TurnScope turns(turn);
      const Tensors results =
          record_again(body_, begin, captured_.placeholders(*body_.trace), outside);
      Tensors cotangents(results.size()), wrt;
      for (size_t i = 0; i < state_of.size(); ++i) cotangents[state_of[i]] = arriving[i];
      for (size_t i : state_of) wrt.push_back(begin[i]);
      for (size_t i : sums_of) wrt.push_back(outside[i - carried]);
      const Tensors gradients = pull_back(results, cotangents, wrt, 0);
      for (size_t i = 0; i < gradients.size(); ++i) {
        if (i < state_of.size()) {
          next.push_back(or_zeros(gradients[i], arriving[i]));
        } else {
          next.push_back(gradients[i].defined() ? arriving[i] + gradients[i] : arriving[i]);
        }
        next.back() = in_layout(next.back(), arriving[i].type().layout);
      }
    }
    if (!trace.captured().empty()) {
      fail(ErrorKind::Unsupported,
           "[while_loop] its gradient reads tensors or numbers that the body does not: a gradient "
           "rule of the user's inside a while loop may use only what it is given");
    }
    const Ref<Region> backward = Region::make(inputs, trace.tape(), values_of(next));
    Tensors values = operands;
    values.push_back(call.result(carried));
    append(values, state);
    const Tensors results = ops::while_loop_backward(
        values, region_, backward, static_cast<int64_t>(carried), static_cast<int64_t>(captured),
        static_cast<int64_t>(state.size()));
    for (size_t i = 0; i < state_of.size(); ++i) call.give(state_of[i], results[i]);
    for (size_t i = 0; i < sums_of.size(); ++i) call.give(sums_of[i], results[state_of.size() + i]);
  }

 private:
  Recorded body_;
  Ref<Region> region_;
  SharedCapture captured_;
};

}  // namespace

std::vector<Tensor> cond(const Tensor& condition, const BranchBody& then,
                         const BranchBody& otherwise, SourceLocation where) {
  Recorded first =
      record_region("cond", RegionKind::Branch, {}, [&](const Tensors&) { return then(); });
  Recorded second =
      record_region("cond", RegionKind::Branch, {}, [&](const Tensors&) { return otherwise(); });
  SharedCapture captured({first.trace.get(), second.trace.get()});
  // One layout for what either gives.
  for (size_t i = 0; i < std::min(first.results.size(), second.results.size()); ++i) {
    if (first.results[i].type().layout == second.results[i].type().layout) continue;
    RecorderScope scope(*second.trace);
    second.results[i] = in_layout(second.results[i], first.results[i].type().layout);
    second.nodes = second.trace->tape().size();
  }
  const Ref<Region> taken = region_from(first, captured);
  const Ref<Region> not_taken = region_from(second, captured);
  Tensors values{condition};
  append(values, tensors_of(captured.release()));
  const NodeLocation location(where);
  return ops::branch(
      values, taken, not_taken,
      Ref<AttributeObject>(new BranchGradient(std::move(first), std::move(second), captured)));
}

std::vector<Tensor> while_loop(const LoopCondition& condition, const LoopBody& body,
                               const std::vector<Tensor>& initial, SourceLocation where) {
  const Recorded asked =
      record_region("while_loop", RegionKind::Loop, initial,
                    [&](const Tensors& carried) { return Tensors{condition(carried)}; });
  Recorded turned =
      record_region("while_loop", RegionKind::Loop, initial,
                    [&](const Tensors& carried) { return as_carried(body(carried), carried); });
  if (turned.results.size() != initial.size()) {
    fail(ErrorKind::Value, "[while_loop] the body must give the {} tensors it carries, got {}",
         initial.size(), turned.results.size());
  }
  SharedCapture captured({asked.trace.get(), turned.trace.get()});
  const Ref<Region> goes_on = region_from(asked, captured);
  const Ref<Region> region = region_from(turned, captured);
  Tensors values = initial;
  append(values, tensors_of(captured.release()));
  const NodeLocation location(where);
  Tensors results =
      ops::while_loop(values, goes_on, region, static_cast<int64_t>(initial.size()),
                      Ref<AttributeObject>(new WhileGradient(std::move(turned), region, captured)));
  results.pop_back();  // the number of turns
  return results;
}

}  // namespace lamella
