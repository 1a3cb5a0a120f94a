// Following a program, and recording it again.
#include "lamella/ir/trace.h"

#include <algorithm>
#include <cstring>

#include "lamella/ir/region.h"
#include "lamella/ir/window.h"

namespace lamella {

namespace {

thread_local Tracer* tracer_of_thread = nullptr;
thread_local Tracer* paused_tracer_of_thread = nullptr;

// References to a storage that are nobody's handle: it may be asked about one that is gone.
size_t own_references(const Storage* storage, std::span<const Tensor> results) {
  const auto of_results = std::ranges::count_if(
      results, [&](const Tensor& result) { return result.storage().get() == storage; });
  return static_cast<size_t>(of_results) + Window::of_thread().journal_references(storage);
}

}  // namespace

std::vector<Ref<Storage>> storages_of(std::span<const Tensor> tensors) {
  std::vector<Ref<Storage>> storages;
  storages.reserve(tensors.size());
  for (const Tensor& tensor : tensors) storages.push_back(tensor.storage());
  return storages;
}

std::vector<size_t> sharing(std::span<const Ref<Storage>> storages) {
  std::vector<size_t> first(storages.size());
  for (size_t i = 0; i < storages.size(); ++i) {
    while (storages[first[i]] != storages[i]) ++first[i];
  }
  return first;
}

bool recorded_elsewhere() {
  return Tracer::current() != nullptr || &current_recorder() != &Window::of_thread();
}

std::atomic<int> Tracer::running{0};

Tracer* Tracer::of_thread() {
  return tracer_of_thread;
}

TracingPaused::TracingPaused() : tracer_(Tracer::current()) {
  if (tracer_ == nullptr) return;
  tracer_of_thread = nullptr;
  paused_tracer_of_thread = tracer_;
}

TracingPaused::~TracingPaused() {
  if (tracer_ == nullptr) return;
  tracer_of_thread = tracer_;
  paused_tracer_of_thread = nullptr;
}

void Tracer::wrote_beside(const Storage& storage) {
  if (paused_tracer_of_thread != nullptr)
    paused_tracer_of_thread->written_beside_.push_back(&storage);
}

Tracer::Tracer(std::span<const Tensor> arguments, std::function<SourceLocation()> locate)
    : arguments_(storages_of(arguments)), locate_(std::move(locate)) {
  LAMELLA_CHECK(tracer_of_thread == nullptr);
  for (const Ref<Storage>& storage : arguments_) {
    argument_references_.push_back(storage->reference_count() - own_references(storage.get(), {}));
  }
  tracer_of_thread = this;
  running.fetch_add(1, std::memory_order_relaxed);
}

Tracer::~Tracer() {
  tracer_of_thread = nullptr;
  running.fetch_sub(1, std::memory_order_relaxed);
}

void Tracer::forget(const Storage& storage) {
  for (Tracer* tracer : {tracer_of_thread, paused_tracer_of_thread}) {
    if (tracer == nullptr) continue;
    tracer->made_here_.erase(&storage);
    tracer->of_bodies_.erase(&storage);
  }
}

void Tracer::give_up(std::string why) {
  if (!reason_) reason_ = Reason{std::move(why), locate_()};
}

// ---- Slots ----

uint32_t Tracer::new_slot(const Ref<Value>& value) {
  const auto slot = static_cast<uint32_t>(trace_->constants_.size());
  trace_->constants_.emplace_back();
  slots_[value.get()] = slot;
  held_.push_back(value);
  return slot;
}

std::optional<uint32_t> Tracer::slot_of(const Ref<Value>& value) {
  if (const auto found = slots_.find(value.get()); found != slots_.end()) return found->second;
  if (!value->is_number()) {
    give_up("it uses a tensor that was made in a way a trace cannot repeat");
    return std::nullopt;
  }
  constant(value);
  return slots_.at(value.get());
}

Trace::Place Tracer::place_of(Storage& storage) const {
  for (size_t i = 0; i < arguments_.size(); ++i) {
    if (arguments_[i].get() == &storage) return {.argument = static_cast<int>(i), .storage = {}};
  }
  return {.argument = -1, .storage = Ref<Storage>(&storage)};
}

// ---- What happens ----

void Tracer::constant(const Ref<Value>& value) {
  trace_->constants_[new_slot(value)] = value;
}

void Tracer::created(const Storage& storage, bool in_body) {
  made_here_.insert(&storage);
  if (in_body) {
    of_bodies_.insert(&storage);
  } else {
    of_bodies_.erase(&storage);  // of one that another thread destroyed, in the same place
  }
}

void Tracer::read(Storage& storage, const Ref<Value>& value) {
  if (reason_ || made_here_.contains(&storage)) return;
  if (slots_.contains(value.get())) {
    // Two tensors that happen to share one value now may hold two at the next call.
    const auto from = read_from_.find(value.get());
    if (from != read_from_.end() && from->second != &storage) {
      give_up("two of the tensors it reads share one value");
    }
    return;
  }
  const uint32_t slot = new_slot(value);
  read_from_[value.get()] = &storage;
  trace_->steps_.push_back(
      {.kind = Trace::Kind::Read, .given = {}, .results = {slot}, .place = place_of(storage)});
}

void Tracer::wrote(Storage& storage, const Ref<Value>& value) {
  if (reason_ || made_here_.contains(&storage)) return;
  const std::optional<uint32_t> slot = slot_of(value);
  if (!slot) return;
  trace_->steps_.push_back(
      {.kind = Trace::Kind::Write, .given = {*slot}, .results = {}, .place = place_of(storage)});
}

void Tracer::recorded(const Node& node) {
  if (reason_) return;
  Trace::Step step{.kind = Trace::Kind::Record};
  step.operation = {.op = &node.op(),
                    .attributes = node.attributes_ref(),
                    .location = node.location(),
                    .provenance = node.provenance(),
                    .operand_types = {},
                    .result_types = {}};
  for (const Ref<Value>& operand : node.operands()) {
    const std::optional<uint32_t> slot = slot_of(operand);
    if (!slot) return;
    step.given.push_back(*slot);
    step.operation.operand_types.push_back(operand->type());
  }
  for (const Ref<Value>& result : node.results()) {
    step.results.push_back(new_slot(result));
    step.operation.result_types.push_back(result->type());
  }
  trace_->steps_.push_back(std::move(step));
}

void Tracer::called(HostFunction function, std::span<const Ref<Value>> given,
                    std::span<const Ref<Value>> results) {
  if (reason_) return;
  Trace::Step step{.kind = Trace::Kind::Call};
  for (const Ref<Value>& value : given) {
    const std::optional<uint32_t> slot = slot_of(value);
    if (!slot) return;
    step.given.push_back(*slot);
  }
  for (const Ref<Value>& value : results) step.results.push_back(new_slot(value));
  step.function = std::move(function);
  trace_->steps_.push_back(std::move(step));
}

// ---- The result ----

bool Tracer::kept_made(std::span<const Tensor> results) const {
  return std::ranges::any_of(made_here_, [&](const Storage* storage) {
    if (of_bodies_.contains(storage)) return false;  // a loop's gradient keeps what it is made of
    const size_t references = own_references(storage, results);
    return references == 0 || storage->reference_count() > references;
  });
}

bool Tracer::kept_argument(std::span<const Tensor> results) const {
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const Storage* storage = arguments_[i].get();
    const size_t references = argument_references_[i] + own_references(storage, results);
    if (storage->reference_count() > references) return true;
  }
  return false;
}

Ref<Trace> Tracer::finish(std::span<const Tensor> outputs) {
  {
    const TracingPaused paused;
    const std::vector<size_t> same = sharing(storages_of(outputs));
    for (size_t i = 0; i < outputs.size() && !reason_; ++i) {
      LAMELLA_CHECK(made_here(outputs[i]));
      const std::optional<uint32_t> slot = slot_of(outputs[i].value());
      if (slot) trace_->outputs_.push_back({*slot, same[i]});
    }
  }
  if (reason_) return nullptr;
  drop_unused();
  note_last_uses();
  note_held();
  return trace_;
}

void Tracer::note_held() {
  const auto writes = [](const Trace::Step& step) {
    return step.kind == Trace::Kind::Write || step.kind == Trace::Kind::Call;
  };
  if (std::ranges::none_of(trace_->steps_, writes)) return;
  for (const Trace::Step& step : trace_->steps_) {
    if (step.place.storage) trace_->held_.push_back(step.place.storage.get());
  }
  trace_->held_.insert(trace_->held_.end(), written_beside_.begin(), written_beside_.end());
}

// Leaves out what no output, write or call depends on: it would not run anyway.
void Tracer::drop_unused() {
  std::vector<bool> used(trace_->constants_.size(), false);
  for (const Trace::Output& output : trace_->outputs_) used[output.slot] = true;
  std::vector<Trace::Step> kept;
  for (size_t i = trace_->steps_.size(); i-- > 0;) {
    Trace::Step& step = trace_->steps_[i];
    const bool acts = step.kind == Trace::Kind::Write || step.kind == Trace::Kind::Call;
    const bool needed = std::any_of(step.results.begin(), step.results.end(),
                                    [&](uint32_t slot) { return used[slot]; });
    if (!acts && !needed) continue;
    for (uint32_t slot : step.given) used[slot] = true;
    trace_->operations_ += step.kind == Trace::Kind::Record;
    kept.push_back(std::move(step));
  }
  std::reverse(kept.begin(), kept.end());
  trace_->steps_ = std::move(kept);
}

void Tracer::note_last_uses() {
  std::vector<bool> seen(trace_->constants_.size(), false);
  for (const Trace::Output& output : trace_->outputs_) seen[output.slot] = true;
  for (size_t i = trace_->steps_.size(); i-- > 0;) {
    Trace::Step& step = trace_->steps_[i];
    for (const auto* slots : {&step.given, &step.results}) {
      for (uint32_t slot : *slots) {
        if (!seen[slot]) step.last_used.push_back(slot);
        seen[slot] = true;
      }
    }
  }
}

namespace {

// Whether two constants of traces are the same number, or tensors with the same bytes.
bool same_constant(const Ref<Value>& a, const Ref<Value>& b) {
  if (!a || !b) return !a && !b;
  if (a->type() != b->type() || a->is_number() != b->is_number()) return false;
  if (a->is_number()) {
    return a->state() == b->state() && a->scalar_bits() == b->scalar_bits() &&
           a->size_expression() == b->size_expression();
  }
  const Buffer &left = a->buffer(), &right = b->buffer();
  return left.size == right.size &&
         (left.size == 0 ||
          std::memcmp(left.data(), right.data(), static_cast<size_t>(left.size)) == 0);
}

}  // namespace

bool Trace::takes(std::span<const Ref<Storage>> arguments) const {
  return held_.empty() || std::ranges::none_of(arguments, [&](const Ref<Storage>& argument) {
           return std::ranges::find(held_, argument.get()) != held_.end();
         });
}

bool Trace::same_as(const Trace& other) const {
  const auto same_step = [](const Step& a, const Step& b) {
    return a.kind == b.kind && a.given == b.given && a.results == b.results &&
           a.place.argument == b.place.argument && a.place.storage == b.place.storage &&
           a.operation.op == b.operation.op &&
           mean_the_same(a.operation.attributes, b.operation.attributes) &&
           a.operation.operand_types == b.operation.operand_types;
  };
  return std::ranges::equal(steps_, other.steps_, same_step) &&
         std::ranges::equal(constants_, other.constants_, same_constant) &&
         std::ranges::equal(outputs_, other.outputs_, [](const Output& a, const Output& b) {
           return a.slot == b.slot && a.same_as == b.same_as;
         });
}

namespace {

// The values of a replay by slot. What steps made is held while there is a use for it, as a program
// does in its variables: the window may run before any step.
class Slots {
 public:
  explicit Slots(const std::vector<Ref<Value>>& constants)
      : constants_(constants), made_(constants.size()) {}

  const Ref<Value>& operator[](uint32_t slot) const {
    return made_[slot].get() != nullptr ? made_[slot].ref() : constants_[slot];
  }
  void set(uint32_t slot, const Ref<Value>& value) { made_[slot] = HeldValue(value); }
  void let_go(std::span<const uint32_t> slots) {
    for (uint32_t slot : slots) made_[slot].reset();
  }

 private:
  const std::vector<Ref<Value>>& constants_;
  std::vector<HeldValue> made_;
};

}  // namespace

std::vector<Tensor> Trace::replay(std::span<const Ref<Storage>> arguments) const {
  Window& window = Window::of_thread();
  Slots values(constants_);
  const auto storage_at = [&](const Place& place) -> Storage& {
    return place.argument >= 0 ? *arguments[static_cast<size_t>(place.argument)] : *place.storage;
  };
  const ProvenanceScope scope;
  std::vector<Value*> operands;
  for (const Step& step : steps_) {
    switch (step.kind) {
      case Kind::Read:
        values.set(step.results[0], storage_at(step.place).current());
        break;
      case Kind::Write:
        storage_at(step.place).replace(values[step.given[0]]);
        break;
      case Kind::Record: {
        const Operation& operation = step.operation;
        operands.clear();
        bool as_traced = true;
        for (size_t i = 0; i < step.given.size(); ++i) {
          operands.push_back(values[step.given[i]].get());
          as_traced = as_traced && operands[i]->type() == operation.operand_types[i];
        }
        set_current_provenance(operation.provenance);
        if (operation.provenance.layer == nullptr) set_current_layer(scope.outer().layer);
        // A parameter may have come to lie in memory in another way; then types are inferred.
        const Results results =
            as_traced
                ? window.record_known(*operation.op, operands, operation.attributes,
                                      operation.result_types, operation.location)
                : window.record(*operation.op, operands, operation.attributes, operation.location);
        for (size_t i = 0; i < results.size(); ++i) values.set(step.results[i], results[i]);
        break;
      }
      case Kind::Call: {
        std::vector<Ref<Value>> given;
        for (uint32_t slot : step.given) given.push_back(values[slot]);
        const std::vector<Ref<Value>> made = step.function(given);
        LAMELLA_CHECK(made.size() == step.results.size());
        for (size_t i = 0; i < made.size(); ++i) values.set(step.results[i], made[i]);
        break;
      }
    }
    values.let_go(step.last_used);
  }
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const auto [slot, same] = outputs_[i];
    outputs.push_back(same < i ? outputs[same] : Tensor(values[slot]));
  }
  return outputs;
}

}  // namespace lamella
