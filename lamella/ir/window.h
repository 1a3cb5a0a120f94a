// The thread's pending operations. Dynamic mode is this window: operations join it when they are
// called and run together when a value is needed.
#pragma once

#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "lamella/base/api.h"
#include "lamella/ir/recorder.h"
#include "lamella/ir/tensor.h"

namespace lamella {

// How large a window may grow before it runs by itself.
struct WindowLimits {
  static constexpr int64_t kMostFixed = 1'000'000;
  // LAMELLA_WINDOW: flush after this many operations, at most kMostFixed; 0 is no fixed number.
  int64_t fixed = 0;
  // In loose code: flush before an operation on the source line of the window's first operation
  // once this many are pending, so that the turns of a loop make equal windows.
  int64_t loop = 512;
  int64_t most = 16384;
};

class LAMELLA_API Window final : public Recorder {
 public:
  // The window of the calling thread. When the thread ends, what is pending and can still be seen
  // stays so until another thread reads it.
  static Window& of_thread();

  Results record(const Operator& op, std::span<Value* const> operands,
                 Ref<const Attributes> attributes, const SourceLocation& location) override;

  // As record, for result types that are known to be what the type rule gives.
  Results record_known(const Operator& op, std::span<Value* const> operands,
                       Ref<const Attributes> attributes, std::span<const TensorType> results,
                       const SourceLocation& location);

  // Runs every pending operation that someone can still see the result of. If that fails, every
  // parameter written in this window has its earlier value again, the window is empty, and the
  // error is thrown.
  void flush();
  // Flush before the next operation is recorded: by then the temporaries of the step are gone.
  void request_flush() { flush_requested_ = true; }
  // Runs what is pending if that was requested.
  void settle() {
    if (flush_requested_) flush();
  }
  // The number of pending operations.
  size_t size() const { return nodes_.size(); }

  // Notes the value a Storage had before a pending operation replaced it.
  void journal(Storage& storage);
  // The references that these notes hold on a Storage.
  size_t journal_references(const Storage* storage);

  void set_limits(WindowLimits limits);
  const WindowLimits& limits() const { return limits_; }

  // Gradient scopes: while one is open, operations keep their operands after running.
  void open_gradient_scope() { ++gradient_depth_; }
  void close_gradient_scope();
  // In a child of fork: what was pending belongs to the parent, and reading it here is an error.
  void leave_to_parent();
  bool in_gradient_scope() const { return gradient_depth_ > 0; }
  int gradient_depth() const { return gradient_depth_; }
  // Operations recorded since the outermost open gradient scope began, in order.
  std::span<const Ref<Node>> tape() const override { return gradient_nodes_; }
  bool knows(const Value& value) const override { return !value.is_traced(); }
  // Within a gradient's walk back, only the scopes around it can still ask.
  int gradient_order() const override { return gradient_depth_ - walks_; }
  void begin_walk() { ++walks_; }
  void end_walk() { --walks_; }

 private:
  Window();

  static Window& lend();
  void end_with_thread();
  // Whether another thread can have the window.
  bool begin_again();
  // Drops what is pending if nobody can read it any more.
  void drop_unread();

  struct JournalEntry {
    Ref<Storage> storage;
    Ref<Value> value;
  };

  void refuse_running(std::span<const Ref<Node>> nodes) const;
  void prepare(const Operator& op, std::span<Value* const> operands,
               const SourceLocation& location);
  Results append(const Ref<Node>& node);
  void mark_failed(std::span<const Ref<Node>> nodes, std::string why);
  void finish(std::vector<Ref<Node>>& nodes);
  void roll_back(std::vector<JournalEntry>& journal);

  std::recursive_mutex mutex_;
  std::vector<Ref<Node>> nodes_;
  std::vector<JournalEntry> journal_;
  std::vector<Ref<Node>> gradient_nodes_;
  int gradient_depth_ = 0;
  int walks_ = 0;
  bool flush_requested_ = false;
  int running_ = 0;  // flushes in progress: code that one of them calls may need another
  WindowLimits limits_;
};

// Keeps operations differentiable while it lives.
class LAMELLA_API GradientScope {
 public:
  GradientScope() { Window::of_thread().open_gradient_scope(); }
  ~GradientScope() { Window::of_thread().close_gradient_scope(); }
  GradientScope(const GradientScope&) = delete;
};

}  // namespace lamella
