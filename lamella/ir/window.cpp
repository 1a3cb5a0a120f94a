// Recording into the window, and the bookkeeping around a flush.
#include "lamella/ir/window.h"

#include <algorithm>

#include "lamella/base/env.h"
#include "lamella/base/host.h"
#include "lamella/base/pointer_map.h"
#include "lamella/base/system/fork.h"
#include "lamella/ir/call_site.h"
#include "lamella/ir/runtime_interface.h"
#include "lamella/ir/tensor.h"
#include "lamella/ir/trace.h"

namespace lamella {

namespace {

thread_local Recorder* recorder_of_thread = nullptr;
RuntimeInterface* installed_runtime = nullptr;

// The windows that there are. They are never destroyed: what a thread leaves pending may be read
// after its end. Those of ended threads serve new ones.
struct Windows {
  std::mutex mutex;
  std::vector<Window*> all;  // for a child of fork
  std::vector<Window*> idle;
};

// Never destroyed: threads may outlive static objects.
Windows& windows() {
  static Windows* const list = new Windows;
  return *list;
}

[[maybe_unused]] const bool prepared_for_fork = [] {
  in_child_of_fork([] {
    new (&windows().mutex) std::mutex;
    for (Window* window : windows().all) window->leave_to_parent();
  });
  return true;
}();

WindowLimits limits_from_environment() {
  WindowLimits limits;
  limits.fixed = environment_integer("LAMELLA_WINDOW", 0, 0, WindowLimits::kMostFixed);
  return limits;
}

}  // namespace

RuntimeInterface& runtime() {
  LAMELLA_CHECK(installed_runtime != nullptr);
  return *installed_runtime;
}

void install_runtime(RuntimeInterface* implementation) {
  installed_runtime = implementation;
}

Recorder& current_recorder() {
  if (recorder_of_thread != nullptr) return *recorder_of_thread;
  return Window::of_thread();
}

RecorderScope::RecorderScope(Recorder& recorder) : outer_(recorder_of_thread) {
  recorder_of_thread = &recorder;
}
RecorderScope::~RecorderScope() {
  recorder_of_thread = outer_;
}

Window& Window::of_thread() {
  struct Lent {
    Window& window = lend();
    ~Lent() { window.end_with_thread(); }
  };
  thread_local Lent lent;
  return lent.window;
}

Window& Window::lend() {
  const UnforkableWork work;
  // Looked at without the lock: what a window drops may wait for the host's, which may be held by a
  // thread that waits here.
  std::vector<Window*> idle;
  {
    std::lock_guard lock(windows().mutex);
    idle.swap(windows().idle);
  }
  const auto found =
      std::find_if(idle.begin(), idle.end(), [](Window* window) { return window->begin_again(); });
  Window* const lent = found != idle.end() ? *found : new Window;
  std::lock_guard lock(windows().mutex);
  if (found == idle.end()) {
    windows().all.push_back(lent);
  } else {
    idle.erase(found);
  }
  windows().idle.insert(windows().idle.end(), idle.begin(), idle.end());
  return *lent;
}

Window::Window() : limits_(limits_from_environment()) {}

void Window::end_with_thread() {
  const UnforkableWork work;
  {
    std::lock_guard lock(mutex_);
    drop_unread();
  }
  std::lock_guard lock(windows().mutex);
  windows().idle.push_back(this);
}

bool Window::begin_again() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return false;
  drop_unread();
  if (!nodes_.empty()) return false;
  limits_ = limits_from_environment();
  flush_requested_ = false;
  return true;
}

void Window::drop_unread() {
  for (const Ref<Node>& node : nodes_) {
    for (const Ref<Value>& result : node->results()) {
      if (result->handles() > 0) return;
    }
  }
  mark_failed(nodes_, "the thread that recorded it ended");
  finish(nodes_);
  nodes_.clear();
  journal_.clear();
}

Results Window::record(const Operator& op, std::span<Value* const> operands,
                       Ref<const Attributes> attributes, const SourceLocation& location) {
  const auto lock = lock_beside_host(mutex_);
  prepare(op, operands, location);
  return append(make_inferred_node(op, operands, std::move(attributes), location));
}

Results Window::record_known(const Operator& op, std::span<Value* const> operands,
                             Ref<const Attributes> attributes, std::span<const TensorType> results,
                             const SourceLocation& location) {
  const auto lock = lock_beside_host(mutex_);
  prepare(op, operands, location);
  return append(Node::make(op, operands, std::move(attributes), results, location));
}

// Runs what must have run before another operation joins.
void Window::prepare(const Operator& op, std::span<Value* const> operands,
                     const SourceLocation& location) {
  if (flush_requested_) flush();
  const auto pending = static_cast<int64_t>(nodes_.size());
  const bool turns_here = !current_call_site().known() || take_call_site_start();
  if (pending >= limits_.loop && !in_gradient_scope()) {
    const bool loop_turn = turns_here && nodes_.front()->location() == location;
    if (loop_turn || pending >= limits_.most) flush();
  }
  for (Value* operand : operands) {
    if (operand->is_traced()) {
      throw Error(
          ErrorKind::Value,
          fmt::format("[{}] an operand stands for a value in the body of a loop or branch, or "
                      "for one example in vmap: outside, only what is returned exists",
                      op.name()),
          location);
    }
    if (operand->state() == Value::State::Failed) {
      throw Error(
          ErrorKind::Value,
          fmt::format("[{}] an operand was never computed: {}", op.name(), operand->failure()),
          location);
    }
    // A value that another thread has not run yet.
    if (Window* owner = operand->window(); owner != nullptr && owner != this) owner->flush();
  }
}

Results Window::append(const Ref<Node>& node) {
  if (Tracer* tracer = Tracer::current()) tracer->recorded(*node);
  for (const Ref<Value>& result : node->results()) {
    result->window_.store(this, std::memory_order_release);
  }
  nodes_.push_back(node);
  if (gradient_depth_ > 0) {
    node->keep();
    gradient_nodes_.push_back(node);
  }
  Results results(node->results());
  if (limits_.fixed > 0 && static_cast<int64_t>(nodes_.size()) >= limits_.fixed) flush();
  return results;
}

void Window::journal(Storage& storage) {
  const auto lock = lock_beside_host(mutex_);
  journal_.push_back({Ref<Storage>(&storage), storage.current()});
}

void Window::set_limits(WindowLimits limits) {
  if (limits.fixed < 0 || limits.fixed > WindowLimits::kMostFixed) {
    fail(ErrorKind::Value,
         "[set_window] operations must be from 1 to {}, or 0, which leaves it to the runtime; got "
         "{}",
         WindowLimits::kMostFixed, limits.fixed);
  }
  limits_ = limits;
}

size_t Window::journal_references(const Storage* storage) {
  const auto lock = lock_beside_host(mutex_);
  return static_cast<size_t>(std::ranges::count_if(
      journal_, [&](const JournalEntry& entry) { return entry.storage.get() == storage; }));
}

void Window::flush() {
  const HostReleased released;
  const TracingPaused paused;
  const UnforkableWork work;
  std::lock_guard lock(mutex_);
  flush_requested_ = false;
  if (nodes_.empty()) {
    journal_.clear();
    return;
  }
  std::vector<Ref<Node>> nodes = std::move(nodes_);
  std::vector<JournalEntry> journal = std::move(journal_);
  nodes_.clear();
  journal_.clear();
  PointerMap<Value, int64_t> held(journal.size());
  for (const JournalEntry& entry : journal) ++held[entry.value.get()];
  ++running_;
  try {
    if (running_ > 1) refuse_running(nodes);
    runtime().run(nodes, [&](const Value& value) -> int64_t {
      const int64_t* count = held.find(&value);
      return count == nullptr ? 0 : *count;
    });
  } catch (const std::exception& error) {
    --running_;
    mark_failed(nodes, fmt::format("its run failed: {}", error.what()));
    roll_back(journal);
    finish(nodes);
    throw;
  }
  --running_;
  finish(nodes);
}

// The host's code that a run calls, such as a handler of signals, may compute with everything but
// what that run is about to give.
void Window::refuse_running(std::span<const Ref<Node>> nodes) const {
  PointerMap<Value, bool> own(nodes.size());
  for (const Ref<Node>& node : nodes) {
    for (const Ref<Value>& operand : node->operands()) {
      if (operand->state() == Value::State::Pending && own.find(operand.get()) == nullptr) {
        throw Error(ErrorKind::Value,
                    fmt::format("[{}] an operand is being computed by the run that this code "
                                "interrupts",
                                node->op().name()),
                    node->location());
      }
    }
    for (const Ref<Value>& result : node->results()) own[result.get()] = true;
  }
}

void Window::mark_failed(std::span<const Ref<Node>> nodes, std::string why) {
  const auto failure = make_ref<Failure>(std::move(why));
  for (const Ref<Node>& node : nodes) {
    for (const Ref<Value>& result : node->results()) {
      if (result->state() == Value::State::Pending) result->mark_failed(failure);
    }
  }
}

void Window::finish(std::vector<Ref<Node>>& nodes) {
  for (Ref<Node>& node : nodes) {
    for (const Ref<Value>& result : node->results()) {
      result->window_.store(nullptr, std::memory_order_release);
    }
    node->let_go();
  }
}

void Window::roll_back(std::vector<JournalEntry>& journal) {
  for (size_t i = journal.size(); i-- > 0;) {
    journal[i].storage->restore(std::move(journal[i].value));
  }
}

void Window::leave_to_parent() {
  new (&mutex_) std::recursive_mutex;  // its holder may be a thread that does not exist here
  running_ = 0;
  flush_requested_ = false;
  mark_failed(nodes_,
              "it was pending in the process that forked this one; read it (for example with "
              "asnumpy) before the fork");
  // Nothing is taken back: what replaced a parameter's value is as pending as the rest.
  nodes_.clear();
  journal_.clear();
}

void Window::close_gradient_scope() {
  LAMELLA_CHECK(gradient_depth_ > 0);
  if (--gradient_depth_ > 0) return;
  std::vector<Ref<Node>> nodes = std::move(gradient_nodes_);
  gradient_nodes_.clear();
  for (const Ref<Node>& node : nodes) node->let_go();
}

}  // namespace lamella
