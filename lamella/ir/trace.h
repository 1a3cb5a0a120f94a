// Traces: what a piece of a program recorded, kept so that it can be recorded again without running
// the program. jit is built on them (docs/decisions/0006-jit-records-again.md).
//
// A trace holds operations, not values: where each operand came from, which storages were read and
// written, which host functions were called, in order. Replaying it goes through the thread's
// window like any other program, so everything that holds for the window holds for a trace: the
// same fusion, gradients, failure and bits.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lamella/ir/tensor.h"

namespace lamella {

LAMELLA_API std::vector<Ref<Storage>> storages_of(std::span<const Tensor> tensors);

// For each of some tensors the first that is a handle of the same one.
LAMELLA_API std::vector<size_t> sharing(std::span<const Ref<Storage>> storages);

// Whether what this thread does is recorded elsewhere than in its window alone: it is being traced,
// or in the body of a loop or branch.
LAMELLA_API bool recorded_elsewhere();

// A function with state outside of tensors that is called again at every replay (a draw of random
// numbers, an optimizer's step): from the values it is given to those it makes.
using HostFunction = std::function<std::vector<Ref<Value>>(std::span<const Ref<Value>> given)>;

class LAMELLA_API Trace : public RefCounted<Trace> {
 public:
  // Records everything again, with `arguments` in the place of the arguments it was traced with,
  // and gives a new tensor for each output. Types of arguments must be those it was traced with.
  std::vector<Tensor> replay(std::span<const Ref<Storage>> arguments) const;

  // Whether it may be replayed with these arguments: if it writes, none may be a storage that it
  // holds.
  bool takes(std::span<const Ref<Storage>> arguments) const;

  // Whether the other one reads, writes and records the same, with the same numbers and host
  // functions in the same places. What the host functions do is not compared.
  bool same_as(const Trace& other) const;

  // The number of operations recorded by a replay.
  size_t size() const { return operations_; }

 private:
  friend class Tracer;

  // A storage that exists apart from the trace: an argument, or one it holds.
  struct Place {
    int argument = -1;
    Ref<Storage> storage;
  };
  struct Operation {
    const Operator* op;
    Ref<const Attributes> attributes;
    SourceLocation location;
    Provenance provenance;
    std::vector<TensorType> operand_types, result_types;
  };
  enum class Kind : uint8_t { Read, Write, Record, Call };
  // Slots are numbers of values. Read: results[0] from place; Write: given[0] to place.
  struct Step {
    Kind kind;
    std::vector<uint32_t> given, results;
    Place place = {};
    Operation operation = {};
    HostFunction function = {};
    std::vector<uint32_t> last_used = {};  // slots that no later step and no output takes
  };

  std::vector<Step> steps_;
  std::vector<Ref<Value>> constants_;  // by slot; null for those that steps make
  struct Output {
    uint32_t slot;
    size_t same_as;  // the first output that is a handle of the same tensor
  };
  std::vector<Output> outputs_;
  std::vector<const Storage*> held_;  // by its places, if anything is written
  size_t operations_ = 0;
};

// Follows what this thread does while it lives, which goes on as usual.
class LAMELLA_API Tracer {
 public:
  // `locate` tells the line of the program that is being run, for give_up.
  Tracer(std::span<const Tensor> arguments, std::function<SourceLocation()> locate);
  ~Tracer();
  Tracer(const Tracer&) = delete;

  // The tracer of this thread; null if there is none or it is paused.
  static Tracer* current() {
    return running.load(std::memory_order_relaxed) == 0 ? nullptr : of_thread();
  }
  // Says, if this thread is traced, that its program cannot be repeated from a trace, and why.
  static void cannot_repeat(const char* why) {
    if (Tracer* tracer = current()) tracer->give_up(why);
  }

  // ---- What happens ----

  void recorded(const Node& node);
  // `in_body`: of a loop or branch, where only what is recorded there can use it.
  void created(const Storage& storage, bool in_body);
  static void destroyed(const Storage& storage) {
    if (running.load(std::memory_order_relaxed) > 0) forget(storage);
  }
  void read(Storage& storage, const Ref<Value>& value);
  void wrote(Storage& storage, const Ref<Value>& value);
  // A function that is called at every replay wrote a storage, if this thread is in one.
  static void wrote_beside(const Storage& storage);
  // A value that is the same at every run.
  void constant(const Ref<Value>& value);
  // `function` was called with `given` and made `results`, and is to be called at every replay.
  void called(HostFunction function, std::span<const Ref<Value>> given,
              std::span<const Ref<Value>> results);
  // Keeps the first reason.
  void give_up(std::string why);

  // ---- The result ----

  struct Reason {
    std::string why;
    SourceLocation location;
  };
  const std::optional<Reason>& reason() const { return reason_; }
  // Whether a tensor was made while tracing.
  bool made_here(const Tensor& tensor) const { return made_here_.contains(tensor.storage().get()); }
  // Whether more than `results` and what held it before now holds a tensor made while tracing, or
  // an argument: the program keeps it, and a replay would not.
  bool kept_made(std::span<const Tensor> results) const;
  bool kept_argument(std::span<const Tensor> results) const;
  // The trace, or null with a reason. `outputs` must have been made here; two of one storage become
  // two handles of one tensor.
  Ref<Trace> finish(std::span<const Tensor> outputs);

 private:
  friend class TracingPaused;
  static std::atomic<int> running;
  static Tracer* of_thread();
  static void forget(const Storage& storage);

  uint32_t new_slot(const Ref<Value>& value);
  std::optional<uint32_t> slot_of(const Ref<Value>& value);
  Trace::Place place_of(Storage& storage) const;
  void drop_unused();
  void note_last_uses();
  void note_held();

  Ref<Trace> trace_{new Trace};
  std::vector<Ref<Storage>> arguments_;
  std::vector<size_t> argument_references_;  // when tracing began
  std::function<SourceLocation()> locate_;
  std::unordered_set<const Storage*> made_here_;  // of those that still exist
  std::unordered_set<const Storage*> of_bodies_;  // those of them made in a body
  std::unordered_map<const Value*, uint32_t> slots_;
  std::unordered_map<const Value*, const Storage*> read_from_;
  std::vector<Ref<Value>> held_;  // so that no address is used again
  std::vector<const Storage*> written_beside_;
  std::optional<Reason> reason_;
};

// Lets this thread do what a trace must not see: runs of the window, host functions.
class LAMELLA_API TracingPaused {
 public:
  TracingPaused();
  ~TracingPaused();
  TracingPaused(const TracingPaused&) = delete;

 private:
  Tracer* tracer_;
};

}  // namespace lamella
